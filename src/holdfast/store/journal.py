"""events.jsonl: the source of truth of a packet, one JSON object per line, appended and synced.

Its only writer is the holder of runner.lock. A reader ignores an incomplete last line. A writer that opens
the journal truncates such a line and records that in an event.
"""

from __future__ import annotations

import errno
import os

from holdfast import clock, files, quick_json
from holdfast.errors import CorruptFile, ForgedJournal
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.store import atomic
from holdfast.store.atomic import storage_failed, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.model.task import Task
    from holdfast.store.digest import Running
    from holdfast.store.seals import Seal, Seals

_APPEND = os.O_RDWR | os.O_APPEND
_FRAGMENT_BYTES = 4096
#: Only an agent's backlog brings this many events at once. Its reader has loaded msgspec, which is ten times
#: as fast.
_MANY = 64
FORGED_HINT = "'holdfast events' shows the accepted events; the rest was saved next to events.jsonl"


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
            return msgspec.json.Encoder(enc_hook=str).encode_lines(ev.encode_many(events, at))
        except (ValueError, OverflowError):
            pass  # a surrogate, or a number that is too large
    return b"".join([encode_line(event, at) for event in events])


def read(path: str) -> Iterator[tuple[str, ev.Event]]:
    """Every event with its time, in order, without a torn last line.

    Raises CorruptFile for any other bad line.
    """
    for _, at, event in _read(path):
        yield at, event


def _read(path: str, descriptor: int = -1) -> Iterator[tuple[bytes, str, ev.Event]]:
    """As `read`, with the line. `descriptor`: the journal, if it is open."""
    with atomic.stream(path) if descriptor < 0 else files.stream_open(descriptor) as file:
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
            yield line, at, event


class Folded:
    """A task, and how much of its journal describes it."""

    def __init__(
        self, task: Task, size: int, digest: Running, *, first_line: bytes, lines: int, is_cut: bool
    ) -> None:
        self.task = task
        #: What the task is about. Whether it is admitted is asked of this, not of the file: that may have
        #: been replaced since.
        self.first_line = first_line
        self.size = size
        self.lines = lines
        #: The digest of that much.
        self.digest = digest
        #: The last append was cut short: what there is of it does not count.
        self.is_cut = is_cut


def fold(path: str) -> Task:
    """The task that a journal describes. Raises FileNotFoundError, CorruptFile."""
    return fold_sealed(path, None).task


def fold_sealed(path: str, sealed: tuple[Seal, Seal] | None, descriptor: int = -1) -> Folded:
    """The task that a journal describes, as far as its last seal, or the one before, vouches for it.

    `descriptor`: the journal, if it is open.

    Raises FileNotFoundError, CorruptFile; ForgedJournal if neither does.
    """
    from holdfast.model.fold import apply
    from holdfast.model.task import Task

    task, check, number, first_line = Task(), _SealCheck(sealed), 0, b""
    #: Events that count only if the last seal fits.
    held: list[tuple[str, ev.Event]] = []
    for number, (line, at, event) in enumerate(_read(path, descriptor), 1):
        if check.is_complete:
            break
        check.add(line)
        first_line = first_line or line
        held.append((at, event))
        if not check.is_confirmed:
            continue
        try:
            for when, each in held:
                apply(task, each, when)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise _corrupt(path, number, b"", ValueError(repr(error))) from error
        held.clear()
    is_cut = check.finish()
    if is_cut is None:
        raise ForgedJournal(f"{path} was changed by something other than holdfast", hint=FORGED_HINT)
    if not task.created_at:
        raise CorruptFile(
            f"{path} is empty", hint="the task cannot be read; remove it with 'holdfast rm --force'"
        )
    return Folded(task, check.size, check.digest, first_line=first_line, lines=number, is_cut=is_cut)


