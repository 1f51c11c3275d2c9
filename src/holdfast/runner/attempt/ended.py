"""An execution that has ended: how, when that was noticed, and whether output is left to read."""

from __future__ import annotations

from holdfast import clock
from holdfast.runner.attempt.reading import AttemptRecords
from holdfast.runner.attempt.subject import Subject
from holdfast.runner.plan.facts import ExecutionFacts


class Ended:
    """Nothing changes any more but how much of the output was read."""

    def __init__(self, subject: Subject, records: AttemptRecords, noticed_at: float | None = None) -> None:
        self._subject = subject
        #: What its directory says.
        self.records = records
        #: When this runner noticed the death; now if it came too late for that.
        self.noticed_at = clock.now() if noticed_at is None else noticed_at
        self._has_unread_output = True

    def advance(self, ready: set[str]) -> Ended:
        """Stay: this is the last state."""
        return self

    def facts(self, ready: set[str]) -> ExecutionFacts:
        """The facts for the planner."""
        return ExecutionFacts(is_watched=True, has_ended=True, has_unread_output=self._has_unread_output)

    def read_rest(self) -> None:
        """Read the next piece of what is left of the output."""
        self._has_unread_output = self._subject.ingest.take(final=True)
