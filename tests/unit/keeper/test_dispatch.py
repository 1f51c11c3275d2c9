"""Dispatch: unused claims are released, and ended tasks are counted wherever they are."""

from __future__ import annotations

import errno
import os
import selectors
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast import clock, paths
from holdfast.keeper import capacity, loop_state
from holdfast.keeper.dispatch import Dispatch
from holdfast.keeper.live_tasks import LiveTasks
from holdfast.keeper.runner_needs import RunnerNeeds
from holdfast.model import events as ev
from holdfast.model.spec import Limits, QueueSpec, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import inbox
from holdfast.packet.create import create
from holdfast.queue import claim_owner
from holdfast.queue.engine import Capacity, Item
from holdfast.queue.local import LocalQueue
from holdfast.store import atomic
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet
from tests.support.journals import append


class Counting(RunnerNeeds):
    """Counts the packets that are read."""

    reads = 0

    def exists(self, packet: Packet, *, is_watched: bool) -> bool:
        self.reads += 1
        return super().exists(packet, is_watched=is_watched)


class Keeper:
    """The parts of a keeper that a step needs, in a home where nothing may be started."""

    def __init__(self, path: str) -> None:
        paths.ensure_home(path)
        self.home = Home(path)
        self.selector = selectors.DefaultSelector()
        self.live_tasks = LiveTasks(self.home, self.selector)
        self.live_tasks.needs = self.needs = Counting(self.home)
        self.dispatch = Dispatch(self.home, self.live_tasks)
        LocalQueue(self.home).close()
        self.hold()

    def hold(self, *, is_held: bool = True) -> None:
        if is_held:
            atomic.write(self.home.interrupt_request, b"nothing is started\n", durable=False)
        else:
            atomic.remove(self.home.interrupt_request)

    def packet(self, task_id: str, *, agent: str = "command", status: Status = Status.QUEUED) -> Packet:
        spec = TaskSpec(
            task_id=task_id,
            task_name=task_id,
            goal="",
            agent=agent,
            command=["true"],
            project_dir=self.home.path,
            stages=(StageSpec(name="command_run", agent=agent),),
            limits=Limits(),
            queue=QueueSpec(),
        )
        return create(self.home, spec, prompt=None, env={"env": {}}, status=status)

    def claim(self, task_id: str) -> None:
        with LocalQueue(self.home) as queue:
            assert queue.claim(claim_owner.this_process(), task_id=task_id) is not None

    def item(self, task_id: str) -> Item | None:
        with LocalQueue(self.home) as queue:
            return next(iter(queue.items(task_id)), None)

    @contextmanager
    def as_if_running(self, packet: Packet) -> Iterator[None]:
        """The locks of a seed and of the task's runner are held, so that the live_tasks starts neither."""
        held = [locks.acquire(path, role="test") for path in (self.home.seed_lock, packet.runner_lock)]
        try:
            yield
        finally:
            for lock in held:
                lock.release()

    def close(self) -> None:
        self.dispatch.close()
        self.selector.close()


@pytest.fixture
def keeper(home: str):
    made = Keeper(home)
    yield made
    made.close()


def moved(packet: Packet, status: Status, *, at: float | None = None, **more: str) -> None:
    """A move that its runner made, in the journal and in the manifest."""
    event = ev.TaskMoved(old="running", new=status, reason=more.get("status_reason", ""))
    append(packet, event, at=at)
    data = atomic.read_json(packet.manifest) or {}
    atomic.write_json(packet.manifest, {**data, "status": status, **more}, durable=False)


# ── what has ended ──


@pytest.mark.req("QUE-2")
def test_a_task_that_was_archived_before_its_end_was_counted_is_counted(keeper: Keeper) -> None:
    packet = keeper.packet("a")
    keeper.dispatch.step(rung=True)
    keeper.claim("a")
    moved(packet, Status.FAILED)
    atomic.write(packet.task_done, b"{}\n", durable=False)
    os.makedirs(keeper.home.archive, exist_ok=True)
    os.rename(packet.path, keeper.home.archived("a").path)
    keeper.dispatch.step(rung=True)
    assert keeper.item("a") is None
    assert loop_state.read_state(keeper.home).ended == {"failed": 1}


# ── claims ──