class _SealCheck:
    """Compares a journal with its last two seals, line by line. Without seals, everything is confirmed."""

    def __init__(self, sealed: tuple[Seal, Seal] | None) -> None:
        from holdfast.store.digest import running

        self.size = 0
        self.digest = running()
        self._last, self._before = sealed or (None, None)
        self._is_strict = self._last is not None and self._last.is_last
        self._last_fits = self._last is None
        #: The digest at the second last seal; None until that is reached, or if no line ends there.
        self._digest_before: Running | None = None

    @property
    def is_complete(self) -> bool:
        """Whether nothing that follows can be genuine."""
        return self._is_strict and self._last is not None and self.size >= self._last.size

    def add(self, line: bytes) -> None:
        """Add the next line."""
        self._note_before()
        self.digest.update(line)
        self.size += len(line)
        if self._last is not None and self.size == self._last.size:
            self._last_fits = self.digest.digest() == self._last.digest

    @property
    def is_confirmed(self) -> bool:
        """Whether the lines so far count. What follows the second last seal waits for the last one."""
        return self._digest_before is None or self._last_fits

    def finish(self) -> bool | None:
        """After the last line: whether the last append was cut short, and does not count. None if no seal
        fits."""
        self._note_before()
        if self._last_fits or self._last is None or self._before is None:
            return False
        before = self._digest_before
        if self.size >= self._last.size or before is None or before.digest() != self._before.digest:
            return None
        self.size, self.digest = self._before.size, before
        return True

    def _note_before(self) -> None:
        if self._before is not None and self.size == self._before.size and self._digest_before is None:
            self._digest_before = self.digest.copy()


def _corrupt(path: str, number: int, line: bytes, error: ValueError) -> CorruptFile:
    return CorruptFile(
        f"{path} line {number} is not an event: {error}",
        hint="the journal is the task's source of truth and is never repaired by guessing; "
        "restore the line from a backup, or truncate the file before it",
    )


def _fingerprint(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path, follow_symlinks=False)
    return found.st_dev, found.st_ino


def open_to_write(path: str) -> int:
    """Open a journal for its only writer, who also reads it by this descriptor: at the path there may be
    another file a moment later. Raises FileNotFoundError, CorruptFile, StorageError."""
    try:
        return atomic.open_own(path, _APPEND, must_exist=True)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in files.UNUSABLE and error.errno not in (errno.EACCES, errno.EPERM):
            raise atomic.unusable(error, path) from error
        storage_failed(error, f"cannot open {path}")


