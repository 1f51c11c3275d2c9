"""Ingest: an attempt's raw logs, read once and in order, into the journal and output.log.

Each journalled event carries the byte of stdout.log behind its line, and `state/ingest` holds how far output.log got, so a
runner that is killed anywhere loses no line and repeats none:

    events journalled → lines appended to output.log → position written

A successor cuts output.log back to the position, reads on from there, and journals only events beyond the last one.
"""

from __future__ import annotations

import gc
import os

from holdfast import clock
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model import readable
from holdfast.model.execution import Execution
from holdfast.redact import LineRedactor
from holdfast.runner.ledger import Ledger
from holdfast.runner.output.log_batch import LogBatch
from holdfast.runner.output.position import Position
from holdfast.runner.output.raw_log import RawLog, leap_over
from holdfast.store import atomic
from holdfast.store.layout import AttemptDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.agents.base import Adapter

#: One batch; between two of them requests are answered.
_TAKE_S = 0.25
_USAGE_BYTES = 1024 * 1024
#: A key may have begun so far before the place from which we read on.
_BEFORE_BYTES = 16 * 1024


def _usage_path(adapter: Adapter, directory: AttemptDir) -> str | None:
    usage_file = getattr(adapter, "usage_file", None)
    return usage_file(directory.path) if usage_file is not None else None


def _redactor(ledger: Ledger, log: RawLog) -> LineRedactor:
    """One that knows what the last runner's had seen."""
    redact = LineRedactor(ledger.redact)
    redact.remember(log.before(_BEFORE_BYTES).decode("utf-8", "replace"))
    return redact


