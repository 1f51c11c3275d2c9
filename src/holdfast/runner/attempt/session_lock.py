"""One session has one writer: most programs do not see to that, so holdfast does.

The lock of a session is handed to the recorder of its attempt and is held for as long as that lives, runner or not.
"""

from __future__ import annotations

import os

from holdfast.errors import LockHeld
from holdfast.packet import sessions
from holdfast.runner.ledger import Ledger
from holdfast.store import atomic
from holdfast.store import lock as locks

#: The recorder of the last attempt may be on its way out.
_WITHIN_S = 2.0


def take(ledger: Ledger, agent: str, session_id: str, *, within_s: float = _WITHIN_S) -> locks.Lock:
    """The lock of a session. Raises LockHeld, which says what a person can do, when another attempt lives in it."""
    home = ledger.packet.home
    try:
        os.makedirs(home.sessions, mode=0o700, exist_ok=True)
    except OSError as error:
        atomic.storage_failed(error, f"cannot make {home.sessions}")
    try:
        return locks.acquire(sessions.lock_path(home, agent, session_id), role="runner", within_s=within_s)
    except LockHeld as error:
        raise LockHeld(
            f"another attempt is live in session {session_id} of {agent}; "
            f"when it has ended: 'holdfast resume {ledger.packet.task_id}'"
        ) from error