def test_the_start_that_no_runner_can_read_gives_the_claim_back(keeper: Keeper) -> None:
    """Its packet cannot be read: its runners die, and must not occupy its place in the loop for ever."""
    packet = keeper.packet("a")
    keeper.dispatch.step(rung=True)
    keeper.claim("a")
    inbox.drop(packet, "start", {"iteration": 1}, by="keeper")
    keeper.dispatch.step(rung=True)
    item = keeper.item("a")
    assert item is not None
    assert (item.state, item.lost) == ("claimed", 0), "its runner may be about to answer"
    (name,) = inbox.names(packet)
    path = os.path.join(packet.inbox, name)
    os.utime(path, (clock.now() - 61, clock.now() - 61))
    keeper.dispatch.step(rung=True)
    item = keeper.item("a")
    assert item is not None
    assert (item.state, item.lost) == ("queued", 1)
    assert inbox.names(packet) == []


def test_a_claim_stays_while_a_runner_holds_the_lock_and_is_lost_without_one(keeper: Keeper) -> None:
    """A runner that took the request but has not moved its task: only its lock shows that it is alive."""
    packet = keeper.packet("a")
    keeper.dispatch.step(rung=True)
    keeper.claim("a")
    with keeper.as_if_running(packet):
        keeper.dispatch.step(rung=True)
        item = keeper.item("a")
        assert item is not None
        assert (item.state, item.lost) == ("claimed", 0)
    keeper.dispatch.step(rung=True)
    item = keeper.item("a")
    assert item is not None
    assert (item.state, item.lost) == ("queued", 1)


