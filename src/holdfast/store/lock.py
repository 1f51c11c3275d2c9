"""Locks: only a held flock proves ownership.

A lock is held twice: on its file, and on a directory, its anchor (docs/decisions/0053-lock-anchors.md). A
cleaner of stale lock files removes the file, and the next process would lock another file of the same name;
it cannot take the anchor. The content of the file names the last owner (`lock_owner.py`); which processes
hold the lock, the kernel says (`lock_holders.py`).

The kernel releases a lock when its last descriptor is closed, however the owner died. Locks are released only
by closing, never with LOCK_UN, which would release every copy.
"""

from __future__ import annotations

import errno
import fcntl
import os

from holdfast import clock, files
from holdfast.errors import HoldfastError, LockHeld
from holdfast.failpoints import failpoint
from holdfast.store import atomic, lock_owner
from holdfast.store.atomic import storage_failed
from holdfast.store.layout import anchor_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: How long to retry: a forked child of the last owner may hold a copy for a moment.
CONTEST_S = 0.2
#: O_NONBLOCK: a pipe in place of a lock must not stop the opener.
_CHECK = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
#: Links are followed: a packet may be one (`layout.is_packet`).
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
#: Answers of flock where directories cannot be locked: NFS wants a descriptor that may write.
_ONLY_FILES = frozenset(
    {errno.EBADF, errno.EINVAL, errno.EISDIR, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}
)
#: Answers of open for a link, a directory and a socket in place of a lock file.
_NO_FILE = frozenset({errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.EOPNOTSUPP})


class Lock:
    """A held lock."""

    def __init__(self, path: str, role: str, descriptor: int, anchor: int, *, is_anchored: bool) -> None:
        self.path = path
        self.role = role
        self.descriptor = descriptor
        #: The open anchor. Not locked where only files can be.
        self.anchor = anchor
        self.is_anchored = is_anchored

    @property
    def descriptors(self) -> tuple[int, int]:
        """What a process must inherit to hold the lock."""
        return self.descriptor, self.anchor

    def mend(self) -> bool:
        """Put back the half of the lock that was removed: the other half still excludes all others.

        Returns False if neither is at its path any more. Then another process may hold the lock, and the
        caller must leave without writing anything.
        """
        has_file = _is_at(self.path, self.descriptor)
        has_anchor = self.is_anchored and _is_at(anchor_of(self.path), self.anchor)
        try:
            if not has_file and has_anchor:
                self._put_back(self.descriptor, _open_file(self.path, may_replace=True), self.path)
                failpoint("lock.put_back")
                sign(self.descriptor, self.role)
            elif has_file and self.is_anchored and not has_anchor:
                self._put_back(self.anchor, _open_anchor(self.path), anchor_of(self.path))
        except (OSError, HoldfastError):
            pass  # the next look tries again
        return has_file or has_anchor

    def _put_back(self, descriptor: int, new: int, path: str) -> None:
        """Let a descriptor refer to a new file, unless another process has locked that file."""
        try:
            if _flock(new) and _is_at(path, new, alone=path == self.path):
                os.dup2(new, descriptor, inheritable=False)
        finally:
            os.close(new)

    def unlink(self) -> None:
        """Remove file and anchor, before the release. Waiting processes start over with new ones."""
        atomic.forget(self.path)
        try:
            os.rmdir(anchor_of(self.path))
        except OSError:
            return  # in use, such as a packet

    def release(self) -> None:
        """Release the lock, unless a forked copy of the descriptors is still open."""
        os.close(self.descriptor)
        os.close(self.anchor)
        self.descriptor = self.anchor = -1


# ── take ──


def acquire(path: str, *, role: str, within_s: float = CONTEST_S) -> Lock:
    """Take the lock. Raises LockHeld, with the owner's pid, if it is held for longer than `within_s`."""
    deadline = clock.mono() + within_s
    while (lock := _try(path, role)) is None:
        if clock.mono() >= deadline:
            last = lock_owner.owner(path)
            raise LockHeld(
                f"{path} is held by {f'process {last.pid}' if last else 'another process'}",
                hint="that process does the work; nothing needs to be done",
            )
        clock.sleep(0.01)
    try:
        sign(lock.descriptor, role)
    except OSError:
        lock.release()
        raise
    return lock


