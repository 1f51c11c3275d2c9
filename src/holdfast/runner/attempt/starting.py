"""An execution whose start is not journalled: its directory says whether the process exists."""

from __future__ import annotations

import os

from holdfast.model.attempt_table import Reading
from holdfast.runner.attempt import kinship, reading
from holdfast.runner.attempt.alive import Alive
from holdfast.runner.attempt.ended import Ended
from holdfast.runner.attempt.open import Opened
from holdfast.runner.attempt.reading import Found
from holdfast.runner.attempt.record_wait import RecordWait
from holdfast.runner.attempt.subject import Subject
from holdfast.runner.plan.facts import ExecutionFacts
from holdfast.store import process


def could_not_execute(found: Found) -> bool:
    """Whether the program could not be executed: there was never an agent."""
    exit_record = found.exit
    return (
        found.reading is Reading.SPAWN_FAILED
        and exit_record is not None
        and exit_record.exec_errno is not None
    )


class Starting:
    """It was just forked, or another runner left it."""

    def __init__(self, subject: Subject, opened: Opened | None) -> None:
        self._subject = subject
        self.record = RecordWait()
        #: Readable once the agent was executed or failed to be. Watched last, when nothing can fail any more.
        self._pipe, self._pipe_name = -1, subject.name("started")
        self._found: Found | None = None
        self._recorder = process.identify(opened.recorder_pid) if opened is not None else None
        if opened is not None:
            self._pipe = opened.started
            subject.close_later(self._forget_pipe)
            subject.waiter.watch(self._pipe, self._pipe_name)

    @property
    def found(self) -> Found:
        """What the last look at its directory found."""
        assert self._found is not None
        return self._found

    def advance(self, ready: set[str]) -> Starting | Ended:
        """Look at its directory."""
        if self._pipe_name in ready:
            self._forget_pipe()
        self._found = reading.look_for_end(self._subject.directory, self._subject.execution.started)
        if not could_not_execute(self._found):
            return self
        self._forget_pipe()
        return Ended(self._subject, self._found)

    def facts(self, ready: set[str]) -> ExecutionFacts:
        """What its directory says."""
        found = self.found
        is_awaited = found.reading is Reading.STARTING
        facts = self.record.facts(is_watched=False) if is_awaited else ExecutionFacts()
        return facts.evolve(reading=found.reading, exit=found.exit)

    def begin(self) -> Alive | Ended:
        """The start is journalled: watch the process, or take note of an end that is already there."""
        found = self.found
        self._forget_pipe()
        if found.exit is not None:
            return Ended(self._subject, found)
        assert found.identity is not None
        if found.reading is Reading.ORPHANED and self._is_foreign(found):
            return Ended(self._subject, found.evolve(is_foreign=True))
        return Alive(self._subject, found.identity, self._recorder)

    def _is_foreign(self, found: Found) -> bool:
        """Whether its process lives and was started from another home. While its lock is held, it was not."""
        identity = found.identity
        assert identity is not None
        return process.is_alive(identity) and kinship.is_foreign(
            identity, self._subject.directory, found.born
        )

    def _forget_pipe(self) -> None:
        """The agent was executed, or failed to be: the pipe stays readable and says nothing more."""
        if self._pipe >= 0:
            self._subject.waiter.unwatch(self._pipe)
            os.close(self._pipe)
            self._pipe = -1
