"""Remove packets: rename them to `tasks/.gone-*`, then delete them.

The rename is the removal. If the command is killed after it, the keeper deletes the directory.
"""

from __future__ import annotations

import os

from holdfast import ids
from holdfast.errors import LockHeld, NotPossible
from holdfast.store import atomic, no_links, seals
from holdfast.store import lock as locks
from holdfast.store.directories import remove_tree
from holdfast.store.layout import GONE_PREFIX, Packet

#: A runner that has just ended its task needs a moment to exit.
_LEAVE_S = 5.0


def remove(packet: Packet) -> None:
    """Remove a packet. Raises NotPossible, without changing anything, while it has a runner, and StorageError
    if the directory of all packets is a link."""
    home = packet.home
    no_links.refuse_link(home.tasks)
    gone = os.path.join(home.tasks, f"{GONE_PREFIX}{ids.new_ulid()}")
    try:
        # While we hold the lock, no runner can start.
        lock = locks.acquire(packet.runner_lock, role="remover", within_s=_LEAVE_S)
    except LockHeld as error:
        raise NotPossible(
            f"cannot remove {packet.task_id}: {error}", hint=f"'holdfast stop {packet.task_id}'"
        ) from error
    try:
        # Before the rename: from then on, another task may get the id, and a record.
        if not os.path.islink(home.admitted):
            atomic.forget(packet.admission)
        os.rename(packet.path, gone)
        atomic.sync_directory(home.tasks)
    except OSError as error:
        atomic.storage_failed(error, f"cannot remove {packet.task_id}")
    finally:
        lock.release()
    if not os.path.islink(home.seals):
        atomic.forget(packet.seals)
        seals.forget_forgery(packet.seals)
    remove_tree(packet.index_notes)
    remove_tree(gone)
