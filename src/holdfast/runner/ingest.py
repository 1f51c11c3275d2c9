"""Ingest: an attempt's raw logs, read once and in order, into the journal and output.log.

Each journalled event carries the byte of stdout.log behind its line, and `state/ingest` holds how far output.log got, so a
runner that is killed anywhere loses no line and repeats none:

    events journalled → lines appended to output.log → position written

A successor cuts output.log back to the position, reads on from there, and journals only events beyond the last one.
"""

from __future__ import annotations

import os
import sys
import traceback

from holdfast import clock
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model import readable
from holdfast.model.task import Attempt
from holdfast.runner.ledger import Ledger
from holdfast.runner.position import Position
from holdfast.store import atomic
from holdfast.store.layout import AttemptDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.agents.base import Adapter

#: One helping; between two of them the inbox is looked at.
_TAKE_S = 0.05
_CHUNK_BYTES = 128 * 1024
#: Of a flood in which only a few lines matter.
_FLOOD_CHUNK_BYTES = 1024 * 1024
#: A longer line is dropped from the readable log and parsed by nobody; the raw log keeps it.
_LINE_BYTES = 32 * 1024 * 1024
_USAGE_BYTES = 1024 * 1024
#: What a readable line is cut to.
_SHOWN_CHARS = 2000
#: Of an agent without events, only this much of a flood is copied: its head is there already, this is the tail. Of one with
#: events, the lines that may be one are read, and no others.
_FLOOD_BYTES = 4 * 1024 * 1024
#: The same in lines, since it is lines that take time; but never less than so many bytes.
_FLOOD_LINES, _FLOOD_LEAST_BYTES = 100_000, 256 * 1024
#: A shorter line can hold no secret, and a flood has millions of them.
_HARMLESS_BYTES = 7
#: Fields of events that hold an agent's words, and what they are cut to.
_LIMITS = {
    "text": 4000,
    "summary": 200,
    "message": 1000,
    "reason": 500,
    "name": 200,
    "subtype": 100,
    "current_step": 200,
}
#: The same for each kind of event: hundreds of thousands may come in a second, and most have none or one.
_LIMITS_OF = {
    cls: [(name, limit) for name, limit in _LIMITS.items() if name in cls.field_set]
    for cls in ev.EVENTS.values()
}


class _Stream:
    """One raw log and how far it was read."""

    def __init__(self, path: str, position: int) -> None:
        self.path = path
        #: Byte behind the last whole line that was taken in.
        self.position = position
        self._descriptor = -1
        self._rest = b""
        self._is_skipping = False
        self.is_torn = False
        self.size = 0
        #: Bytes of a flood that were passed over, and not reported yet.
        self.left_out = 0
        #: How long lines are of late.
        self._line_bytes = float(_FLOOD_BYTES)

    @property
    def reached(self) -> int:
        """Byte behind the last one that was read, whole line or not."""
        return self.position + len(self._rest)

    def look(self) -> None:
        """See how long the log is now. One system call, and everything else goes by its answer."""
        if self._descriptor < 0:
            try:
                # Whoever put something else in its place must not make us wait, or read what is not ours to show.
                self._descriptor = os.open(
                    self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
                )
            except OSError:
                return
        self.size = os.fstat(self._descriptor).st_size

    @property
    def is_flooded(self) -> bool:
        """Far more is there than was read."""
        return self.size - self.position > 2 * self.flood_bytes

    @property
    def flood_bytes(self) -> int:
        """How much of a flood is worth reading."""
        return min(_FLOOD_BYTES, max(_FLOOD_LEAST_BYTES, int(self._line_bytes * _FLOOD_LINES)))

    def read_lines(self, *, final: bool, only_objects: bool = False) -> list[tuple[int, bytes]]:
        """Whole lines, each with the byte behind it. With `final`, a last line without newline counts too. With
        `only_objects`, most lines that do not begin with a brace are passed over."""
        start = self.reached
        # As much as a long line has already, so that it is not copied too often.
        helping = max(_FLOOD_CHUNK_BYTES if only_objects else _CHUNK_BYTES, len(self._rest))
        left = min(self.size - start, helping)
        data = os.pread(self._descriptor, left, start) if left > 0 else b""
        if not data and not (final and self._rest):
            return []
        data = self._rest + data
        self._rest = b""
        found: list[tuple[int, bytes]] = []
        begin = 0
        while (end := data.find(b"\n", begin)) >= 0:
            self.position += end + 1 - begin
            if not self._is_skipping:
                found.append((self.position, data[begin:end]))
            self._is_skipping = False
            begin = self._leap(data, end + 1) if only_objects else end + 1
        if not only_objects:
            self._line_bytes = len(data) / (len(found) + 1)
        rest = data[begin:]
        if final and start + left >= self.size:
            self.position += len(rest)
            self.is_torn = bool(rest)
            if rest and not self._is_skipping:
                found.append((self.position, rest))
        elif len(rest) > _LINE_BYTES:
            self.position += len(rest)
            self._is_skipping = True
            found.append((self.position, b"[a line of more than 32 MB, left out]"))
        else:
            self._rest = rest
        return found

    def _leap(self, data: bytes, begin: int) -> int:
        """From the beginning of a line to that of the next one with a brace, or of the last one."""
        if data.startswith(b"{", begin):
            return begin
        end = data.find(b"\n{", begin)
        if end < 0:
            end = data.rfind(b"\n", begin)
        if end < 0:
            return begin
        self.position += end + 1 - begin
        self.left_out += end + 1 - begin
        return end + 1

    def skip_to(self, position: int) -> None:
        self.position, self._rest, self._is_skipping = position, b"", True

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _usage_path(adapter: Adapter, directory: AttemptDir) -> str | None:
    usage_file = getattr(adapter, "usage_file", None)
    return usage_file(directory.path) if usage_file is not None else None