def test_a_start_that_cannot_be_dropped_is_no_loss_of_the_task(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    packet = keeper.packet("a")
    keeper.dispatch.step(rung=True)
    really_open = os.open

    def full(path: str, *args: int, **named: int) -> int:
        folder = named.get("dir_fd")
        if folder is not None and os.path.samestat(os.fstat(folder), os.stat(packet.inbox)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return really_open(path, *args, **named)

    monkeypatch.setattr(os, "open", full)
    keeper.hold(is_held=False)
    keeper.dispatch.step(rung=False)
    item = keeper.item("a")
    assert item is not None
    assert (item.state, item.lost, item.claimed_by) == ("queued", 0, None)
    assert loop_state.read_state(keeper.home).iteration == 0


def test_a_queue_that_was_put_aside_is_opened_again(keeper: Keeper) -> None:
    keeper.packet("a")
    keeper.dispatch.step(rung=True)
    os.rename(keeper.home.queue, f"{keeper.home.queue}.aside")
    for suffix in ("-wal", "-shm"):
        atomic.remove(keeper.home.queue + suffix)
    LocalQueue(keeper.home).close()
    keeper.packet("b")
    keeper.dispatch.step(rung=True)
    assert keeper.item("a") is not None
    assert keeper.item("b") is not None


def test_a_look_at_a_long_queue_costs_no_more_than_one_at_a_short_queue(keeper: Keeper) -> None:
    keeper.packet("a")
    keeper.dispatch.step(rung=True)
    with LocalQueue(keeper.home) as queue:
        queue.add_many(
            [
                Item(task_id=f"t{n}", agent="command", not_before=clock.iso(clock.now() + 60))
                for n in range(5000)
            ]
        )
    before_s = time.process_time()
    for _ in range(10):
        keeper.dispatch.step(rung=False)
    assert (time.process_time() - before_s) / 10 < 0.02


# ── an agent at its limit ──


@pytest.mark.req("QUE-2")
@pytest.mark.parametrize(
    ("outcome", "reason", "wake_s", "waited_s", "left"),
    [
        ("rate_limit", "come back later", 600.0, 0.0, 0),
        ("rate_limit", "nearly over", 600.0, 580.0, 0),
        ("rate_limit", "over", 600.0, 601.0, None),
        ("rate_limit", "a moment", 20.0, 0.0, None),
        ("crashed", "backoff after crashed", 600.0, 0.0, None),
        ("crashed", "quota: only a text says so", 600.0, 0.0, None),
    ],
    ids=("long", "nearly over", "over", "short", "its own fault", "a text"),
)
def test_while_one_task_waits_for_quota_no_other_of_its_agent_is_started(
    keeper: Keeper, outcome: str, reason: str, wake_s: float, waited_s: float, left: int | None
) -> None:
    waits = keeper.packet("a", agent="scripted")
    keeper.packet("b", agent="scripted")
    keeper.packet("c")
    keeper.dispatch.step(rung=True)
    keeper.claim("a")
    since = clock.now() - waited_s
    times = {"wake_at": clock.iso(since + wake_s), "status_updated_at": clock.iso(since)}
    moved(waits, Status.WAITING, status_reason=reason, **times)
    data = atomic.read_json(waits.manifest) or {}
    stages = [{**stage, "state": "active", "outcome": outcome} for stage in data["stages"]]
    atomic.write_json(waits.manifest, {**data, "stages": stages}, durable=False)
    with LocalQueue(keeper.home) as queue:
        spec = loop_state.read_spec(keeper.home)
        found, held = capacity.measure(keeper.home, queue.claims(), spec, cooling=0, agents=("scripted",))
        assert found.agents.get("scripted") == left
        assert [*held] == (["scripted"] if left == 0 else [])
        # After a short wait it goes on without asking the queue, so it keeps its slot.
        assert found.slots == spec.slots + (wake_s >= 60.0)
        claimed = queue.claim("somebody", found)
    expected = "c" if left == 0 else "b"
    assert (claimed.task_id if claimed is not None else None) == (expected if wake_s >= 60.0 else None)


def test_what_has_no_room_says_how_much_is_used() -> None:
    spec = loop_state.LoopSpec(slots=3, agents={"scripted": 1, "codex": 2}, pools={"heavy": 1, "light": 1})
    claims = [Item(task_id="a", agent="scripted", pool="heavy"), Item(task_id="b", agent="codex")]
    room = Capacity(slots=3, agents=spec.agents, pools=spec.pools)
    found = capacity.full(claims, spec, room, cooling=0)
    assert found.agents == {"scripted": "scripted: 1 of 1 running (agent_limits)"}
    assert found.pools == {"heavy": "heavy: 1 of 1 running (pool_limits)"}
    assert found.slots == ""
    # A task that rests keeps its claim, and makes room for another.
    claims += [Item(task_id="c", agent="scripted"), Item(task_id="d", agent="codex")]
    room = Capacity(slots=4, agents={"scripted": 2, "codex": 0}, pools=spec.pools)
    found = capacity.full(claims, spec, room, cooling=0)
    assert found.agents == {"scripted": "scripted: 1 of 1 running (agent_limits)"}
    assert found.slots == "3 of 3 slots used"
    found = capacity.full(claims[:2], spec, room.evolve(slots=2), cooling=1)
    assert found.slots == "2 of 3 slots used, 1 pausing after a task (iteration_delay)"


# ── what rests ──


def test_a_packet_that_rests_is_read_once_until_something_changes(keeper: Keeper) -> None:
    packet = keeper.packet("a")
    live_tasks = keeper.live_tasks
    for _ in range(3):
        live_tasks.step(rung=True)
    assert keeper.needs.reads == 1
    with keeper.as_if_running(packet):
        inbox.drop(packet, "stop", {}, by="a test")
        live_tasks.step(rung=True)
    assert keeper.needs.reads == 2
    assert "a" in live_tasks.by_id


def test_a_task_whose_interrupt_file_may_be_removed_keeps_the_keeper(keeper: Keeper) -> None:
    packet, live_tasks = keeper.packet("a", status=Status.SPAWNING), keeper.live_tasks
    atomic.write(packet.interrupt_request, b"which one?\n", durable=False)
    data = atomic.read_json(packet.manifest) or {}
    asked = {"reason": "which one?", "file": packet.interrupt_request, "timestamp": clock.iso_now()}
    atomic.write_json(packet.manifest, {**data, "status": "interrupted", "interrupt": asked}, durable=False)
    live_tasks.step(rung=True)
    assert (live_tasks.by_id, live_tasks.is_idle) == ({}, False)
    with keeper.as_if_running(packet):
        os.remove(packet.interrupt_request)
        live_tasks.step(rung=True)
    assert "a" in live_tasks.by_id
    (name,) = inbox.names(packet)
    request = inbox.read(packet, name)
    assert (getattr(request, "verb", ""), getattr(request, "by", "")) == ("resume", "file")
