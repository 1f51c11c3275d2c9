"""A raw log of an attempt, read line by line in chunks.

Most bytes of a long log carry no event: pieces of a text that a later line repeats in full, and output of the
agent's children. In a large backlog one regex search skips those lines; near the end of the log every line is
read.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CHUNK_BYTES = 128 * 1024
#: Chunk size in a flood, where few lines matter.
_FLOOD_CHUNK_BYTES = 256 * 1024
#: A longer line is neither parsed nor shown in output.log; the raw log keeps it.
_LINE_BYTES = 32 * 1024 * 1024
#: For an agent without events, only this much of the end of a flood is copied to output.log. For an agent
#: with events, the lines that can be an event are read.
_FLOOD_BYTES = 4 * 1024 * 1024
#: The same limit in lines, because time depends on lines; and the minimum in bytes.
_FLOOD_LINES, _FLOOD_LEAST_BYTES = 100_000, 256 * 1024


def skip_pattern(pieces: Iterable[str]) -> re.Pattern[bytes]:
    """Matches the newline before the next line that is not a piece of a later one.

    `pieces` are the prefixes of such lines.
    """
    prefixes = b"|".join(re.escape(prefix.encode()) for prefix in pieces)
    return re.compile(rb"\n(?!" + prefixes + rb")" if prefixes else rb"\n")


class RawLog:
    """A raw log and the offset up to which it was read."""

    def __init__(self, path: str, position: int) -> None:
        self.path = path
        #: Offset after the last complete line that was read.
        self.position = position
        self._descriptor = -1
        self._rest = b""
        self._is_skipping = False
        self.is_torn = False
        self.size = 0
        #: Modification time (wall time) at the last `measure`.
        self.written_at = 0.0
        #: Bytes of a flood that were skipped and not reported yet, without such pieces.
        self.left_out = 0
        #: Average length of recent lines.
        self._line_bytes = float(_FLOOD_BYTES)

    @property
    def reached(self) -> int:
        """Offset after the last byte that was read, including an incomplete line."""
        return self.position + len(self._rest)

    def measure(self) -> None:
        """Update `size` and `written_at` with one fstat; everything else relies on them."""
        if self._descriptor < 0:
            try:
                # The agent may replace the log by a FIFO or a symlink: neither block nor follow it.
                self._descriptor = os.open(
                    self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
                )
            except OSError:
                return
        status = os.fstat(self._descriptor)
        self.size, self.written_at = status.st_size, status.st_mtime

    def before(self, count: int) -> bytes:
        """At most `count` bytes before the current position."""
        if not self.position:
            return b""
        self.measure()
        begin = max(0, self.position - count)
        return os.pread(self._descriptor, self.position - begin, begin) if self._descriptor >= 0 else b""

    @property
    def is_flooded(self) -> bool:
        """Whether far more is waiting than is worth reading."""
        return self.size - self.position > 2 * self.flood_bytes

    @property
    def flood_bytes(self) -> int:
        """How many bytes at the end of a flood are worth reading."""
        return min(_FLOOD_BYTES, max(_FLOOD_LEAST_BYTES, int(self._line_bytes * _FLOOD_LINES)))

    def read_lines(
        self, *, final: bool = False, skip: re.Pattern[bytes] | None = None
    ) -> list[tuple[int, bytes]]:
        """The complete lines of the next chunk, each with the offset after it.

        With `final`, a last line without newline is included. With `skip` (see `skip_pattern`), most lines
        that are pieces or do not begin with a brace are skipped.
        """
        start = self.reached
        # At least the length of the incomplete line, so that a long line is not copied too often.
        chunk = max(_CHUNK_BYTES if skip is None else _FLOOD_CHUNK_BYTES, len(self._rest))
        left = min(self.size - start, chunk)
        data = os.pread(self._descriptor, left, start) if left > 0 else b""
        if not data and not (final and self._rest):
            return []
        data = self._rest + data
        self._rest = b""
        base = self.position
        complete: list[tuple[int, bytes]] = []
        begin = 0
        if skip is None and not self._is_skipping:
            # All lines are wanted: one split is faster.
            lines = data.split(b"\n")
            begin = len(data) - len(lines.pop())
            at = base
            for line in lines:
                at += len(line) + 1
                complete.append((at, line))
        while (end := data.find(b"\n", begin)) >= 0:
            if not self._is_skipping:
                complete.append((base + end + 1, data[begin:end]))
            self._is_skipping = False
            begin = end + 1 if skip is None else self._skip(data, end, skip)
        self.position += begin
        if skip is None:
            self._line_bytes = len(data) / (len(complete) + 1)
        rest = data[begin:]
        if final and start + left >= self.size:
            self.position += len(rest)
            self.is_torn = bool(rest)
            if rest and not self._is_skipping:
                complete.append((self.position, rest))
        elif self._is_skipping or len(rest) > _LINE_BYTES:
            self.position += len(rest)
            if not self._is_skipping:
                complete.append((self.position, b"[line longer than 32 MB left out]"))
            self._is_skipping = True
        else:
            self._rest = rest
        return complete

    def _skip(self, data: bytes, newline: int, skip: re.Pattern[bytes]) -> int:
        """The start of the next line after `newline` that can be an event, or of the last line."""
        while (match := skip.search(data, newline)) is not None:
            begin = match.end()
            if data.startswith(b"{", begin):
                return begin
            newline = data.find(b"\n{", begin)
            if newline < 0:
                last = max(data.rfind(b"\n", begin) + 1, begin)
                self.left_out += last - begin
                return last
            self.left_out += newline + 1 - begin
        return data.rfind(b"\n") + 1

    def skip_to(self, position: int) -> None:
        """Continue with the first line that begins after `position`."""
        self.position, self._rest, self._is_skipping = position, b"", True

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
