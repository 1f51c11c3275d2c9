"""The lock of an agent's session: one session has one writer.

Most agents do not ensure that, so holdfast does.

The lock is handed to the recorder of the attempt, which holds it for as long as it lives, even if its runner
dies.
"""

from __future__ import annotations

from holdfast.errors import LockHeld
from holdfast.store import atomic
from holdfast.store import lock as locks
from holdfast.store.digest import sha256
from holdfast.store.layout import Home, Packet

#: The recorder of the previous attempt may be about to exit.
_WITHIN_S = 2.0


def path_of(home: Home, agent: str, session_id: str) -> str:
    """The lock file of a session. A session id may be any text, so the name is a digest."""
    return home.session_lock(sha256(f"{agent} {session_id}".encode())[:32])


def acquire(packet: Packet, agent: str, session_id: str, *, within_s: float = _WITHIN_S) -> locks.Lock:
    """Take the lock of a session for a task. Raises LockHeld if another attempt uses the session."""
    home = packet.home
    try:
        atomic.make_directory(home.sessions)
    except OSError as error:
        atomic.storage_failed(error, f"cannot create {home.sessions}")
    try:
        return locks.acquire(path_of(home, agent, session_id), role="runner", within_s=within_s)
    except LockHeld as error:
        raise LockHeld(
            f"another attempt is using session {session_id} of {agent}; "
            f"when it has ended: 'holdfast resume {packet.task_id}'"
        ) from error
