"""`state/ingest`: how far the raw logs were read, and the size of output.log at that point.

    attempts  bytes of output.log
    attempt   bytes of its stdout.log   bytes of its stderr.log      (one line per open attempt)

It is written after the lines it counts. After a kill, the next runner truncates output.log to it and
continues from there.
"""

from __future__ import annotations

import os

from holdfast import files
from holdfast.errors import HoldfastError
from holdfast.failpoints import failpoint
from holdfast.store import atomic
from holdfast.store.atomic import write_all
from holdfast.store.layout import Packet
from holdfast.store.log_index import LogIndexWriter, Point

#: More than any file has.
_MOST_BYTES = 1 << 62


class IngestPosition:
    """output.log and `state/ingest`, for all open attempts."""

    def __init__(self, packet: Packet) -> None:
        self._note = -1
        self._path = packet.output_log
        self._index = LogIndexWriter(packet.output_index)
        self._output = atomic.open_own(packet.output_log, os.O_WRONLY | os.O_APPEND)
        try:
            atomic.make_directory(packet.state)  # an agent may have removed it
            self._note = atomic.open_own(packet.ingest, os.O_RDWR)
            self._read = self._restore()
        except OSError:
            self.close()  # otherwise each retry on a full disk leaks two descriptors
            raise
        #: Size of output.log.
        self.shown_bytes = os.fstat(self._output).st_size

    def _restore(self) -> dict[int, tuple[int, int]]:
        """Read the position of the previous runner; truncate output.log to it."""
        try:
            lines = [
                [int(field) for field in line.split()] for line in os.pread(self._note, 8192, 0).split(b"\n")
            ]
            if len(lines[0]) == 4:  # earlier versions: one attempt, in one line
                number, stdout, stderr, shown = lines[0]
                offsets = {number: (stdout, stderr)}
            else:
                count, shown = lines[0]
                offsets = {number: (stdout, stderr) for number, stdout, stderr in lines[1 : 1 + count]}
        except (ValueError, IndexError):
            return {}
        if not all(0 <= field < _MOST_BYTES for line in lines for field in line):
            return {}  # not written by holdfast
        os.truncate(self._output, min(shown, os.fstat(self._output).st_size))
        return offsets

    def begin(self, attempt: int) -> tuple[int, int]:
        """The offsets at which to continue stdout and stderr of an attempt."""
        stdout, stderr = self._read.get(attempt, (0, 0))
        failpoint("ingest.opened")
        # Written before any line is shown, so that the next runner always knows where to truncate.
        self.reach(attempt, stdout, stderr)
        return stdout, stderr

    def end(self, attempt: int) -> None:
        """Forget an attempt that is no longer read."""
        self._read.pop(attempt, None)

    def ends_with(self, lines: list[str]) -> bool:
        """Whether these are the last lines of output.log."""
        data = _encoded(lines)
        return files.read_end(self._path, len(data)) == data

    def show(self, lines: list[str]) -> int:
        """Append readable lines to output.log. Returns how many bytes they are."""
        if not lines:
            return 0
        data = _encoded(lines)
        write_all(self._output, data)
        self.shown_bytes += len(data)
        return len(data)

    def note_time(self, at: float, attempt: int, journal_bytes: int, *, added_bytes: int) -> None:
        """Note in output.idx when the last lines were printed. It is derived: an error costs only times."""
        try:
            point = Point(at=at, log_bytes=self.shown_bytes, journal_bytes=journal_bytes, attempt=attempt)
            self._index.add(point, before=self.shown_bytes - added_bytes)
        except (OSError, HoldfastError, OverflowError):  # a clock before 1970
            self._index.close()

    def reach(self, attempt: int, stdout: int, stderr: int) -> None:
        """Save how far an attempt was read, and the size of output.log."""
        self._read[attempt] = (stdout, stderr)
        # In place, with fixed width: cheaper than a rename, and a kill does not tear a single small write.
        lines = [f"{len(self._read):10d} {self.shown_bytes:20d}"]
        lines += [f"{number:10d} {out:20d} {err:20d}" for number, (out, err) in self._read.items()]
        os.pwrite(self._note, ("\n".join(lines) + "\n").encode(), 0)

    def close(self) -> None:
        """Close all files."""
        self._index.close()
        for descriptor in (self._output, self._note):
            if descriptor >= 0:
                os.close(descriptor)
        self._output = self._note = -1


def _encoded(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")
