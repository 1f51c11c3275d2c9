"""An execution whose process is gone: its recorder owes the exit record."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.failpoints import failpoint
from holdfast.model.attempt_table import Reading
from holdfast.model.process import Exit, ProcessIdentity
from holdfast.runner.attempt import reading
from holdfast.runner.attempt.ended import Ended
from holdfast.runner.attempt.reading import AttemptRecords
from holdfast.runner.attempt.record_wait import OVERDUE_S, RecordWait
from holdfast.runner.attempt.subject import Subject
from holdfast.runner.plan.facts import ExecutionFacts
from holdfast.store import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.watch.death import DeathWatch


def is_over(records: AttemptRecords, *, is_recorder_writing: bool) -> bool:
    """Whether nothing more will be recorded about a process that is gone."""
    if records.exit is not None:
        return True
    return not is_recorder_writing and records.reading in (Reading.ORPHANED, Reading.NEVER_STARTED)


class Dying:
    """The death was noticed just now."""

    def __init__(self, subject: Subject, death: DeathWatch, recorder: ProcessIdentity | None) -> None:
        self._subject = subject
        self._death = death
        self._recorder = recorder
        self._noticed_at = clock.now()
        failpoint("observer.noticed")
        self.record = RecordWait()

    def advance(self, ready: set[str]) -> Dying | Ended:
        """Look for the exit record."""
        directory, started = self._subject.directory, self._subject.execution.started
        records = reading.find_end(directory, started, self._ask_kernel)
        if records.exit is not None and (status := self._other_status(records.exit)) is not None:
            # The agent wrote the record. The recorder replaces it; if it does not, we do.
            if self.record.awaited_s <= OVERDUE_S or self._write(status):
                return self
            records = records.evolve(exit=None, reading=Reading.ORPHANED)
        if is_over(records, is_recorder_writing=records.exit is None and self._is_recorder_writing()):
            return Ended(self._subject, records, self._noticed_at)
        return self

    def facts(self, ready: set[str]) -> ExecutionFacts:
        """The facts for the planner."""
        return self.record.facts(is_watched=True)

    def _other_status(self, recorded: Exit) -> int | None:
        """The status that the kernel knows, if the record has another one."""
        status = self._death.exit_status()
        return None if recorded.wait_status in (None, status) else status

    def _is_recorder_writing(self) -> bool:
        """Whether the attempt's directory was removed and its recorder, which makes it again, is alive."""
        if self._recorder is None or os.path.lexists(self._subject.directory.lock):
            return False
        return process.is_alive(self._recorder)

    def _ask_kernel(self) -> bool:
        """If another process was its parent, the kernel may still tell how it ended."""
        status = self._death.exit_status()
        if status is None:
            return False
        if self._death.descriptor < 0 and os.WIFSIGNALED(status):
            # Dead when we came: what killed recorder and runner killed it too. It is not blamed for that.
            return False
        return self._write(status)

    def _write(self, status: int) -> bool:
        return reading.write_exit(self._subject.directory, by="kernel", status=status)
