"""events.jsonl: the one truth of a packet, one JSON object a line, appended and synced.

Its only writer is the holder of runner.lock. A reader may see a last line that is not whole yet: it is passed over. A
writer that opens the journal cuts such a line off and says so in an event.
"""

from __future__ import annotations

import json
import os

from holdfast import clock
from holdfast.errors import CorruptFile
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.store import atomic
from holdfast.store.atomic import storage_failed, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_APPEND = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_FRAGMENT_BYTES = 4096
#: So many events come from an agent's backlog only. Its reader has loaded msgspec, which writes a line in a tenth of the time.
_MANY = 64


def encode_line(event: ev.Event, at: str) -> bytes:
    """One line of the journal. Surrogates of undecodable input become escapes, so a line is always valid UTF-8."""
    text = json.dumps(ev.encode(event, at), ensure_ascii=False, separators=(",", ":"))
    return (text + "\n").encode("utf-8", "backslashreplace")


def _encode_lines(events: Sequence[ev.Event], at: str) -> bytes:
    if len(events) >= _MANY:
        import msgspec

        try:
            return msgspec.json.Encoder().encode_lines(ev.encode_many(events, at))
        except (ValueError, OverflowError):
            pass  # a surrogate, or a number too large for it
    return b"".join([encode_line(event, at) for event in events])


def read(path: str) -> Iterator[tuple[str, ev.Event]]:
    """Each event with its time, in order, without a torn last line. Raises CorruptFile for a bad line elsewhere."""
    with open(path, "rb") as file:
        number = 0
        pending: tuple[int, bytes, ValueError] | None = None
        for line in file:
            if pending is not None:
                raise _corrupt(path, *pending)
            number += 1
            if not line.endswith(b"\n"):
                return
            try:
                data = json.loads(line)
                at = data["at"]
                event = ev.decode(data)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                # Only the last line may be bad: that is a torn write.
                pending = (number, line, ValueError(str(error)))
                continue
            yield at, event


def _corrupt(path: str, number: int, line: bytes, error: ValueError) -> CorruptFile:
    return CorruptFile(
        f"{path} line {number} is not an event: {error}",
        hint="the journal is the truth of its task and is never guessed at; restore the line from a backup, or cut "
        "the file after the line before it",
    )


class Journal:
    """The journal, opened for writing by the holder of runner.lock."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self.descriptor = os.open(path, _APPEND)
        except OSError as error:
            storage_failed(error, f"cannot open {path}")
        self.size = os.fstat(self.descriptor).st_size

    def repair(self) -> ev.JournalRepaired | None:
        """Cut off a torn end. Returns the event that says so, for the caller to append."""
        good = self.size
        line = self._last_line(good)
        if (line.endswith(b"\n") and _is_event(line)) or not line:
            return None
        good -= len(line)
        # Kept beside it first: between the cut and the event that reports it, we may be killed.
        atomic.write(self.path + ".torn", line, durable=True)
        os.ftruncate(self.descriptor, good)
        os.fdatasync(self.descriptor)
        self.size = good
        return ev.JournalRepaired(
            dropped_bytes=len(line), fragment=line[:_FRAGMENT_BYTES].decode("utf-8", "backslashreplace")
        )

    def append(self, events: Sequence[ev.Event], *, at: float | None = None) -> str:
        """Append the events, in one write and one fdatasync. Returns the time they carry.

        Raises StorageError, and then the journal is as it was before.
        """
        stamp = clock.iso(clock.now() if at is None else at)
        data = _encode_lines(events, stamp)
        try:
            failpoint("journal.before_append")
            write_all(self.descriptor, data)
            failpoint("journal.before_sync")
            os.fdatasync(self.descriptor)
        except OSError as error:
            # A short write on a full disk must not leave half a line in front of the next one.
            os.ftruncate(self.descriptor, self.size)
            storage_failed(error, f"cannot append to {self.path}")
        failpoint("journal.after_append")
        self.size += len(data)
        return stamp

    def close(self) -> None:
        """Close the file."""
        os.close(self.descriptor)

    def _last_line(self, size: int) -> bytes:
        """The last line, with its newline if it has one; a line may be megabytes long."""
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
        data = json.loads(line)
        return isinstance(data, dict) and "at" in data and ev.decode(data) is not None  # pyright: ignore
    except (ValueError, TypeError):
        return False