class Ingest:
    """Reads the logs of one attempt."""

    def __init__(
        self,
        ledger: Ledger,
        adapter: Adapter,
        execution: Execution,
        directory: AttemptDir,
        *,
        position: Position,
    ) -> None:
        self.ledger = ledger
        self.adapter = adapter
        self.execution = execution
        self._position = position
        stdout, stderr = position.begin(execution.number)
        # Whoever reads the log shall see where one attempt ends and the next begins. It goes with the first that is kept, so
        # where that was noted, so was this.
        self._mark: str | None = None
        if execution.number > 1 and not (stdout or stderr):
            self._mark = readable.mark(execution, has_stages=len(ledger.task.spec.stages) > 1)
        self._stdout = RawLog(directory.stdout, stdout)
        self._stderr = RawLog(directory.stderr, stderr)
        self._redact_stdout = _redactor(ledger, self._stdout)
        self._redact_stderr = _redactor(ledger, self._stderr)
        self._reader = adapter.reader()
        # Few programs announce anything on stderr; a reader that understands it has this method too.
        self._read_stderr: Callable[[bytes], list[ev.AgentEvent]] | None = getattr(
            self._reader, "read_stderr", None
        )
        # A program whose log goes to stderr has this one: what people need not read.
        self._hides_stderr: Callable[[bytes], bool] | None = getattr(self._reader, "hides_stderr", None)
        self._usage_path = _usage_path(adapter, directory)
        self._has_events = adapter.capabilities.has_events
        self._is_final = False
        self._leap = leap_over(adapter.capabilities.pieces)
        #: What the last runner's reader saw: ours may have to remember, and sees it again first.
        self._before: RawLog | None = None
        if self._has_events and stdout > 0:
            self._before = RawLog(directory.stdout, 0)
            self._before.look()
            self._before.size = min(self._before.size, stdout)

    def look(self) -> None:
        """See how much there is."""
        self._stdout.look()
        self._stderr.look()

    @property
    def is_torn(self) -> bool:
        """stdout ended inside a line."""
        return self._stdout.is_torn

    def raw_bytes(self) -> int:
        """How much the agent has printed, read or not."""
        return self._stdout.size + self._stderr.size

    @property
    def is_plain(self) -> bool:
        """Nothing that it prints decides anything."""
        return not self._has_events and self._read_stderr is None

    @property
    def written_at(self) -> float:
        """When it last printed something (wall time), as far as the last look could see."""
        return max(self._stdout.written_at, self._stderr.written_at)

    def take(self, *, final: bool = False) -> bool:
        """Read what is new, for a moment. Returns whether there is more: an agent can print faster than we read, and requests
        must not wait for it. With `final`, nothing comes any more: the last line and the reader's last words count too."""
        was_enabled = gc.isenabled()
        # A batch makes tens of thousands of things and no circles: looking for those would take a fifth of the time.
        gc.disable()
        try:
            return self._take(final=final)
        finally:
            if was_enabled:
                gc.enable()

    def _take(self, *, final: bool) -> bool:
        ends_mono = clock.mono() + _TAKE_S
        if not self._is_final:
            # Once only when it is over: what its children print behind it may have no end.
            self.look()
            self._is_final = final
        batch = LogBatch(self.execution, self.ledger.redact)
        has_more = self._remind(ends_mono) or self._read(batch, ends_mono, final=final)
        if not has_more and final:
            self._take_last_words(batch)
        if not has_more and self._stdout.left_out:
            batch.note_left_out(self._stdout.left_out, "stdout.log")
            self._stdout.left_out = 0
        self._keep(batch)
        return has_more

    def _remind(self, ends_mono: float) -> bool:
        """Let the reader see again what the last runner's reader saw, which told it. Returns whether there is more of it."""
        before = self._before
        if before is None:
            return False
        told = LogBatch(self.execution, self.ledger.redact)
        reached = -1
        while reached < before.reached < before.size:
            reached = before.reached
            for offset, line in before.read_lines(leap=self._leap if before.is_flooded else None):
                told.read(self._reader.read, line, offset)
            if clock.mono() >= ends_mono:
                return True
        before.close()
        self._before = None
        return False

    def _read(self, batch: LogBatch, ends_mono: float, *, final: bool) -> bool:
        """Read both logs on. Returns whether there is more."""
        stdout, stderr = self._stdout, self._stderr
        while True:
            self._leave_out_flood(batch)
            before = stdout.reached + stderr.reached
            leap = self._leap if self._has_events and stdout.is_flooded else None
            for offset, line in stdout.read_lines(final=final, leap=leap):
                self._take_line(offset, line, batch)
            for offset, line in stderr.read_lines(final=final):
                self._take_stderr(offset, line, batch)
            if final and stdout.reached + stderr.reached == before:
                return False
            if not final and stdout.reached >= stdout.size and stderr.reached >= stderr.size:
                return False
            if clock.mono() >= ends_mono:
                return True

    def _take_line(self, offset: int, line: bytes, batch: LogBatch) -> None:
        if self._has_events:
            is_event = batch.read(self._reader.read, line, offset)
            if is_event or not line or line.startswith(b"{"):
                return
        batch.show(line, self._redact_stdout)

    def _take_stderr(self, offset: int, line: bytes, batch: LogBatch) -> None:
        if self._hides_stderr is None or not self._hides_stderr(line):
            batch.show(line, self._redact_stderr)
        if self._read_stderr is not None:
            batch.read(self._read_stderr, line, offset, stream="stderr", is_shown=False)

    def _take_last_words(self, batch: LogBatch) -> None:
        """What came from no line of its own is placed behind the last byte."""
        end = self._stdout.position
        batch.read(lambda _: self._reader.finish(), b"", end + 1)
        # Some programs write their tokens into a file, at a normal end only.
        usage = atomic.read_small(self._usage_path, _USAGE_BYTES) if self._usage_path is not None else None
        if usage is not None:
            batch.read(getattr(self.adapter, "read_usage"), usage, end + 2)  # noqa: B009 -- not every adapter has it

    def _leave_out_flood(self, batch: LogBatch) -> None:
        for log, is_read in ((self._stdout, self._has_events), (self._stderr, self._read_stderr is not None)):
            if log.is_flooded and not is_read:
                begin = log.size - log.flood_bytes
                batch.note_left_out(begin - log.position, os.path.basename(log.path))
                log.skip_to(begin)

    def _keep(self, batch: LogBatch) -> None:
        if not batch.events and not batch.shown:
            return
        if batch.events:
            self.ledger.record(*batch.events)
        failpoint("ingest.journalled")
        self._show(batch.shown)
        failpoint("ingest.shown")
        self._position.reach(self.execution.number, self._stdout.position, self._stderr.position)

    def _show(self, lines: list[str]) -> None:
        if self._mark is not None and self._position.shown_bytes:
            lines = [self._mark, *lines]
        self._mark = None
        self._position.show(lines)

    def close(self) -> None:
        """Close all files."""
        for log in (self._before, self._stdout, self._stderr):
            if log is not None:
                log.close()
