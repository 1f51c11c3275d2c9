"""Which processes hold a lock: the kernel says it, whatever the lock file says (`lock_owner.py`)."""

from __future__ import annotations

import os

from holdfast.model.process import ProcessIdentity
from holdfast.store import lock as locks
from holdfast.store import lock_owner
from holdfast.store.layout import anchor_of
from holdfast.store.process import HAS_PROC, all_pids, identify

#: In the kernel's description of a descriptor: it holds an exclusive lock.
_LOCKED = b"FLOCK  ADVISORY  WRITE"
_MAX_BYTES = 4096


def holder(path: str) -> ProcessIdentity | None:
    """The process to signal about a lock: its owner if it really holds the lock, else the holder."""
    return true_owner(path) or next(filter(None, map(identify, holders(path))), None)


def true_owner(path: str) -> ProcessIdentity | None:
    """The process that signed the lock, if it really holds it."""
    signed = lock_owner.owner(path)
    return signed if signed is not None and holds(path, signed.pid) else None


def holders(path: str) -> list[int]:
    """Processes that hold the lock: its owner, signed or not, and forked copies.

    Slow: reads all of /proc.
    """
    if not HAS_PROC:
        signed = lock_owner.owner(path)
        return [signed.pid] if signed is not None and locks.is_held(path) else []
    return [pid for pid in all_pids() if pid != os.getpid() and holds(path, pid)]


def holds(path: str, pid: int) -> bool:
    """Whether the kernel says that a process holds the lock, of the file or of its anchor. Unknown (without
    /proc) counts as yes."""
    if not HAS_PROC:
        return True
    halves: list[os.stat_result] = []
    for half in (path, anchor_of(path)):
        try:
            halves.append(os.stat(half))
        except OSError:
            continue
    folder = f"/proc/{pid}"
    try:
        descriptors = os.listdir(f"{folder}/fd")
    except OSError:
        return False
    for descriptor in descriptors:
        try:
            found = os.stat(f"{folder}/fd/{descriptor}")
            if any(os.path.samestat(found, half) for half in halves) and _LOCKED in _kernel_file(
                f"{folder}/fdinfo/{descriptor}"
            ):
                return True
        except OSError:
            continue
    return False


def _kernel_file(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _MAX_BYTES)
    finally:
        os.close(descriptor)
