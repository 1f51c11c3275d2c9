"""The seals of a journal: what its runner has written, noted outside the packet, where its agent works.

Before each append, a runner adds a seal to `seals/<id>` (`home_records.py`): the length that the journal will
have, and the digest of everything up to there. So a later runner can tell three things apart: lines of a
runner, lines of anything else, and an append that a kill cut short. Most seals are not synced: after a power
failure the last ones may be missing, and then (each has the boot in which it was made) what follows the last
seal is believed. That holds only for a task that had a runner: a command that creates a task, and a runner
that leaves, close the seals, and the next runner opens them again before it writes. Both are synced, so only
the seal of the first line can get lost. Nothing here is secret: a process that can write both files can forge
both (docs/security.md).
"""

from __future__ import annotations

import os
import struct

from holdfast import files
from holdfast.errors import ForgedJournal, HoldfastError, ProcMissing
from holdfast.store import atomic, process
from holdfast.store.atomic import storage_failed
from holdfast.store.digest import running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.store.digest import Running
    from holdfast.store.layout import Packet

#: Length of the journal, its digest, and the boot.
_SEAL = struct.Struct("!Q16s8s")
#: In place of the boot: no runner has written since. Not zeros, which a power failure may leave in a file.
_CLOSED = b"\xff" * 8
_CHUNK = 1 << 20


class Seal:
    """One seal."""

    __slots__ = ("boot", "digest", "size")

    def __init__(self, size: int, digest: bytes, boot: bytes) -> None:
        self.size = size
        self.digest = digest
        self.boot = boot

    @property
    def is_open(self) -> bool:
        """Whether a runner of this boot has made it, and the seals were not closed since."""
        return self.boot == this_boot()

    @property
    def is_last(self) -> bool:
        """Whether nothing of ours can follow it: it is closed, or the machine was not restarted since.

        Unknown without /proc: then the seal counts.
        """
        try:
            return self.boot == _CLOSED or self.is_open
        except ProcMissing:
            return True


_this_boot = b""
#: The seal of a journal without any line.
_NOTHING = Seal(0, running().digest(), b"")


def this_boot() -> bytes:
    """The boot of the machine, in the form that a seal has."""
    global _this_boot
    if not _this_boot:
        digest = running()
        digest.update(process.boot_id().encode())
        _this_boot = digest.digest()[:8]
    return _this_boot


