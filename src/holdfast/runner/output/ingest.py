"""Ingest: read an attempt's raw logs in order, once, and write the journal and output.log.

Each event in the journal has the offset of the end of its line in stdout.log, and `state/ingest` has the
position up to which output.log was written. A runner that is killed at any point loses and repeats no line:

    events journalled → lines appended to output.log → time noted in output.idx → position written

The next runner truncates output.log to the position (and output.idx to that), continues there, and journals
only events after the last one in the journal.
"""

from __future__ import annotations

import gc
import os

from holdfast import clock
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model import readable
from holdfast.model.attempt import Attempt
from holdfast.model.execution import Execution
from holdfast.redact import LineRedactor
from holdfast.runner.ledger import Ledger
from holdfast.runner.output.log_batch import LogBatch
from holdfast.runner.output.position import IngestPosition
from holdfast.runner.output.raw_log import RawLog, skip_pattern
from holdfast.store import atomic
from holdfast.store.layout import AttemptDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from holdfast.agents.base import Adapter

#: Output that is read this long after it was printed has its own time.
LATE_S = 1.0
#: Duration of a batch; requests are answered between two batches.
BATCH_S = 0.25
_USAGE_BYTES = 1024 * 1024
#: A private key that began this far before our start position is still recognized.
_BEFORE_BYTES = 16 * 1024


def _usage_path(adapter: Adapter, directory: AttemptDir, *, is_sandboxed: bool) -> str | None:
    usage_file = getattr(adapter, "usage_file", None)
    folder = directory.in_sandbox if is_sandboxed else directory.path
    return usage_file(folder) if usage_file is not None else None


