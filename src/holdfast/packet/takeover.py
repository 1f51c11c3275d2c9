"""Which person has a task's session. The manifest names them; a lock shows whether they still have it."""

from __future__ import annotations

import os

from holdfast.store import lock as locks
from holdfast.store import lock_owner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Packet


def is_held(packet: Packet, manifest: dict[str, Any]) -> bool:
    """Whether a person has the task's session."""
    lock = _lock(packet, manifest)
    return lock is not None and locks.is_held(lock)


def holder(packet: Packet, manifest: dict[str, Any]) -> str | None:
    """Who has taken over the task's session: `ada@host (process 12)`; None if no person has."""
    lock = _lock(packet, manifest)
    if lock is None or not locks.is_held(lock):
        return None
    owner, by = lock_owner.owner(lock), manifest["takeover"].get("by") or "a person"
    return f"{by} (process {owner.pid})" if owner is not None else str(by)


def _lock(packet: Packet, manifest: dict[str, Any]) -> str | None:
    """The lock of a takeover whose end is not journalled."""
    taken: dict[str, Any] = manifest.get("takeover") or {}
    if taken.get("ended", True) is not None:
        return None
    # An agent can write the manifest: only a name, no path.
    return packet.attempt(os.path.basename(str(taken.get("attempt")))).lock
