"""Locks: only a held flock proves ownership.

The kernel releases a lock when its last descriptor is closed, however the owner died. Locks are released only
by closing, never with LOCK_UN, which would release every copy. The content of the file names the last owner,
for information and for signals.
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

#: How long to retry: a forked child of the last owner may hold a copy for a moment.
CONTEST_S = 0.2


class Lock:
    """A held lock."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor

    def sign(self, role: str) -> None:
        """Write the owner into the lock file."""
        sign(self.descriptor, role)

    def release(self) -> None:
        """Release the lock, unless a forked copy of the descriptor is still open."""
        os.close(self.descriptor)
        self.descriptor = -1


def acquire(path: str, *, role: str, within_s: float = CONTEST_S) -> Lock:
    """Take the lock. Raises LockHeld, with the owner's pid, if it is held for longer than `within_s`."""
    deadline = clock.mono() + within_s
    descriptor = _open(path)
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(path, descriptor):
                break
            # The file was replaced in the meantime: this lock belongs to a file that is gone.
            os.close(descriptor)
            descriptor = _open(path)
            continue
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EINTR):
                os.close(descriptor)
                storage_failed(error, f"cannot lock {path}")
        if clock.mono() >= deadline:
            os.close(descriptor)
            holder = owner(path)
            raise LockHeld(
                f"{path} is held by {f'process {holder.pid}' if holder else 'another process'}",
                hint="that process does the work; nothing needs to be done",
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
    """Write the owner into a held lock file. Not durable: after a reboot the identity is void."""
    text = signature(role, os.getpid())
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text, 0)


def signature(role: str, pid: int) -> bytes:
    """The content of a lock file for a process."""
    owner = identify(pid)
    content = {
        **(owner.to_json() if owner else {}),
        "role": role,
        "at": clock.iso_now(),
        "version": __version__,
    }
    return json.dumps(content).encode() + b"\n"


def is_held(path: str) -> bool:
    """Whether the lock is held.

    Tested with a shared lock, so that several processes can test at the same time.

    Raises StorageError if that is unknown: taking "unknown" for "free" would start a second agent.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        storage_failed(error, f"cannot check {path}")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        storage_failed(error, f"cannot test the lock {path}")
    finally:
        os.close(descriptor)
    return False


def holders(path: str) -> list[int]:
    """Processes that have the lock file open: its owner, signed or not, and forked copies.

    Slow: reads all of /proc.
    """
    if not HAS_PROC:
        signed = owner(path)
        return [signed.pid] if signed is not None and is_held(path) else []
    return [pid for pid in all_pids() if pid != os.getpid() and path in open_files(pid)]


def owner(path: str) -> ProcessIdentity | None:
    """The last owner that signed the lock; None if the file is missing, torn or unsigned."""
    try:
        with open(path, "rb") as file:
            data: Any = json.loads(file.read())
        return ProcessIdentity.from_json(data)
    except (OSError, ValueError, AttributeError, TypeError):
        return None


def version(path: str) -> str | None:
    """The version of the holdfast that signed the lock last, or None."""
    return _said(path, "version")


def role(path: str) -> str | None:
    """The role in which the lock was taken last, or None."""
    return _said(path, "role")


def _said(path: str, name: str) -> str | None:
    try:
        with open(path, "rb") as file:
            data: Any = json.loads(file.read())
        return str(data[name])
    except (OSError, ValueError, TypeError, KeyError):
        return None