def _try(path: str, role: str) -> Lock | None:
    """Take the lock, or None if another process has it. The anchor first: it guards the file."""
    anchor = _open_anchor(path)
    descriptor = -1
    try:
        is_anchored = True
        try:
            is_free = _flock(anchor)
        except OSError as error:
            if error.errno not in _ONLY_FILES:
                storage_failed(error, f"cannot lock {path}")
            is_anchored, is_free = False, True
        if is_free:
            failpoint("lock.anchored")
            descriptor = _open_file(path, may_replace=is_anchored)
            # A file or directory that was replaced in the meantime locks nothing.
            is_taken = _flock(descriptor) and _is_at(path, descriptor, alone=True)
            if is_taken and _is_at(anchor_of(path), anchor):
                lock = Lock(path, role, descriptor, anchor, is_anchored=is_anchored)
                anchor = descriptor = -1
                return lock
        return None
    except OSError as error:
        storage_failed(error, f"cannot lock {path}")
    finally:
        for each in (anchor, descriptor):
            if each >= 0:
                os.close(each)


def sign(descriptor: int, role: str) -> None:
    """Write the owner into a held lock file. Not durable: after a reboot the identity is void."""
    text = lock_owner.signature(role, os.getpid())
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text, 0)


def _flock(descriptor: int) -> bool:
    """Lock a file or directory. Returns whether it was free. Raises OSError."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open_anchor(path: str) -> int:
    anchor = anchor_of(path)
    try:
        try:
            return atomic.read_own_folder(anchor)
        except OSError as error:
            # A packet that is gone is not made again.
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP) or path.startswith(f"{anchor}/"):
                raise
            atomic.make_directory(anchor)
            return atomic.read_own_folder(anchor)
    except OSError as error:
        storage_failed(error, f"cannot open {path}")


def _open_file(path: str, *, may_replace: bool) -> int:
    """Open the lock file. What is no file is renamed; with `may_replace`, also a file that may not be opened.

    So is a file with a second name, which may be a user's, unless it is locked: a backup makes such names.
    """
    try:
        descriptor = atomic.open_own(path, os.O_RDWR, must_be_ours=not may_replace, is_lock=True)
        if os.fstat(descriptor).st_nlink <= 1 or not _flock(descriptor):
            return descriptor
        try:
            atomic.put_aside(path)
        finally:
            os.close(descriptor)
        return atomic.open_own(path, os.O_RDWR, must_be_ours=not may_replace, is_lock=True)
    except OSError as error:
        storage_failed(error, f"cannot open {path}")


def _is_at(path: str, descriptor: int, *, alone: bool = False) -> bool:
    """Whether the open file or directory is the one at `path`; and if it must be `alone`, whether it has no
    second name, which may be a user's."""
    try:
        there, held = os.stat(path), os.fstat(descriptor)
    except OSError:
        return False
    is_same = (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)
    return is_same and (not alone or there.st_nlink <= 1)


# ── ask ──


def is_held(path: str) -> bool:
    """Whether the lock is held.

    Tested with a shared lock, so that several processes can test at the same time.

    Raises StorageError if that is unknown: taking "unknown" for "free" would start a second agent.
    """
    unknown: OSError | None = None
    try:
        if _is_locked(path, _CHECK):
            return True
    except OSError as error:
        unknown = error
    anchor = anchor_of(path)
    try:
        # Last: of a lock that is held, usually both halves are.
        if _is_locked(anchor, _DIRECTORY):
            return True
        if unknown is None or os.path.isdir(anchor):
            return False
    except OSError as error:
        if unknown is None and error.errno in _ONLY_FILES:
            return False
        unknown = unknown or error
    return storage_failed(unknown, f"cannot check {path}")


def _is_locked(path: str, flags: int) -> bool:
    """Whether a file or directory is locked. What does not exist, or is neither, is not. Raises OSError."""
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, *_NO_FILE):
            return False
        raise
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def held_among(folder: str, names: Sequence[str]) -> set[str]:
    """Which of many lock files are held; their names are relative to a folder.

    One that is not among them may still be held, for example if its file was removed: ask `is_held`.
    """
    held: set[str] = set()
    if not names:
        return held
    try:
        root = files.open_folder(folder)
    except OSError:
        return held
    take, shared = fcntl.flock, fcntl.LOCK_SH | fcntl.LOCK_NB
    try:
        for name in names:
            try:
                descriptor = os.open(name, _CHECK, dir_fd=root)
            except OSError:
                continue
            try:
                take(descriptor, shared)
            except BlockingIOError:
                held.add(name)
            except OSError:
                continue
            finally:
                os.close(descriptor)
    finally:
        os.close(root)
    return held
