"""The queue follows the packets, whatever happened between them."""

from __future__ import annotations

import os
import shutil

import pytest

from holdfast import paths
from holdfast.model import events as ev
from holdfast.model.spec import Limits, QueueSpec, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import sealed
from holdfast.packet.create import create
from holdfast.queue import sync
from holdfast.queue.engine import Item
from holdfast.queue.local import LocalQueue
from holdfast.store import atomic
from holdfast.store.layout import Home, Packet


@pytest.fixture(autouse=True)
def a_home(home: str) -> None:
    paths.ensure_home(home)


def packet(home: str, task_id: str, *, status: Status = Status.QUEUED, **place) -> Packet:
    spec = TaskSpec(
        task_id=task_id, task_name=task_id, goal="", agent="command", command=["true"], project_dir=home,
        stages=(StageSpec(name="command_run", agent="command"),), limits=Limits(), queue=QueueSpec(**place),
    )  # fmt: skip
    return create(Home(home), spec, prompt=None, env={"env": {}}, status=status)


def now_is(home: str, task_id: str, status: str, **more) -> None:
    """As a runner says it: an end counts only if the journal has it."""
    task, journal, _ = sealed.open_for_runner(Home(home).packet(task_id))
    journal.append([ev.TaskMoved(old=task.status, new=Status(status), reason="")])
    journal.close()
    path = Home(home).packet(task_id).manifest
    atomic.write_json(path, {**(atomic.read_json(path) or {}), "status": status, **more}, durable=False)


def rows(home: str) -> dict[str, Item]:
    with sync.open_queue(Home(home)) as queue:
        return {item.task_id: item for item in queue.items()}


def test_a_packet_whose_submit_died_before_the_queue_is_added(home: str) -> None:
    packet(home, "a", priority=10, pool="p", not_before="2026-01-31T12:00:00.000Z")
    item = rows(home)["a"]
    assert (item.priority, item.pool, item.not_before, item.agent) == (
        10,
        "p",
        "2026-01-31T12:00:00.000Z",
        "command",
    )
    assert not item.front


@pytest.mark.req("QUE-1")
def test_a_queue_that_was_deleted_is_rebuilt_in_the_same_order(home: str) -> None:
    for task_id, priority in (("a", 1), ("b", 10), ("c", 5), ("d", 5)):
        packet(home, task_id, priority=priority)
    before = list(rows(home))
    for suffix in ("", "-wal", "-shm"):
        atomic.remove(os.path.join(home, f"queue.db{suffix}"))
    assert list(rows(home)) == before == ["b", "c", "d", "a"]


def test_a_corrupt_queue_is_rebuilt(home: str) -> None:
    packet(home, "a")
    with open(os.path.join(home, "queue.db"), "wb") as file:
        file.write(b"nonsense" * 1000)
    assert list(rows(home)) == ["a"]


def test_what_has_ended_or_is_gone_leaves_the_queue(home: str) -> None:
    for task_id in ("a", "b", "c"):
        packet(home, task_id)
    rows(home)
    now_is(home, "a", "killed")
    shutil.rmtree(Home(home).packet("b").path)
    assert list(rows(home)) == ["c"]


def test_a_task_that_runs_counts_as_claimed(home: str) -> None:
    packet(home, "a")
    rows(home)
    now_is(home, "a", "running")
    assert rows(home)["a"].state == "claimed"


def test_an_interrupted_task_needs_no_place_and_goes_first_when_it_is_resumed(home: str) -> None:
    packet(home, "a")
    with sync.open_queue(Home(home)) as queue:
        queue.claim("keeper")
    now_is(home, "a", "interrupted", attempt=1)
    assert rows(home) == {}
    packet(home, "b", priority=10)
    now_is(home, "a", "queued")
    assert list(rows(home)) == ["a", "b"]
    assert rows(home)["a"].front


@pytest.mark.parametrize("turn", [{"attempt": 1}, {"begun_at": "2026-01-31T12:00:00.000Z"}])
def test_a_task_that_had_its_turn_does_not_wait_again(home: str, turn: dict[str, object]) -> None:
    """The task it depends on was done then, and may have been removed since."""
    packet(home, "b", after=("a",))
    now_is(home, "b", "queued", **turn)
    item = rows(home)["b"]
    assert (item.state, item.after, item.waits_for, item.front) == ("queued", (), (), True)


