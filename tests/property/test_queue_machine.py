"""The queue against a model of a few dicts: nothing lost or repeated, always in order, across kills."""

from __future__ import annotations

import shutil
import tempfile

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from holdfast.queue.engine import ALL, Capacity, Item, requeue_lost
from holdfast.queue.local import LocalQueue
from holdfast.store.layout import Home

_TASKS = [f"t{number}" for number in range(8)]
_tasks = st.sampled_from(_TASKS)
_agents = st.sampled_from(["claude", "codex"])
_pools = st.sampled_from(["default", "nightly"])
_owners = st.sampled_from(["one", "two"])


class QueueMachine(RuleBasedStateMachine):
    """`rows` are the items as they should be; `seq` is their age."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="hf-queue-")
        self.queue = LocalQueue(Home(self.folder), poison_after=2)
        self.rows: dict[str, Item] = {}
        self.failed: dict[str, set[str]] = {}
        self.seq: dict[str, int] = {}
        self.paused: set[str] = set()
        self.count = 0

    def teardown(self) -> None:
        self.queue.close()
        shutil.rmtree(self.folder)

    # ── what happens ──

    @rule(task_id=_tasks, priority=st.integers(0, 3), agent=_agents, pool=_pools, front=st.booleans(),
          after=st.lists(_tasks, max_size=2, unique=True))  # fmt: skip
    def add(self, task_id: str, priority: int, agent: str, pool: str, front: bool, after: list[str]) -> None:
        waits = tuple(each for each in after if each != task_id)
        item = Item(
            task_id=task_id,
            priority=priority,
            agent=agent,
            pool=pool,
            front=front,
            after=waits,
            added_at="2026-01-01T00:00:00.000Z",
        )
        assert self.queue.add(item) == (task_id not in self.rows)
        if task_id not in self.rows:
            self.count += 1
            self.rows[task_id], self.seq[task_id] = item.evolve(waits_for=waits), self.count
            self.failed[task_id] = set()

    @rule(owner=_owners, claude=st.integers(0, 2), nightly=st.integers(0, 2), slots=st.integers(0, 5))
    def claim(self, owner: str, claude: int, nightly: int, slots: int) -> None:
        room = Capacity(slots=slots, agents={"claude": claude}, pools={"nightly": nightly})
        held = [row for row in self.rows.values() if row.state == "claimed"]
        fits = [
            row
            for row in self.ordered()
            if row.state == "queued"
            and not row.waits_for
            and not self.paused & {ALL, row.pool}
            and len(held) < slots
            and (row.agent != "claude" or sum(each.agent == "claude" for each in held) < claude)
            and (row.pool != "nightly" or sum(each.pool == "nightly" for each in held) < nightly)
        ]
        taken = self.queue.claim(owner, room)
        assert (taken.task_id if taken else None) == (fits[0].task_id if fits else None)
        if taken is not None:
            row = fits[0]
            self.rows[row.task_id] = row.evolve(
                state="claimed", claimed_by=owner, attempts=row.attempts + 1, front=False
            )

    @rule(task_id=_tasks, owner=_owners)
    def release(self, task_id: str, owner: str) -> None:
        row = self.rows.get(task_id)
        is_his = row is not None and row.state == "claimed" and row.claimed_by == owner
        assert self.queue.release(task_id, owner=owner) == is_his
        if row is not None and is_his:
            self.rows[task_id] = row.evolve(state="queued", claimed_by=None)

    @rule(owner=_owners)
    def die(self, owner: str) -> None:
        requeue_lost(self.queue, lambda item: item.claimed_by != owner)
        for task_id, row in self.rows.items():
            if row.state == "claimed" and row.claimed_by == owner:
                state = "poison" if row.lost + 1 >= 2 else "queued"
                self.rows[task_id] = row.evolve(state=state, lost=row.lost + 1, claimed_by=None)

    @rule(task_id=_tasks, status=st.sampled_from(["completed", "failed", None]))
    def ack(self, task_id: str, status: str | None) -> None:
        assert self.queue.ack(task_id, status=status) == (task_id in self.rows)
        if self.rows.pop(task_id, None) is not None and status is not None:
            self.end(task_id, status)

    @rule(task_id=_tasks, status=st.sampled_from(["completed", "failed"]))
    def task_ended(self, task_id: str, status: str) -> None:
        self.queue.task_ended(task_id, status)
        self.end(task_id, status)

    def end(self, on_id: str, status: str) -> None:
        for task_id, row in self.rows.items():
            if on_id not in row.waits_for:
                continue
            failed = self.failed[task_id]
            if status != "completed":
                failed.add(on_id)
                self.rows[task_id] = row.evolve(state="held" if row.state == "queued" else row.state)
                continue
            failed.discard(on_id)
            left = tuple(each for each in row.waits_for if each != on_id)
            state = "queued" if row.state == "held" and not failed else row.state
            self.rows[task_id] = row.evolve(waits_for=left, state=state)

    @rule(task_id=_tasks)
    def retry(self, task_id: str) -> None:
        row = self.rows.get(task_id)
        may = row is not None and row.state in ("held", "poison")
        assert self.queue.retry(task_id) == may
        if row is not None and may:
            left = tuple(each for each in row.waits_for if each not in self.failed[task_id])
            self.failed[task_id] = set()
            self.rows[task_id] = row.evolve(state="queued", lost=0, waits_for=left)

    @rule(pool=st.sampled_from([ALL, "default", "nightly"]), is_paused=st.booleans())
    def pause(self, pool: str, is_paused: bool) -> None:
        self.queue.pause(pool, is_paused=is_paused)
        (self.paused.add if is_paused else self.paused.discard)(pool)

    @rule()
    def reopen(self) -> None:
        self.queue.close()
        self.queue = LocalQueue(Home(self.folder), poison_after=2)
        assert not self.queue.is_new

    # ── what holds ──

    def ordered(self) -> list[Item]:
        return sorted(
            self.rows.values(), key=lambda row: (not row.front, -row.priority, self.seq[row.task_id])
        )

    @invariant()
    def the_database_is_the_model(self) -> None:
        found = [item.evolve(claimed_at=None, reason="") for item in self.queue.items()]
        assert found == self.ordered()
        assert self.queue.paused() == sorted(self.paused)


QueueMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestQueue = QueueMachine.TestCase