class Ingest:
    """Reads the logs of one attempt."""

    def __init__(
        self, ledger: Ledger, adapter: Adapter, attempt: Attempt, directory: AttemptDir, *, position: Position
    ) -> None:
        self.ledger = ledger
        self.adapter = adapter
        self.attempt = attempt
        self._position = position
        stdout, stderr = position.begin(attempt.number)
        # Whoever reads the log shall see where one attempt ends and the next begins. It goes with the first that is kept, so
        # where that was noted, so was this.
        self._mark: str | None = None
        if attempt.number > 1 and not (stdout or stderr):
            self._mark = readable.mark(attempt, has_stages=len(ledger.task.spec.stages) > 1)
        self._stdout = _Stream(directory.stdout, stdout)
        self._stderr = _Stream(directory.stderr, stderr)
        self._reader = adapter.reader()
        # Few programs announce anything on stderr; a reader that understands it has this method too.
        self._read_stderr: Callable[[bytes], list[ev.AgentEvent]] | None = getattr(
            self._reader, "read_stderr", None
        )
        # A program whose log goes to stderr has this one: what people need not read.
        self._hides_stderr: Callable[[bytes], bool] | None = getattr(self._reader, "hides_stderr", None)
        self._usage_path = _usage_path(adapter, directory)
        if adapter.capabilities.has_events:
            self._remind(directory.stdout, stdout)

    def _remind(self, stdout: str, position: int) -> None:
        """Let the reader see again what the last runner's reader saw: it may have to remember."""
        before = _Stream(stdout, 0)
        before.look()
        before.size = min(before.size, position)
        while before.reached < before.size:
            for _, line in before.read_lines(final=False):
                self._ask(self._reader.read, line)
        before.close()

    def look(self) -> None:
        """See how much there is."""
        self._stdout.look()
        self._stderr.look()

    @property
    def has_read_all(self) -> bool:
        """Everything that the last look saw."""
        return self._stdout.reached >= self._stdout.size and self._stderr.reached >= self._stderr.size

    @property
    def is_torn(self) -> bool:
        """stdout ended inside a line."""
        return self._stdout.is_torn

    def raw_bytes(self) -> int:
        """How much the agent has printed, read or not."""
        return self._stdout.size + self._stderr.size

    def take(self, *, final: bool = False) -> bool:
        """Read what is new. Returns whether there is more: an agent can print faster than we read, and requests must not
        wait for it. With `final`, everything is read, to the last byte."""
        ends_mono = clock.mono() + _TAKE_S
        self.look()
        while final or clock.mono() < ends_mono:
            self._leave_out_flood()
            before = self._stdout.reached + self._stderr.reached
            only_objects = self.adapter.capabilities.has_events and self._stdout.is_flooded
            stdout = self._stdout.read_lines(final=final, only_objects=only_objects)
            stderr = self._stderr.read_lines(final=final)
            has_moved = self._stdout.reached + self._stderr.reached != before
            is_over = not has_moved if final else self.has_read_all
            events: list[ev.AgentEvent] = []
            shown: list[str] = []
            for offset, line in stdout:
                self._take_line(offset, line, events, shown)
            for offset, line in stderr:
                self._take_stderr(offset, line, events, shown)
            if is_over and final:
                # Behind the last byte: what the reader held back came from no line of its own.
                last_words = self._ask(lambda _: self._reader.finish(), b"")
                self._take_events(self._stdout.position + 1, last_words, events, shown)
                self._take_usage(events, shown)
            if is_over and self._stdout.left_out:
                shown.append(f"[{self._stdout.left_out} bytes left out; all of it is in stdout.log]")
                self._stdout.left_out = 0
            self._keep(events, shown)
            if is_over:
                return False
        return True

    def _take_usage(self, events: list[ev.AgentEvent], shown: list[str]) -> None:
        """Some programs write their tokens into a file, at a normal end only."""
        data = atomic.read_small(self._usage_path, _USAGE_BYTES) if self._usage_path is not None else None
        if data is not None:
            found = self._ask(getattr(self.adapter, "read_usage"), data)  # noqa: B009 -- not every adapter has it
            self._take_events(self._stdout.position + 2, found, events, shown)

    def _keep(self, events: list[ev.AgentEvent], shown: list[str]) -> None:
        if not events and not shown:
            return
        if events:
            self.ledger.record(*events)
        failpoint("ingest.journalled")
        self._show(shown)
        failpoint("ingest.shown")
        self._note()

    def _show(self, lines: list[str]) -> None:
        if self._mark is not None and self._position.shown_bytes:
            lines = [self._mark, *lines]
        self._mark = None
        self._position.show(lines)

    def _take_line(self, offset: int, line: bytes, events: list[ev.AgentEvent], shown: list[str]) -> None:
        if not self.adapter.capabilities.has_events:
            shown.append(self._readable(line))
            return
        parsed = self._ask(self._reader.read, line)
        self._take_events(offset, parsed, events, shown)
        if not parsed and line and not line.startswith(b"{"):
            shown.append(self._readable(line))

    def _ask(self, read: Callable[[bytes], list[ev.AgentEvent]], line: bytes) -> list[ev.AgentEvent]:
        """What a reader makes of a line, without secrets. A line that makes it fail is no event: the raw log keeps it, and
        runner after runner would die of it."""
        try:
            events = [self._redacted(event) for event in read(line) if event.is_sound()]
            for event in events:
                readable.lines(event)
        except Exception:  # whoever reads runner.log sees it; an adapter's fault must not end the task
            print(f"a reader failed on {line[:200]!r}", file=sys.stderr)
            traceback.print_exc()
            return []
        return events

    def _take_stderr(self, offset: int, line: bytes, events: list[ev.AgentEvent], shown: list[str]) -> None:
        if self._hides_stderr is None or not self._hides_stderr(line):
            shown.append(self._readable(line))
        if self._read_stderr is not None:
            parsed = self._ask(self._read_stderr, line)
            self._take_events(offset, parsed, events, [], stream="stderr")

    def _take_events(
        self,
        offset: int,
        parsed: list[ev.AgentEvent],
        events: list[ev.AgentEvent],
        shown: list[str],
        *,
        stream: str = "stdout",
    ) -> None:
        for event in parsed:
            event.place(self.attempt.number, offset, stream)
            shown += [readable.plain(text[:_SHOWN_CHARS]) for text in readable.lines(event)]
        reached, count = self.attempt.reached.get(stream, (0, 0))
        if offset > reached:
            events += parsed
        elif offset == reached:
            # A line can hold several events, and a power cut leaves the first of them.
            events += parsed[count:]

    def _redacted(self, event: ev.AgentEvent) -> ev.AgentEvent:
        # First redacted, then cut: a secret across the cut would leave its first half. (Readers cut further out.)
        changes = {
            name: self.ledger.redact(value)[:limit]
            for name, limit in _LIMITS_OF[type(event)]
            if isinstance(value := getattr(event, name), str) and value
        }
        return event.evolve(**changes) if changes else event

    def _readable(self, line: bytes) -> str:
        if len(line) < _HARMLESS_BYTES and line.isalnum():
            return line.decode("ascii", "replace")
        cut = line[: _SHOWN_CHARS * 4]
        text = readable.plain(cut.decode("utf-8", "replace"))
        more = f" … ({len(line)} bytes)" if len(line) > len(cut) else ""
        return self.ledger.redact(text)[: _SHOWN_CHARS * 2] + more

    def _leave_out_flood(self) -> None:
        has_events = self.adapter.capabilities.has_events
        for stream, is_read in ((self._stdout, has_events), (self._stderr, self._read_stderr is not None)):
            size = stream.size
            if stream.is_flooded and not is_read:
                begin = size - stream.flood_bytes
                left_out = begin - stream.position
                stream.skip_to(begin)
                self._show([f"[{left_out} bytes left out; all of it is in {os.path.basename(stream.path)}]"])

    def _note(self) -> None:
        self._position.reach(self.attempt.number, self._stdout.position, self._stderr.position)

    def close(self) -> None:
        """Close all files."""
        self._stdout.close()
        self._stderr.close()
