"""events.jsonl: the source of truth of a packet, one JSON object per line, appended and synced.

Its only writer is the holder of runner.lock. A reader ignores an incomplete last line. A writer that opens
the journal truncates such a line and records that in an event.
"""

from __future__ import annotations

import os

from holdfast import clock, files, quick_json
from holdfast.errors import CorruptFile
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.store import atomic
from holdfast.store.atomic import storage_failed, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.model.task import Task

_APPEND = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_FRAGMENT_BYTES = 4096
#: Only an agent's backlog brings this many events at once. Its reader has loaded msgspec, which is ten times
#: as fast.
_MANY = 64


def encode_line(event: ev.Event, at: str) -> bytes:
    """Encode one line of the journal.

    Surrogates of undecodable input are escaped, so a line is always valid UTF-8.
    """
    text = quick_json.dumps(ev.encode(event, at), ensure_ascii=False, is_compact=True)
    return (text + "\n").encode("utf-8", "backslashreplace")


def _encode_lines(events: Sequence[ev.Event], at: str) -> bytes:
    if len(events) >= _MANY:
        import msgspec

        try:
            return msgspec.json.Encoder().encode_lines(ev.encode_many(events, at))
        except (ValueError, OverflowError):
            pass  # a surrogate, or a number that is too large
    return b"".join([encode_line(event, at) for event in events])


def read(path: str) -> Iterator[tuple[str, ev.Event]]:
    """Every event with its time, in order, without a torn last line.

    Raises CorruptFile for any other bad line.
    """
    with atomic.stream(path) as file:
        number = 0
        pending: tuple[int, bytes, ValueError] | None = None
        for line in files.lines(file):
            if pending is not None:
                raise _corrupt(path, *pending)
            number += 1
            if not line.endswith(b"\n"):
                if len(line) < files.MAX_BYTES:
                    return
                raise _corrupt(path, number, line, ValueError(f"it has more than {files.MAX_BYTES} bytes"))
            try:
                data = quick_json.loads(line)
                at = data["at"]
                event = ev.decode(data)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                # Only the last line may be bad: a torn write.
                pending = (number, line, ValueError(str(error)))
                continue
            yield at, event


def fold(path: str) -> Task:
    """The task that a journal describes. Raises FileNotFoundError, CorruptFile."""
    from holdfast.model.fold import apply
    from holdfast.model.task import Task

    task = Task()
    for number, (at, event) in enumerate(read(path), 1):
        try:
            apply(task, event, at)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise _corrupt(path, number, b"", ValueError(repr(error))) from error
    if not task.created_at:
        raise CorruptFile(
            f"{path} is empty", hint="the task cannot be read; remove it with 'holdfast rm --force'"
        )
    return task


def _corrupt(path: str, number: int, line: bytes, error: ValueError) -> CorruptFile:
    return CorruptFile(
        f"{path} line {number} is not an event: {error}",
        hint="the journal is the task's source of truth and is never repaired by guessing; "
        "restore the line from a backup, or truncate the file before it",
    )


class Journal:
    """The journal, open for writing by the holder of runner.lock."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self.descriptor = os.open(path, _APPEND)
        except OSError as error:
            storage_failed(error, f"cannot open {path}")
        self.size = os.fstat(self.descriptor).st_size

    def repair(self) -> ev.JournalRepaired | None:
        """Truncate a torn last line. Returns the event that records it; the caller appends it."""
        good = self.size
        line = self._last_line(good)
        if (line.endswith(b"\n") and _is_event(line)) or not line:
            return None
        good -= len(line)
        # Save the fragment first: we may be killed between the truncation and the event that records it.
        atomic.write(self.path + ".torn", line, durable=True)
        os.ftruncate(self.descriptor, good)
        os.fdatasync(self.descriptor)
        self.size = good
        return ev.JournalRepaired(
            dropped_bytes=len(line), fragment=line[:_FRAGMENT_BYTES].decode("utf-8", "backslashreplace")
        )

    def append(self, events: Sequence[ev.Event], *, at: float | None = None) -> str:
        """Append the events with one write and one fdatasync. Returns their time.

        Raises StorageError, and then the journal is unchanged.
        """
        stamp = clock.iso(clock.now() if at is None else at)
        data = _encode_lines(events, stamp)
        try:
            failpoint("journal.before_append")
            write_all(self.descriptor, data)
            failpoint("journal.before_sync")
            os.fdatasync(self.descriptor)
        except OSError as error:
            # After a short write on a full disk, no part of a line may be left before the next one.
            os.ftruncate(self.descriptor, self.size)
            storage_failed(error, f"cannot append to {self.path}")
        failpoint("journal.after_append")
        self.size += len(data)
        return stamp

    def close(self) -> None:
        """Close the file."""
        os.close(self.descriptor)

    def _last_line(self, size: int) -> bytes:
        """The last line, with its newline if it has one. A line may be megabytes long."""
        chunk, tail = 65536, b""
        while len(tail) < size:
            start = max(0, size - len(tail) - chunk)
            tail = os.pread(self.descriptor, size - len(tail) - start, start) + tail
            cut = tail.rfind(b"\n", 0, len(tail) - 1)
            if cut >= 0:
                return tail[cut + 1 :]
        return tail


def _is_event(line: bytes) -> bool:
    try:
        data = quick_json.loads(line)
        return isinstance(data, dict) and "at" in data and ev.decode(data) is not None  # pyright: ignore
    except (ValueError, TypeError):
        return False
