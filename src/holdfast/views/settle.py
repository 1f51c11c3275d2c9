"""Wait until tasks have settled: ended, or waiting for a person. A manifest is read only when it has changed.

For every view that waits for tasks. (`run`, `attach` and `logs -f` show output meanwhile: `cli/follow`.)
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError, Unanswered
from holdfast.model.record import Record
from holdfast.model.status import ENDS, Status
from holdfast.packet import load
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet
from holdfast.views.recovery import KeeperStarter, LostRunnerWatch
from holdfast.views.text import home_down

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Protocol

    Say = Callable[[str], None]

    class Condition(Protocol):
        """Whether a task has settled."""

        def __call__(self, packet: Packet, manifest: dict[str, Any]) -> bool:
            """For the task with this manifest."""
            ...

        def stuck_in_queue(self) -> set[str]:
            """Tasks that may have settled although nothing in their packets changed."""
            ...


#: How often everything else is looked at: the queue, and tasks without a runner, with and without a keeper.
_LOOK_S, _CARE_S, _KEPT_S = 0.5, 0.5, 5.0
#: How often the queue is checked for a change, and then for tasks that will never start.
_STUCK_CHECK_S = 1.0


class Settled(Record):
    """A task that is not watched any further."""

    packet: Packet
    manifest: dict[str, Any]
    #: It has lost its runner in a home that is down.
    is_lost: bool


class Watched:
    """One watched task: starts a keeper for it, and notices a lost runner."""

    def __init__(self, packet: Packet) -> None:
        self.packet = packet
        self.manifest: dict[str, Any] = {}
        #: Queued in a home that is down.
        self.is_held_back = False
        self._starter, self._lost = KeeperStarter(), LostRunnerWatch()

    def look(
        self,
        until: Callable[[Packet, dict[str, Any]], bool],
        *,
        reads: bool = True,
        stays: Say | None = None,
    ) -> Settled | None:
        """The task if `until` is true for it, or nothing will drive it any more.

        Without `reads`, the manifest has not changed. With `stays`, a task without a runner is watched
        further, and that is reported once.
        """
        there = load.wherever(self.packet)  # a task may be archived as soon as it has ended
        if reads or not self.manifest:
            self.manifest = load.read_manifest(there)
        status = self.manifest["status"]
        is_over = until(there, self.manifest)
        if not is_over and status in ENDS:
            self.manifest = load.believed(there, self.manifest)
            status = self.manifest["status"]
            is_over = until(there, self.manifest)
        if self._lost.poll(self.packet, status) and stays is not None:
            stays(home_down.runner_lost(self.packet, status))
        is_lost = self._lost.is_lost and stays is None and not is_over
        if is_over or is_lost:
            return Settled(packet=self.packet, manifest=self.manifest, is_lost=is_lost)
        return None

    @property
    def is_queued(self) -> bool:
        """Whether it was queued when it was last looked at."""
        return self.manifest.get("status") == Status.QUEUED

    def care(self) -> None:
        """Start a keeper if the task needs one."""
        self.is_held_back = home_down.holds_back(self.packet, self.manifest)
        self._starter.poll(self.packet, self.manifest["status"])


def settle(
    home: Home,
    packets: Sequence[Packet],
    until: Condition,
    *,
    timeout_s: float | None = None,
    is_cancelled: Callable[[], bool] | None = None,
    say: Say,
) -> Iterator[Settled]:
    """Yield each task when `until` is true for it, or nothing will drive it any more.

    Ends early, without the remaining tasks, after `timeout_s`. Raises Unanswered when `is_cancelled`, which
    is asked twice a second.
    """
    ends_mono = float("inf") if timeout_s is None else clock.mono() + timeout_s
    watched = {packet.task_id: Watched(packet) for packet in packets}
    yield from _round(watched, set(watched), until, changed=set(watched))
    if not watched or clock.mono() >= ends_mono:
        return
    from holdfast.views.facts.changes import Changes  # not needed for tasks that have settled

    changes = Changes(home, only=watched)
    changed, due, cared_mono = set(watched), set(watched), clock.mono()
    told = _QueueTold(home, say)
    try:
        while True:
            yield from _round(watched, due, until, changed=changed)
            told.look([task_id for task_id, each in watched.items() if each.is_queued])
            if not watched or clock.mono() >= ends_mono:
                return
            changed = changes.wait(min(_LOOK_S, max(0.0, ends_mono - clock.mono())))
            if is_cancelled is not None and is_cancelled():
                raise Unanswered("cancelled")
            due = changed | until.stuck_in_queue()
            if clock.mono() - cared_mono >= (_KEPT_S if _is_kept(home) else _CARE_S):
                due, cared_mono = due | watched.keys(), clock.mono()
    finally:
        changes.close()


def _round(
    watched: dict[str, Watched], due: set[str], until: Condition, *, changed: set[str]
) -> Iterator[Settled]:
    for task_id in [task_id for task_id in watched if task_id in due]:
        settled = watched[task_id].look(until, reads=task_id in changed)
        if settled is None:
            watched[task_id].care()
        else:
            del watched[task_id]
            yield settled


class _QueueTold:
    """Says once what keeps queued tasks from starting: a home that is down, a pause, a question."""

    def __init__(self, home: Home, say: Say) -> None:
        from holdfast.views.facts.queue_places import QueuePlaces

        self._home, self._say, self._places = home, say, QueuePlaces(home)
        self._due_mono = float("-inf")
        self._told: list[str] = []

    def look(self, task_ids: list[str]) -> None:
        """Say what is new about these tasks, at most once a second."""
        if not task_ids or clock.mono() < self._due_mono:
            return
        self._due_mono = clock.mono() + _STUCK_CHECK_S
        if not self._places.is_outdated:
            return
        from holdfast.views.text import queue_reason  # few tasks are queued

        self._places.note()
        found = queue_reason.obstacles_of(self._home, task_ids)
        for line in found:
            if line not in self._told:
                self._say(line)
        self._told = found


def _is_kept(home: Home) -> bool:
    """Whether a keeper looks after tasks that lose their runner."""
    return not os.path.exists(home.down) and locks.is_held(home.keeper_lock)


class SettleCheck:
    """Whether a task has ended or needs a person; the queue is read only when it changed.

    A task that the queue will never start needs a person, too: `say` gets the reason.
    """

    def __init__(self, home: Home, say: Say) -> None:
        self._home = home
        self._say = say
        self._due_mono = float("-inf")
        self._seen: object = None
        #: Tasks that the queue will never start.
        self._stuck: set[str] = set()

    def __call__(self, packet: Packet, manifest: dict[str, Any]) -> bool:
        """For the task with this manifest."""
        if load.is_settled(packet, manifest):
            return True
        if manifest.get("labels") and self._waits_for_person(packet, manifest):
            return True
        if manifest["status"] != Status.QUEUED:
            return False
        return packet.task_id in self.stuck_in_queue() and self._is_stuck(packet, manifest)

    def _waits_for_person(self, packet: Packet, manifest: dict[str, Any]) -> bool:
        """Whether a fan-out waits for a person; says which of its tasks do."""
        from holdfast.views.text import describe, next_steps  # few tasks have labels

        shown = dict(manifest)
        describe.mark_waiting_for_person(shown, packet)
        if not shown.get("asking"):
            return False
        named = shown["asking"][: next_steps.NAMED]
        commands = " and ".join(f"'holdfast show {task_id}'" for task_id in named)
        self._say(f"{packet.task_id} {describe.waiting_for(shown)}; {commands} says what to do")
        return True

    def stuck_in_queue(self) -> set[str]:
        """Tasks that the queue will never start."""
        if clock.mono() >= self._due_mono:
            self._due_mono = clock.mono() + _STUCK_CHECK_S
            seen = [_stamp(f"{self._home.queue}{suffix}") for suffix in ("", "-wal")]
            if seen != self._seen:
                self._seen, self._stuck = seen, _stuck_tasks(self._home)
        return self._stuck

    def _is_stuck(self, packet: Packet, manifest: dict[str, Any]) -> bool:
        """Whether the queue will never start it; says why."""
        from holdfast.views.text import queue_reason

        item, paused = queue_reason.find_item(packet.home, packet.task_id)
        if item is None or item.state not in queue_reason.NEEDS_PERSON:
            return False
        from holdfast.model import next_action

        held_by = queue_reason.held_by(packet.home, item)
        steps = next_action.for_manifest(manifest, queue_state=item.state, held_by=held_by).steps
        hints = " or ".join(step.as_hint() for step in steps)
        reason = queue_reason.reason(item, paused)
        self._say(f"{packet.task_id} is {item.state}: {reason}; {hints}")
        return True


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


def _stuck_tasks(home: Home) -> set[str]:
    if not os.path.exists(home.queue):
        return set()
    from holdfast.queue.local import LocalQueue
    from holdfast.views.text import queue_reason

    try:
        with LocalQueue(home, reads_only=True) as queue:
            return {item.task_id for item in queue.items() if item.state in queue_reason.NEEDS_PERSON}
    except HoldfastError:
        return set()
