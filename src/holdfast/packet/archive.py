"""Archive ended packets: rename them to `archive/<id>`, where they stay readable; and bring them back.

Files of a live task are removed first: the captured environment (usually already gone), the bell, pids and
locks. Journal, logs and results stay, with their modes.
"""

from __future__ import annotations

import os

from holdfast.errors import LockHeld, NotPossible
from holdfast.model.status import ENDS
from holdfast.packet import inbox, load
from holdfast.store import atomic, audit, index, no_links
from holdfast.store import lock as locks
from holdfast.store.directories import keep_only, open_plain, walk
from holdfast.store.layout import AttemptDir, Packet

#: A runner that has just ended its task needs a moment to exit.
_LEAVE_S = 5.0


def check_ended(packet: Packet) -> dict[str, object]:
    """The manifest of an ended task. Raises NotPossible for a live one."""
    manifest = load.read_true(packet)
    if manifest["status"] not in ENDS or not os.path.exists(packet.task_done) or inbox.names(packet):
        raise NotPossible(
            f"{packet.task_id} has not ended: it is {manifest['status']}",
            hint=f"'holdfast stop {packet.task_id}' ends it",
        )
    return manifest


def archive(packet: Packet) -> Packet:
    """Archive an ended packet.

    Raises NotPossible, without changing anything, if it is live or the archive has its id.
    """
    home = packet.home
    target = home.archived(packet.task_id)
    check_ended(packet)
    if no_links.is_directory(home.archive) and os.path.lexists(target.path):
        raise NotPossible(f"the archive already has a task {packet.task_id}", hint=f"see {target.path}")
    try:
        lock = locks.acquire(packet.runner_lock, role="archiver", within_s=_LEAVE_S)
    except LockHeld as error:
        raise NotPossible(
            f"cannot archive {packet.task_id}: {error}", hint="try again in a moment"
        ) from error
    try:
        # Check again under the lock: a retry may have come in the meantime.
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


def restore(packet: Packet) -> Packet:
    """Bring an archived packet back to `tasks/`.

    Raises NotPossible, without changing anything, if only its summary is left or `tasks/` has its id.
    """
    home = packet.home
    target = home.packet(packet.task_id)
    if load.is_stripped(packet):
        raise NotPossible(
            f"cannot restore {packet.task_id}: 'prune --keep-summaries' left only its summary",
            hint=f"see {packet.path}",
        )
    if os.path.lexists(target.path):
        raise NotPossible(f"there is another task {packet.task_id}", hint=f"see {target.path}")
    try:
        os.rename(packet.path, target.path)
        atomic.sync_directory(home.tasks)
        atomic.sync_directory(home.archive)
    except OSError as error:
        atomic.storage_failed(error, f"cannot restore {packet.task_id}")
    index.refresh(home)
    audit.append(home, {"operation": "task.restored", "task_id": packet.task_id, "by": audit.whoami()})
    return target


def _clear(packet: Packet) -> None:
    for path in (packet.env, packet.bell):
        atomic.forget(path)
    for path in _inside(packet.attempts):
        attempt = AttemptDir(path)
        for name in _inside(path):
            if name in (attempt.lock, attempt.pid):
                atomic.forget(name)


def strip(packet: Packet) -> None:
    """Reduce an archived packet to its summary, markers and manifests."""
    # First: without a journal, seals mean that an agent has removed it. And before them the record, with
    # which a journal without seals is in doubt.
    if not os.path.islink(packet.home.admitted):
        atomic.forget(packet.admission)
    if not os.path.islink(packet.home.seals):
        atomic.forget(packet.seals)
    kept = (packet.manifest_yaml, packet.manifest, packet.done, packet.outputs)
    try:
        top = open_plain(packet.path)
    except OSError:
        return  # a link to somewhere else
    try:
        keep_only(top, *map(os.path.basename, kept))
        outputs = open_plain(os.path.basename(packet.outputs), top)
        try:
            keep_only(outputs, os.path.basename(packet.summary))
        finally:
            os.close(outputs)
    except OSError:
        return  # it has no outputs, or a link in their place
    finally:
        os.close(top)


def _inside(folder: str) -> list[str]:
    """The entries of a directory; none if an agent replaced it with a link to somewhere else."""
    if os.path.islink(folder):
        return []
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return []


def size_bytes(path: str) -> int:
    """The size of all files in a directory; links are not followed."""
    total = 0
    for folder, _, files in walk(path):
        for name in files:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except OSError:
                continue
    return total