def last_two(path: str) -> tuple[Seal, Seal] | None:
    """The last seal and the one before it; None if there is none. Raises OSError if it is no file."""
    try:
        descriptor, size = files.open_sized(path)
    except FileNotFoundError:
        return None
    try:
        count = size // _SEAL.size
        if not count:
            return None
        first = max(0, count - 2)
        data = os.pread(descriptor, (count - first) * _SEAL.size, first * _SEAL.size)
    finally:
        os.close(descriptor)
    found = [Seal(*fields) for fields in _SEAL.iter_unpack(data[: len(data) // _SEAL.size * _SEAL.size])]
    return (found[-1], found[0] if len(found) > 1 else _NOTHING) if found else None


def check_found(packet: Packet, sealed: tuple[Seal, Seal] | None, lines: int) -> None:
    """Raises ForgedJournal if a task of this home has no seals, though its journal has more lines than the
    one whose seal a power failure may have taken."""
    if sealed is None and lines > 1 and os.path.lexists(packet.admission):
        hint = f"'holdfast resume {packet.task_id}' leaves it to you what of it counts"
        raise ForgedJournal(f"{packet.task_id} is in doubt: {gone(packet)}", hint=hint)


def gone(packet: Packet) -> str:
    """The reason of a doubt: there are no seals."""
    return f"the seals of the journal are gone ({packet.seals}), so it cannot be verified"


def _each(path: str) -> Iterator[Seal]:
    with files.stream(path) as file:
        while len(data := file.read(_SEAL.size)) == _SEAL.size:
            yield Seal(*_SEAL.unpack(data))


def longest(path: str, journal: int) -> tuple[int, bool]:
    """How much of an open journal some seal vouches for, and whether no seal can be missing after it."""
    by_size: dict[int, set[bytes]] = {}
    boot, is_of_this_boot, is_closed = this_boot(), False, False
    for seal in _each(path):
        by_size.setdefault(seal.size, set()).add(seal.digest)
        is_of_this_boot = is_of_this_boot or seal.boot == boot
        is_closed = seal.boot == _CLOSED
    digest, at, good = running(), 0, 0
    with files.stream_open(journal) as file:
        for size in sorted(by_size):
            while at < size and (data := file.read(min(_CHUNK, size - at))):
                digest.update(data)
                at += len(data)
            if at < size:
                break
            if digest.digest() in by_size[size]:
                good = size
    return good, is_of_this_boot or is_closed


def note_forgery(path: str, reason: str, dropped_bytes: int) -> None:
    """Note, durably, what is about to be removed from the journal: a kill may come before it is recorded."""
    atomic.make_directory(os.path.dirname(path))
    atomic.write_json(f"{path}.forged", {"reason": reason, "dropped_bytes": dropped_bytes}, durable=True)


def noted_forgery(path: str) -> tuple[str, int] | None:
    """What was noted and not recorded: reason and length; None if there is nothing."""
    try:
        data = atomic.read_json(f"{path}.forged")
    except HoldfastError:
        return None
    if data is None:
        return None
    dropped = data.get("dropped_bytes")
    return str(data.get("reason") or ""), dropped if isinstance(dropped, int) else 0


def forget_forgery(path: str) -> None:
    """It is recorded now, or its task is removed."""
    atomic.forget(f"{path}.forged")


def begin(path: str, line: bytes) -> None:
    """Seal the first line of a journal that is not there yet. Seals of a removed task go. Raises OSError."""
    digest = running()
    digest.update(line)
    atomic.make_directory(os.path.dirname(path))
    atomic.forget(path)
    descriptor = atomic.open_own(path, os.O_WRONLY | os.O_TRUNC)
    try:
        # If it is lost with the power, the record of `store.admitted` vouches for the first line.
        atomic.write_all(descriptor, _SEAL.pack(len(line), digest.digest(), _CLOSED))
    finally:
        os.close(descriptor)


def adopt(path: str, journal: str) -> None:
    """Seal a journal as it is, because a person has named its task, unless it has seals. Raises OSError."""
    if not os.path.lexists(path):
        begin(path, files.read(journal))


def digest_of(descriptor: int, size: int) -> Running:
    """The digest of the first bytes of an open file."""
    digest, at = running(), 0
    while at < size and (data := os.pread(descriptor, min(_CHUNK, size - at), at)):
        digest.update(data)
        at += len(data)
    return digest


class Seals:
    """The seals of one journal, open for its only writer."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._boot = this_boot()
        try:
            atomic.make_directory(os.path.dirname(path))
            self._descriptor = atomic.open_own(path, os.O_RDWR | os.O_APPEND)
            # A seal that was not written whole: those that follow must be found.
            os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size // _SEAL.size * _SEAL.size)
        except OSError as error:
            storage_failed(error, f"cannot open {path}")

    def add(self, size: int, digest: bytes) -> None:
        """Add a seal. Raises OSError."""
        if os.fstat(self._descriptor).st_nlink == 0:
            # It was removed. What is sealed from now on can be checked.
            os.close(self._descriptor)
            atomic.make_directory(os.path.dirname(self.path))
            self._descriptor = atomic.open_own(self.path, os.O_RDWR | os.O_APPEND)
        atomic.write_all(self._descriptor, _SEAL.pack(size, digest, self._boot))

    def open(self, size: int, digest: bytes) -> None:
        """Add a seal, durably, after which others may get lost. Raises OSError."""
        self.add(size, digest)
        os.fsync(self._descriptor)

    def finish(self, size: int, digest: bytes) -> None:
        """Close the seals, durably: no runner writes any more. Raises OSError."""
        if os.fstat(self._descriptor).st_nlink:
            atomic.write_all(self._descriptor, _SEAL.pack(size, digest, _CLOSED))
            os.fsync(self._descriptor)

    def note_forgery(self, reason: str, dropped_bytes: int) -> None:
        """Note, durably, what is about to be removed from the journal."""
        note_forgery(self.path, reason, dropped_bytes)

    def drop_last(self) -> None:
        """Remove the seal of an append that did not happen."""
        size = os.fstat(self._descriptor).st_size // _SEAL.size * _SEAL.size
        os.ftruncate(self._descriptor, max(0, size - _SEAL.size))

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
