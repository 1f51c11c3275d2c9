"""Removing packets: renamed to `tasks/.gone-*`, which nobody takes for a task, and then removed.

The rename is the removal; a command that is killed after it leaves a directory that the keeper clears away.
"""

from __future__ import annotations

import os

from holdfast import ids
from holdfast.errors import LockHeld, NotPossible
from holdfast.packet.create import remove_tree
from holdfast.store import atomic
from holdfast.store import lock as locks
from holdfast.store.layout import Packet

#: A runner that has just ended its task needs a moment to leave.
_LEAVE_S = 5.0


def remove(packet: Packet) -> None:
    """Remove a packet at which nobody works. Raises NotPossible while a runner does; then nothing has changed."""
    home = packet.home
    gone = os.path.join(home.tasks, f".gone-{ids.new_ulid()}")
    try:
        # With the lock in our hand no runner starts in between.
        lock = locks.acquire(packet.runner_lock, role="remover", within_s=_LEAVE_S)
    except LockHeld as error:
        raise NotPossible(
            f"cannot remove {packet.task_id}: {error}", hint=f"'holdfast stop {packet.task_id}'"
        ) from error
    try:
        os.rename(packet.path, gone)
        atomic.sync_directory(home.tasks)
    except OSError as error:
        atomic.storage_failed(error, f"cannot remove {packet.task_id}")
    finally:
        lock.release()
    remove_tree(gone)
