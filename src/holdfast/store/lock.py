"""Locks: a held flock is the only proof of ownership.

The kernel frees a lock when the last descriptor of it is closed, however its owner died. Nobody calls LOCK_UN, which would
free every copy; a lock is freed by closing. The file's text says who took it last, for people and for signals; only the
flock says whether it is held.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os

from holdfast import __version__, clock
from holdfast.errors import LockHeld
from holdfast.model.process import ProcessIdentity
from holdfast.store.atomic import storage_failed
from holdfast.store.process import HAS_PROC, all_pids, identify, open_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: A starter that loses tries again for this long: the last owner's forked child may hold a copy for a moment.
CONTEST_S = 0.2


class Lock:
    """A held lock."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor

    def sign(self, role: str) -> None:
        """Write into the file who holds it."""
        sign(self.descriptor, role)

    def release(self) -> None:
        """Free the lock, unless a forked copy is still open."""
        os.close(self.descriptor)
        self.descriptor = -1


def acquire(path: str, *, role: str, within_s: float = CONTEST_S) -> Lock:
    """Take the lock. Raises LockHeld, with the owner's pid, when somebody has it for longer than `within_s`."""
    deadline = clock.mono() + within_s
    descriptor = _open(path)
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(path, descriptor):
                break
            # The file was replaced while we waited: what we hold is the lock of a thing that is gone.
            os.close(descriptor)
            descriptor = _open(path)
            continue
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EINTR):
                os.close(descriptor)
                storage_failed(error, f"cannot lock {path}")
        if clock.mono() >= deadline:
            os.close(descriptor)
            found = owner(path)
            raise LockHeld(
                f"{path} is held by {f'process {found.pid}' if found else 'another process'}",
                hint="that process does the work; there is nothing to do",
            )
        clock.sleep(0.01)
    lock = Lock(path, descriptor)
    lock.sign(role)
    return lock


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        storage_failed(error, f"cannot open {path}")


def _is_still(path: str, descriptor: int) -> bool:
    try:
        there, held = os.stat(path), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)


def sign(descriptor: int, role: str) -> None:
    """Write into a held lock file who holds it. Not durable: after a reboot the name is void anyway."""
    text = signature(role, os.getpid())
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text, 0)


def signature(role: str, pid: int) -> bytes:
    """What the lock file of a process says."""
    owner = identify(pid)
    said = {**(owner.to_json() if owner else {}), "role": role, "at": clock.iso_now(), "version": __version__}
    return json.dumps(said).encode() + b"\n"


def is_held(path: str) -> bool:
    """Whether somebody holds the lock now. (It is tried with a shared lock, which other askers can share.)

    Raises StorageError when that cannot be known: whoever takes "I could not look" for "free" starts a second agent.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        storage_failed(error, f"cannot look at {path}")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        storage_failed(error, f"cannot ask for {path}")
    finally:
        os.close(descriptor)
    return False


def holders(path: str) -> list[int]:
    """Processes that have the lock file open: its owner, signed or not, and forked copies. Costs a look at everything."""
    if not HAS_PROC:
        signed = owner(path)
        return [signed.pid] if signed is not None and is_held(path) else []
    return [pid for pid in all_pids() if pid != os.getpid() and path in open_files(pid)]


def owner(path: str) -> ProcessIdentity | None:
    """Who signed the lock last; None when the file is absent, torn or unsigned."""
    try:
        with open(path, "rb") as file:
            data: Any = json.loads(file.read())
        return ProcessIdentity.from_json(data)
    except (OSError, ValueError, AttributeError, TypeError):
        return None


def version(path: str) -> str | None:
    """Which holdfast signed the lock last; None when it does not say."""
    return _said(path, "version")


def role(path: str) -> str | None:
    """As what the lock was taken last; None when it does not say."""
    return _said(path, "role")


def _said(path: str, name: str) -> str | None:
    try:
        with open(path, "rb") as file:
            data: Any = json.loads(file.read())
        return str(data[name])
    except (OSError, ValueError, TypeError, KeyError):
        return None