def test_a_claim_of_a_packet_that_still_waits_is_left_alone(home: str) -> None:
    packet(home, "a")
    with sync.open_queue(Home(home)) as queue:
        queue.claim("keeper")
    assert (rows(home)["a"].state, rows(home)["a"].claimed_by) == ("claimed", "keeper")
    now_is(home, "a", "running")
    assert (rows(home)["a"].state, rows(home)["a"].claimed_by) == ("claimed", "keeper")


def test_a_task_that_the_keeper_claims_while_we_look_stays_claimed(home: str) -> None:
    packet(home, "a")
    rows(home)
    now_is(home, "a", "spawning")

    class Late(LocalQueue):
        """The keeper claims it between our reading of the rows and our action."""

        def items(self, task_id: str | None = None) -> list[Item]:
            found = super().items(task_id)
            with LocalQueue(Home(home)) as keeper:
                keeper.claim("keeper")
            return found

    with Late(Home(home)) as queue:
        sync.sync(Home(home), queue)
    assert rows(home)["a"].claimed_by == "keeper"


@pytest.mark.parametrize(
    ("status", "state", "waits_for"),
    [("completed", "queued", ()), ("failed", "held", ("a",)), ("running", "queued", ("a",))],
)
def test_dependencies_are_what_their_packets_say(
    home: str, status: str, state: str, waits_for: tuple[str, ...]
) -> None:
    packet(home, "a", status=Status.SPAWNING)
    packet(home, "b", after=("a",))
    now_is(home, "a", status)
    item = rows(home)["b"]
    assert (item.state, item.waits_for) == (state, waits_for)


def test_a_dependency_that_was_removed_holds_in_plain_sight(home: str) -> None:
    packet(home, "b", after=("a",))
    assert rows(home)["b"].reason == "a is not in this home"


def test_an_archived_dependency_is_still_known(home: str) -> None:
    packet(home, "a", status=Status.SPAWNING)
    now_is(home, "a", "completed")
    os.makedirs(Home(home).archive, exist_ok=True)
    target = Home(home).archived("a").path
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.rename(Home(home).packet("a").path, target)
    packet(home, "b", after=("a",))
    assert rows(home)["b"].waits_for == ()


def test_a_packet_that_cannot_be_read_is_passed_over(home: str) -> None:
    packet(home, "a")
    with open(packet(home, "b").journal, "wb"):
        pass
    with LocalQueue(Home(home)) as queue:
        sync.sync(Home(home), queue)
        assert [item.task_id for item in queue.items()] == ["a"]


def test_a_torn_manifest_of_a_dependency_blocks_nothing(home: str) -> None:
    """Its journal still says what it does."""
    first = packet(home, "a", status=Status.SPAWNING)
    packet(home, "b", after=("a",))
    rows(home)
    with open(first.manifest, "wb") as file:
        file.write(b'{"status": "comp')
    assert (rows(home)["b"].state, rows(home)["b"].waits_for) == ("queued", ("a",))


def test_an_unreadable_packet_keeps_its_place_and_blocks_nothing(home: str) -> None:
    first = packet(home, "a")
    packet(home, "b", after=("a",))
    packet(home, "c")
    rows(home)
    for path in (first.manifest, first.journal):
        with open(path, "wb") as file:
            file.write(b"nonsense\n" * 3)
    assert {task_id: item.state for task_id, item in rows(home).items()} == dict.fromkeys("abc", "queued")
    assert rows(home)["b"].waits_for == ("a",)


@pytest.mark.parametrize("status", ["interrupted", "failed"])
def test_who_looked_too_early_does_not_take_a_live_claim_out(home: str, status: str) -> None:
    made = packet(home, "a")
    with sync.open_queue(Home(home)) as queue:
        queue.claim("keeper")
    now_is(home, "a", status, attempt=1)
    atomic.write(made.task_done, b"", durable=False)

    class Late(LocalQueue):
        """Between our reading of the rows and our action, it is resumed and claimed again."""

        def items(self, task_id: str | None = None) -> list[Item]:
            found = super().items(task_id)
            with LocalQueue(Home(home)) as other:
                if other.release("a", owner="keeper"):
                    other.claim("another keeper")
            return found

    with Late(Home(home)) as queue:
        sync.sync(Home(home), queue)
    with LocalQueue(Home(home)) as queue:
        assert [item.claimed_by for item in queue.items()] == ["another keeper"]
