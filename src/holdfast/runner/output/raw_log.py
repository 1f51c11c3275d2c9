"""A raw log of an attempt, read in lines and never more of it than a helping at a time.

Most bytes of a long log say nothing: pieces of a text that a later line says whole, and whatever the agent's children print. Where
far more is there than was read, those lines are leapt over by one search; near the end of the log every line is read.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CHUNK_BYTES = 128 * 1024
#: Of a flood in which only a few lines matter.
_FLOOD_CHUNK_BYTES = 256 * 1024
#: A longer line is dropped from the readable log and parsed by nobody; the raw log keeps it.
_LINE_BYTES = 32 * 1024 * 1024
#: Of an agent without events, only this much of a flood is copied: its head is there already, this is the tail. Of one with
#: events, the lines that may be one are read, and no others.
_FLOOD_BYTES = 4 * 1024 * 1024
#: The same in lines, since it is lines that take time; but never less than so many bytes.
_FLOOD_LINES, _FLOOD_LEAST_BYTES = 100_000, 256 * 1024


def leap_over(pieces: Iterable[str]) -> re.Pattern[bytes]:
    """What finds the newline in front of the next line that is no piece; `pieces` is how those begin."""
    begins = b"|".join(re.escape(piece.encode()) for piece in pieces)
    return re.compile(rb"\n(?!" + begins + rb")" if begins else rb"\n")


class RawLog:
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
        #: When it was last written to (wall time), as the last look found it.
        self.written_at = 0.0
        #: Bytes of a flood that were passed over, and not reported yet. Pieces do not count: nobody misses them.
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
        found = os.fstat(self._descriptor)
        self.size, self.written_at = found.st_size, found.st_mtime

    def before(self, count: int) -> bytes:
        """At most `count` bytes in front of what is read next."""
        if not self.position:
            return b""
        self.look()
        begin = max(0, self.position - count)
        return os.pread(self._descriptor, self.position - begin, begin) if self._descriptor >= 0 else b""

    @property
    def is_flooded(self) -> bool:
        """Far more is there than was read."""
        return self.size - self.position > 2 * self.flood_bytes

    @property
    def flood_bytes(self) -> int:
        """How much of a flood is worth reading."""
        return min(_FLOOD_BYTES, max(_FLOOD_LEAST_BYTES, int(self._line_bytes * _FLOOD_LINES)))

    def read_lines(
        self, *, final: bool = False, leap: re.Pattern[bytes] | None = None
    ) -> list[tuple[int, bytes]]:
        """Whole lines of the next helping, each with the byte behind it. With `final`, a last line without newline counts too.
        With `leap`, most lines that are pieces or do not begin with a brace are passed over."""
        start = self.reached
        # As much as a long line has already, so that it is not copied too often.
        chunk = max(_CHUNK_BYTES if leap is None else _FLOOD_CHUNK_BYTES, len(self._rest))
        left = min(self.size - start, chunk)
        data = os.pread(self._descriptor, left, start) if left > 0 else b""
        if not data and not (final and self._rest):
            return []
        data = self._rest + data
        self._rest = b""
        base = self.position
        found: list[tuple[int, bytes]] = []
        begin = 0
        if leap is None and not self._is_skipping:
            # Every line is wanted: cut in one go.
            lines = data.split(b"\n")
            begin = len(data) - len(lines.pop())
            at = base
            for line in lines:
                at += len(line) + 1
                found.append((at, line))
        while (end := data.find(b"\n", begin)) >= 0:
            if not self._is_skipping:
                found.append((base + end + 1, data[begin:end]))
            self._is_skipping = False
            begin = end + 1 if leap is None else self._leap(data, end, leap)
        self.position += begin
        if leap is None:
            self._line_bytes = len(data) / (len(found) + 1)
        rest = data[begin:]
        if final and start + left >= self.size:
            self.position += len(rest)
            self.is_torn = bool(rest)
            if rest and not self._is_skipping:
                found.append((self.position, rest))
        elif self._is_skipping or len(rest) > _LINE_BYTES:
            self.position += len(rest)
            if not self._is_skipping:
                found.append((self.position, b"[a line of more than 32 MB, left out]"))
            self._is_skipping = True
        else:
            self._rest = rest
        return found

    def _leap(self, data: bytes, newline: int, leap: re.Pattern[bytes]) -> int:
        """From the newline behind a line to the next line that may be an event, or to the last one."""
        while (found := leap.search(data, newline)) is not None:
            begin = found.end()
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
        """Go on at a byte, and with the first line that begins behind it."""
        self.position, self._rest, self._is_skipping = position, b"", True

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
