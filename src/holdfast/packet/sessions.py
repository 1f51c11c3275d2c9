"""The lock of an agent's session, wherever a task of this home lives in it."""

from __future__ import annotations

from holdfast.store.digest import sha256
from holdfast.store.layout import Home


def lock_path(home: Home, agent: str, session_id: str) -> str:
    """Its file. A session's id may be anything, so the name is a digest."""
    return f"{home.sessions}/{sha256(f'{agent} {session_id}'.encode())[:32]}.lock"