def _redactor(ledger: Ledger, log: RawLog) -> LineRedactor:
    """A redactor in the state that the previous runner's redactor had at this position."""
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
        position: IngestPosition,
    ) -> None:
        self.ledger = ledger
        self.adapter = adapter
        self.execution = execution
        self._position = position
        stdout, stderr = position.begin(execution.number)
        #: Lines in output.log that separate two attempts, written with the first batch: an attempt whose
        #: position is above 0 has them already. An attempt that prints nothing gets them at its end.
        self._separators: list[str] = []
        #: The first output of a plain run needs none: it has no stages.
        self._has_stages = len(ledger.task.spec.stages) > 1
        if (execution.number > 1 or self._has_stages) and not (stdout or stderr):
            lines = readable.separators(execution, has_stages=self._has_stages)
            self._separators = [ledger.redact(line) for line in lines]
        self._stdout = RawLog(directory.stdout, stdout)
        self._stderr = RawLog(directory.stderr, stderr)
        self._redact_stdout = _redactor(ledger, self._stdout)
        self._redact_stderr = _redactor(ledger, self._stderr)
        self._reader = adapter.reader()
        # Optional method of readers: the events in a line of stderr.
        self._read_stderr: Callable[[bytes], list[ev.AgentEvent]] | None = getattr(
            self._reader, "read_stderr", None
        )
        # Optional method of readers: whether a line of stderr is left out of output.log.
        self._hides_stderr: Callable[[bytes], bool] | None = getattr(self._reader, "hides_stderr", None)
        # Optional method of readers: when a line was printed, from the line itself.
        self._timestamp: Callable[[bytes], float | None] | None = getattr(self._reader, "timestamp", None)
        #: Bytes of stdout before this were printed before we came.
        self._backlog_bytes: int | None = None
        self._usage_path = _usage_path(adapter, directory, is_sandboxed=ledger.task.spec.sandbox is not None)
        self._has_events = adapter.capabilities.has_events
        self._is_final = False
        #: What the previous runner read; our reader reads it again first, to rebuild its state.
        self._before: RawLog | None = None
        if self._has_events and stdout > 0:
            self._before = RawLog(directory.stdout, 0)
            self._before.measure()
            self._before.size = min(self._before.size, stdout)

    def _skip_pattern(self) -> re.Pattern[bytes]:
        # Made when needed: compiling it touches memory that all runners share.
        return skip_pattern(self.adapter.capabilities.pieces)

    def measure(self) -> None:
        """Update the sizes of both logs."""
        self._stdout.measure()
        self._stderr.measure()

    @property
    def is_torn(self) -> bool:
        """Whether stdout ended inside a line."""
        return self._stdout.is_torn

    def raw_bytes(self) -> int:
        """Bytes that the agent has printed, read by us or not."""
        return self._stdout.size + self._stderr.size

    @property
    def is_plain(self) -> bool:
        """Whether no output of the agent affects decisions."""
        return not self._has_events and self._read_stderr is None

    @property
    def written_at(self) -> float:
        """When the agent last printed something (wall time), at the last `measure`."""
        return max(self._stdout.written_at, self._stderr.written_at)

    def take(self, *, final: bool = False) -> bool:
        """Read new output for at most `BATCH_S`. Returns whether there is more.

        An agent can print faster than we read, and requests must not wait. `final` means that the output is
        complete: an unterminated last line and the reader's last events are included.
        """
        was_enabled = gc.isenabled()
        # A batch creates many thousands of objects and no cycles; collecting takes a fifth of the time.
        gc.disable()
        try:
            return self._take(final=final)
        finally:
            if was_enabled:
                gc.enable()

    def _take(self, *, final: bool) -> bool:
        ends_mono = clock.mono() + BATCH_S
        if not self._is_final:
            # Only once after the end: children of the agent may print for ever.
            self.measure()
            self._is_final = final
        if self._backlog_bytes is None:
            self._backlog_bytes = self._stdout.size
        folder = self.ledger.task.workspace_of(self.execution.stage)
        batch = LogBatch(self.execution, self.ledger.redact, folder if len(folder) > 1 else "")
        if self._has_events:
            self._date_events(batch)
        has_more = self._replay(ends_mono) or self._read(batch, ends_mono, final=final)
        if not has_more and final:
            self._take_last_events(batch)
        if not has_more and self._stdout.left_out:
            batch.note_left_out(self._stdout.left_out, os.path.basename(self._stdout.path))
            self._stdout.left_out = 0
        self._write(batch)
        if final and not has_more:
            self._show_separators()
        return has_more

    def _date_events(self, batch: LogBatch) -> None:
        """Have the batch give its events the time at which they were printed, if that was a while ago.

        All that is read now was printed when the log was last written to, or before.
        """
        now, latest = clock.now(), self._stdout.written_at
        is_late = 0 < latest < now - LATE_S
        timestamp = self._timestamp
        if not is_late and (timestamp is None or self._stdout.position >= (self._backlog_bytes or 0)):
            return

        def printed_at(line: bytes) -> str | None:
            own = timestamp(line) if timestamp is not None else None
            at = min(own, latest) if own is not None and own > 0 else latest
            return clock.iso(at) if at < now - LATE_S else None

        batch.find_printed_at = printed_at

    def _replay(self, ends_mono: float) -> bool:
        """Rebuild the reader's state from what the previous runner read.

        Returns whether there is more of it.
        """
        before = self._before
        if before is None:
            return False
        discarded = LogBatch(self.execution, self.ledger.redact)
        reached = -1
        while reached < before.reached < before.size:
            reached = before.reached
            for offset, line in before.read_lines(skip=self._skip_pattern() if before.is_flooded else None):
                discarded.read(self._reader.read, line, offset)
            if clock.mono() >= ends_mono:
                return True
        before.close()
        self._before = None
        return False

    def _read(self, batch: LogBatch, ends_mono: float, *, final: bool) -> bool:
        """Continue both logs. Returns whether there is more."""
        stdout, stderr = self._stdout, self._stderr
        while True:
            self._leave_out_flood(batch)
            before = stdout.reached + stderr.reached
            skip = self._skip_pattern() if self._has_events and stdout.is_flooded else None
            for offset, line in stdout.read_lines(final=final, skip=skip):
                self._take_line(offset, line, batch)
            for offset, line in stderr.read_lines(final=final):
                self._take_stderr(offset, line, batch)
            if final and stdout.reached + stderr.reached == before:
                return False
            failpoint("ingest.read")
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

    def _take_last_events(self, batch: LogBatch) -> None:
        """Events that belong to no line get offsets after the last byte."""
        end = self._stdout.position
        batch.read(lambda _: self._reader.finish(), b"", end + 1)
        # Some programs write their token usage to a file when they exit normally.
        usage = atomic.read_small(self._usage_path, _USAGE_BYTES) if self._usage_path is not None else None
        if usage is not None:
            batch.read(getattr(self.adapter, "read_usage"), usage, end + 2)  # noqa: B009 -- optional

    def _leave_out_flood(self, batch: LogBatch) -> None:
        for log, is_read in ((self._stdout, self._has_events), (self._stderr, self._read_stderr is not None)):
            if log.is_flooded and not is_read:
                begin = log.size - log.flood_bytes
                batch.note_left_out(begin - log.position, os.path.basename(log.path))
                log.skip_to(begin)

    def _write(self, batch: LogBatch) -> None:
        if not batch.events and not batch.shown:
            return
        if batch.events:
            self.ledger.record(*batch.events)
        failpoint("ingest.journalled")
        added_bytes = self._show(batch.shown)
        failpoint("ingest.shown")
        self._note_shown(added_bytes)

    def _show_separators(self) -> None:
        """The separators of an attempt that has printed nothing: they say how the one before it ended, and
        what a person said. A successor of a runner that was killed here finds them at the end of the log."""
        is_attempt = isinstance(self.execution, Attempt)
        if self._separators and is_attempt and not self._position.ends_with(self._separators):
            added_bytes = self._show([])
            failpoint("ingest.words_shown")
            self._note_shown(added_bytes)

    def _note_shown(self, added_bytes: int) -> None:
        if added_bytes:
            self._position.note_time(
                self._printed_at(), self.execution.number, self.ledger.journal_bytes, added_bytes=added_bytes
            )
            failpoint("ingest.indexed")
        self._position.reach(self.execution.number, self._stdout.position, self._stderr.position)

    def _show(self, lines: list[str]) -> int:
        # The first attempt of a plain run has none, though a holdfast step may have come before it.
        is_later = isinstance(self.execution, Attempt) and self.execution.ordinal > 1
        if self._position.shown_bytes or self._has_stages or is_later:
            lines = [*self._separators, *lines]
        self._separators = []
        return self._position.show(lines)

    def _printed_at(self) -> float:
        """When what was read last was printed, at the latest."""
        now, written = clock.now(), self.written_at
        return written if 0 < written < now - LATE_S else now

    def close(self) -> None:
        """Close all files."""
        for log in (self._before, self._stdout, self._stderr):
            if log is not None:
                log.close()
