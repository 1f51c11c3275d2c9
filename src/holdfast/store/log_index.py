"""`output.idx`: when which part of output.log was written, for windows by time.

Records of 32 bytes, four little-endian numbers: milliseconds since 1970, the size of output.log, the size of
the journal, and the attempt (with a mark in its upper bytes). Up to this byte, the log was printed by this
time at the latest. Derived: without the file, or where it is damaged, times are unknown.
"""

from __future__ import annotations

import os

from holdfast import files
from holdfast.model.record import Record
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_FIELD, _RECORD = 8, 32
#: The last record is overwritten for this long: an agent may print a hundred times per second.
_STEP_S = 1.0
#: In the upper bytes of the last number: what is not ours is not believed.
_MARK = 0x4846 << 48
_ATTEMPT = (1 << 32) - 1
#: Milliseconds and bytes that no record of ours reaches.
_LATEST_MS, _MOST_BYTES = 1 << 47, 1 << 62
#: How many records a kill can leave that are not used: one per second. More are an agent's, and so are those
#: before them.
_DROPPED = 1000


class Point(Record):
    """A moment of a task: how long its log and its journal were."""

    #: Seconds since 1970.
    at: float
    log_bytes: int
    journal_bytes: int
    attempt: int


class LogIndexWriter:
    """Appends to the index, at most one record per second and attempt. It is opened with its first record."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        self._count = 0
        #: When the last record was begun, and its attempt.
        self._begun: tuple[float, int] = (0.0, 0)
        self._last_at = 0.0

    def add(self, point: Point, *, before: int) -> None:
        """Append a record. `before` is the size of output.log before what the record is about."""
        if self._descriptor < 0:
            self._descriptor = atomic.open_own(self._path, os.O_RDWR)
            self._cut(before)
        # Output that is read late may be older than what came before: a search needs times in order.
        at = self._last_at = max(point.at, self._last_at)
        begun, attempt = self._begun
        if attempt == point.attempt and at - begun < _STEP_S:
            self._count -= 1
        else:
            self._begun = (at, point.attempt)
        numbers = (int(at * 1000), point.log_bytes, point.journal_bytes, _MARK | point.attempt)
        data = b"".join(number.to_bytes(_FIELD, "little") for number in numbers)
        os.pwrite(self._descriptor, data, self._count * _RECORD)
        self._count += 1

    def _cut(self, log_bytes: int) -> None:
        """Drop a torn record, and those about lines that are not in output.log: its runner was killed."""
        count = os.fstat(self._descriptor).st_size // _RECORD
        least = count - _DROPPED
        while count > 0:
            if count <= least:
                count = 0
                break
            point = _point(os.pread(self._descriptor, _RECORD, (count - 1) * _RECORD))
            if point is not None and point.log_bytes <= log_bytes:
                self._last_at = point.at
                break
            count -= 1
        os.truncate(self._descriptor, count * _RECORD)
        self._count = count

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._begun = (0.0, 0)


class LogIndex:
    """Reads the index, in a few reads of 32 bytes. Without one, everything is unknown."""

    def __init__(self, path: str) -> None:
        try:
            self._file = files.stream(path)
            self._count = self._file.seek(0, os.SEEK_END) // _RECORD
        except OSError:
            self._file, self._count = None, 0

    def at_time(self, at: float) -> Point | None:
        """The last point at that time or before; None if there is none."""
        return self._last(lambda point: point.at <= at)

    def at_byte(self, log_bytes: int) -> Point | None:
        """The first point that has this byte of the log: when it was printed, at the latest."""
        found = self._index_of_last(lambda point: point.log_bytes <= log_bytes)
        return self._read(found + 1)

    def first(self) -> Point | None:
        """The oldest point."""
        return self._read(0)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file, self._count = None, 0

    def _last(self, is_before: Callable[[Point], bool]) -> Point | None:
        return self._read(self._index_of_last(is_before))

    def _index_of_last(self, is_before: Callable[[Point], bool]) -> int:
        """The number of the last record that is before what is searched; -1 if there is none."""
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            point = self._read(middle)
            if point is None:
                # Damaged: what follows is unknown.
                high = middle
            elif is_before(point):
                low = middle + 1
            else:
                high = middle
        return low - 1

    def _read(self, number: int) -> Point | None:
        if self._file is None or not 0 <= number < self._count:
            return None
        self._file.seek(number * _RECORD)
        return _point(self._file.read(_RECORD))


def _point(data: bytes) -> Point | None:
    if len(data) != _RECORD:
        return None
    at, log_bytes, journal_bytes, attempt = (
        int.from_bytes(data[begin : begin + _FIELD], "little") for begin in range(0, _RECORD, _FIELD)
    )
    is_possible = at < _LATEST_MS and log_bytes < _MOST_BYTES and journal_bytes < _MOST_BYTES
    if attempt & ~_ATTEMPT != _MARK or not is_possible:
        return None
    return Point(at=at / 1000, log_bytes=log_bytes, journal_bytes=journal_bytes, attempt=attempt & _ATTEMPT)
