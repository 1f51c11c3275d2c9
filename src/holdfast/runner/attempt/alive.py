"""An execution whose process lives: read its output, judge it, and stop it when told."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.model.attempt import Attempt
from holdfast.model.process import ProcessIdentity
from holdfast.runner.attempt.dying import Dying
from holdfast.runner.attempt.ended import Ended
from holdfast.runner.attempt.judging import Judging
from holdfast.runner.attempt.stop import Stop
from holdfast.runner.attempt.subject import Subject
from holdfast.runner.output.read_schedule import ReadSchedule
from holdfast.runner.plan.facts import ExecutionFacts
from holdfast.store import process
from holdfast.watch.death import POLL_S, watch_death

#: No check is due: only a wake-up by the kernel ends this wait.
_UNTIL_WOKEN_S = 3600.0


class Alive:
    """The start is journalled, and the process is watched."""

    def __init__(self, subject: Subject, identity: ProcessIdentity, recorder: ProcessIdentity | None) -> None:
        self._subject = subject
        self._identity = identity
        #: Its recorder, if known: the lock cannot be tested any more if the directory is removed.
        self._recorder = _parent(identity) if recorder is None else recorder
        self._death_name = subject.name("death")
        self._death = watch_death(identity)
        if self._death.descriptor >= 0:
            subject.waiter.watch(self._death.descriptor, self._death_name)
            subject.close_later(self._close_death)
        logs = [subject.directory.stdout, subject.directory.stderr]
        self._schedule = ReadSchedule(
            subject.waiter, subject.name("growth"), logs, is_plain=subject.ingest.is_plain
        )
        subject.close_later(self._schedule.close)
        subject.ingest.measure()
        self.judging = Judging(subject, self._schedule, pid=identity.pid)
        self._has_just_read = False
        #: Whether the program chose the session's id and the session was not locked yet.
        execution = subject.execution
        self.session_is_unlocked = isinstance(execution, Attempt) and execution.asked_session_id is None
        #: Begun with the first intent to stop it.
        self._stop: Stop | None = None

    def _close_death(self) -> None:
        self._subject.waiter.unwatch(self._death.descriptor)
        self._death.close()

    def advance(self, ready: set[str]) -> Alive | Dying | Ended:
        """Go on to `Dying` once the process has died: the kernel reports that through a descriptor, and is
        polled where there is none."""
        if self._death.descriptor >= 0 and self._death_name not in ready:
            return self
        if not self._death.has_died():
            return self
        dying = Dying(self._subject, self._death, self._recorder)
        if self._death.descriptor >= 0:
            # It stays readable, and the exit record may take a while.
            self._subject.waiter.unwatch(self._death.descriptor)
        return dying.advance(ready)

    def facts(self, ready: set[str]) -> ExecutionFacts:
        """What can be seen now."""
        now_mono = clock.mono()
        read_in_s = self._schedule.left_s(ready, now_mono)
        execution = self._subject.execution
        # Judged only by what was read; in a flood, between two reads.
        can_judge = execution.intent is None and (read_in_s > 0 or self._has_just_read)
        judge_in_s = self.judging.due_in_s() if can_judge else _UNTIL_WOKEN_S
        if judge_in_s <= 0:
            self.judging.judge()
        pending = self.judging.pending
        return ExecutionFacts(
            is_watched=True,
            read_in_s=read_in_s,
            poll_in_s=POLL_S if self._death.descriptor < 0 else _UNTIL_WOKEN_S,
            signal_in_s=None if execution.intent is None else self._stopping().due_in_s(now_mono),
            needs_session_lock=self.session_is_unlocked
            and isinstance(execution, Attempt)
            and execution.session_id is not None,
            judge_in_s=judge_in_s,
            judgement=pending.judgement if pending is not None else None,
        )

    def read(self) -> None:
        """Read new output, and note when to read next."""
        tracker = self.judging.tracker
        self.judging.pending, self._has_just_read = None, True
        now_mono = clock.mono()
        unseen_s = self._schedule.unseen_s(now_mono)
        before = tracker.output_bytes
        self._schedule.begin(now_mono)
        has_more = self._subject.ingest.take()
        tracker.note_growth(unseen_s)
        tracker.note_events(now_mono)
        grown = tracker.output_bytes - before
        self._schedule.end(grown, has_more=has_more, room_bytes=tracker.room_bytes())

    # ── its stop ──

    def _stopping(self) -> Stop:
        if self._stop is None:
            steps = self._subject.adapter.capabilities.stop
            self._stop = Stop(self._identity, steps, self._subject.limits.stop_pause_s)
        intent = self._subject.execution.intent
        if intent is not None and intent.kills:
            self._stop.hurry()
        return self._stop

    @property
    def is_kill_next(self) -> bool:
        """Whether the next stop signal kills it."""
        return self._stopping().is_kill_next

    def signal(self) -> None:
        """Send the next stop signal."""
        self._stopping().send()


def _parent(identity: ProcessIdentity) -> ProcessIdentity | None:
    """The recorder of an adopted agent: its parent, unless that is init or this runner."""
    parent = process.parent(identity.pid)
    return process.identify(parent) if parent not in (0, 1, os.getpid()) else None