class Journal:
    """The journal, open for writing by the holder of runner.lock."""

    def __init__(
        self, path: str, *, descriptor: int = -1, folded: Folded | None = None, seals: Seals | None = None
    ) -> None:
        """`descriptor`: of `open_to_write`; closed with the journal. `folded` and `seals`: how much of it was
        read and is believed, and where appends are sealed."""
        self.path = path
        self._seals = seals
        self._digest = folded.digest if folded is not None else None
        self._believed = folded
        self.descriptor = descriptor if descriptor >= 0 else open_to_write(path)
        self._last_fingerprint = self._own_fingerprint()
        self._file, self.size = self._last_fingerprint[:2], self._last_fingerprint[2]
        self._folder = _identity(os.path.dirname(path))

    @property
    def first_line(self) -> bytes:
        """The first line, as it was read."""
        return self._believed.first_line if self._believed is not None else b""

    def repair(self) -> ev.JournalRepaired | ev.JournalForged | None:
        """Truncate a torn last line, or what is not believed. Returns the event that records it; the caller
        appends it."""
        believed = self._believed
        if believed is not None:
            good = believed.size
            length = min(self.size - good, files.MAX_BYTES)
            line = os.pread(self.descriptor, length, good) if length > 0 else b""
        else:
            line = self._last_line(self.size)
            good = self.size - len(line)
            if line.endswith(b"\n") and _is_event(line):
                return None
        if not line:
            return None
        is_torn = believed is None or believed.is_cut or not any(map(_is_event, line.splitlines(True)))
        # Save it first: we may be killed between the truncation and the event that records it.
        saved_at = self.path + ".torn" if is_torn else atomic.free_name(f"{self.path}.forged")
        atomic.write(saved_at, line, durable=True)
        reason = (
            f"another process wrote {len(line)} bytes to the journal; they were moved to "
            f"{os.path.basename(saved_at)} and are ignored"
        )
        if not is_torn and self._seals is not None:
            self._seals.note_forgery(reason, len(line))
        failpoint("journal.before_truncate")
        os.ftruncate(self.descriptor, good)
        os.fdatasync(self.descriptor)
        failpoint("journal.truncated")
        self.size, self._last_fingerprint = good, self._own_fingerprint()
        if is_torn:
            return ev.JournalRepaired(
                dropped_bytes=len(line), fragment=line[:_FRAGMENT_BYTES].decode("utf-8", "backslashreplace")
            )
        return ev.JournalForged(reason=reason, dropped_bytes=len(line))

    def open_seals(self) -> None:
        """Vouch for what is there, and note durably that a runner writes from now on."""
        if self._seals is not None and self._digest is not None:
            try:
                self._seals.open(self.size, self._digest.digest())
            except OSError as error:
                storage_failed(error, f"cannot write {self._seals.path}")

    def finish(self) -> None:
        """Its writer leaves, and is still its only one: nothing that follows is genuine, in any boot."""
        if self._seals is not None and self._digest is not None:
            try:
                self._seals.finish(self.size, self._digest.digest())
            except OSError:
                return  # as if we were killed

    @property
    def pin(self) -> str:
        """What this runner believes, for its chores: length and digest. Empty without a digest."""
        return f"{self.size}:{self._digest.digest().hex()}" if self._digest is not None else ""

    def check(self) -> None:
        """Raises ForgedJournal if another process has written to the journal since our last append."""
        seen = self._fingerprint()
        if seen == self._last_fingerprint or seen is None or self._digest is None:
            return
        from holdfast.store import seals

        is_intact = seals.digest_of(self.descriptor, self.size).digest() == self._digest.digest()
        is_ours = seen[:2] == self._file
        if is_intact and is_ours and seen[2] == self.size:
            self._last_fingerprint = seen  # a link, another mode: the content is ours
            return
        reason = "another process wrote to the journal while the task ran; its lines are ignored"
        if is_intact and not is_ours and self.size < files.MAX_BYTES:
            self._put_back(reason)
        raise ForgedJournal(reason, hint=FORGED_HINT)

    def _put_back(self, reason: str) -> None:
        """Restore what we wrote, which we have open. The next runner, or this one, starts from it."""
        data = os.pread(self.descriptor, self.size, 0)
        try:
            found = files.read(self.path)
        except OSError:
            atomic.put_aside(self.path)  # it is no file, or too large for a copy
        else:
            # A copy: if we are killed now, the task still has a journal, from which a runner can start.
            atomic.write(atomic.free_name(f"{self.path}.forged"), found, durable=True)
        if self._seals is not None:
            # Then nothing in the journal shows it: we may be killed before we have recorded it.
            self._seals.note_forgery(reason, 0)
        failpoint("journal.put_aside")
        atomic.write(self.path, data, durable=True)

    def _fingerprint(self) -> tuple[int, ...] | None:
        """Device, inode, size and times of the file at the path: they change if anything is written.

        None if the file is gone, or if our directory was renamed, with its home, and another one is at its
        path: that journal is not ours to restore.
        """
        try:
            found = os.stat(self.path, follow_symlinks=False)
            if found.st_ino != self._file[1] and self._folder != _identity(os.path.dirname(self.path)):
                return None
        except OSError:
            return None
        return _fingerprint(found)

    def _own_fingerprint(self) -> tuple[int, ...]:
        """The same of the file that we have open, after our own write."""
        return _fingerprint(os.fstat(self.descriptor))

    def append(self, events: Sequence[ev.Event], *, at: float | None = None) -> str:
        """Append the events with one write and one fdatasync. Returns their time.

        Raises StorageError, and then the journal is unchanged.
        """
        stamp = clock.iso(clock.now() if at is None else at)
        data = _encode_lines(events, stamp)
        self.check()
        digest = None
        if self._digest is not None:
            digest = self._digest.copy()
            digest.update(data)
        try:
            if self._seals is not None and digest is not None:
                self._seals.add(self.size + len(data), digest.digest())
            failpoint("journal.before_append")
            write_all(self.descriptor, data)
            failpoint("journal.before_sync")
            os.fdatasync(self.descriptor)
        except OSError as error:
            # After a short write on a full disk, no part of a line may be left before the next one.
            os.ftruncate(self.descriptor, self.size)
            self._last_fingerprint = self._own_fingerprint()
            if self._seals is not None:
                self._seals.drop_last()
            storage_failed(error, f"cannot append to {self.path}")
        failpoint("journal.after_append")
        self.size += len(data)
        seen = self._own_fingerprint()
        # Another process wrote at the same time: the next check must not take that for our own write.
        self._last_fingerprint = seen if seen[2] == self.size else (*seen[:2], -1)
        self._digest = digest
        return stamp

    def close(self) -> None:
        """Close the file."""
        os.close(self.descriptor)
        if self._seals is not None:
            self._seals.close()

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
