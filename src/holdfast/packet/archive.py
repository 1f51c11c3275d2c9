"""Putting ended packets away: renamed to `archive/<id>`, where they can be read in place.

What belongs to a life goes first: the captured environment (it is gone since the end, unless somebody put it back), the
bell, pids and locks. Journal, logs and results stay, with their modes.
"""

from __future__ import annotations

import os

from holdfast.errors import LockHeld, NotPossible
from holdfast.model.status import ENDS
from holdfast.packet import inbox, load
from holdfast.packet.create import remove_tree
from holdfast.store import atomic, audit, index
from holdfast.store import lock as locks
from holdfast.store.layout import Packet

#: A runner that has just ended its task needs a moment to leave.
_LEAVE_S = 5.0
#: Of a packet and of each attempt: of no use to the dead.
_OF_LIFE = ("env.json", "bell")
_OF_ATTEMPT = ("lock", "pid")
#: What is kept where only the summaries are.
_KEPT = ("manifest.yaml", "manifest.json", "done", "outputs")


def check_ended(packet: Packet) -> dict[str, object]:
    """The manifest of a task that has ended. Raises NotPossible for another: a live task is never put away."""
    manifest = load.read_manifest(packet)
    if manifest["status"] not in ENDS or not os.path.exists(packet.task_done) or inbox.names(packet):
        raise NotPossible(
            f"{packet.task_id} has not ended: it is {manifest['status']}",
            hint=f"'holdfast stop {packet.task_id}' ends it",
        )
    return manifest


def archive(packet: Packet) -> Packet:
    """Put an ended packet away. Raises NotPossible while it is live, or when the archive has its id; then nothing has changed."""
    home = packet.home
    target = home.archived(packet.task_id)
    check_ended(packet)
    if os.path.lexists(target.path):
        raise NotPossible(
            f"the archive has a task {packet.task_id} already", hint=f"look at it: {target.path}"
        )
    try:
        lock = locks.acquire(packet.runner_lock, role="archiver", within_s=_LEAVE_S)
    except LockHeld as error:
        raise NotPossible(
            f"cannot archive {packet.task_id}: {error}", hint="try again in a moment"
        ) from error
    try:
        # With the lock in our hand: a retry may have come since we looked.
        check_ended(packet)
        atomic.make_directory(home.archive)
        _clear(packet)
        os.rename(packet.path, target.path)
        atomic.sync_directory(home.archive)
        atomic.sync_directory(home.tasks)
        atomic.forget(target.runner_lock)
    except OSError as error:
        atomic.storage_failed(error, f"cannot archive {packet.task_id}")
    finally:
        lock.release()
    index.forget(home, packet.task_id)
    audit.append(home, {"operation": "task.archived", "task_id": packet.task_id, "by": audit.whoami()})
    return target


def _clear(packet: Packet) -> None:
    for name in _OF_LIFE:
        atomic.forget(os.path.join(packet.path, name))
    for attempt in _inside(packet.attempts):
        for name in _inside(attempt):
            if os.path.basename(name) in _OF_ATTEMPT:
                atomic.forget(name)


def strip(packet: Packet) -> None:
    """Reduce an archived packet to its summary, markers and manifests."""
    for path in _inside(packet.path):
        if os.path.basename(path) not in _KEPT or os.path.islink(path):
            remove_tree(path) if os.path.isdir(path) else atomic.forget(path)
    for path in _inside(packet.outputs):
        if path != packet.summary:
            remove_tree(path) if os.path.isdir(path) else atomic.forget(path)


def _inside(folder: str) -> list[str]:
    """What lies in a directory of ours; nothing where an agent put a link in its place, which leads to somebody else's."""
    if os.path.islink(folder):
        return []
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return []


def is_stripped(packet: Packet) -> bool:
    """Whether only the summary is left."""
    return not os.path.exists(packet.journal)


def size_bytes(path: str) -> int:
    """What lies below a directory; links are not followed."""
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except OSError:
                continue
    return total
