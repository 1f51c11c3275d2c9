"""Whether a notification rule is one of the user's.

Rules can run commands. An agent can write in the home, where the rules are kept, and in the outbox. So a
delivery believes only the settings and, while these cannot be read, the digests that were noted beside them
when they last could.
"""

from __future__ import annotations

import json
import os

from holdfast import paths
from holdfast.errors import HoldfastError, NotPossible
from holdfast.store import atomic, trust_dir
from holdfast.store.digest import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SCHEMA = "holdfast.trust-rules/1"


def check(rule: dict[str, Any]) -> None:
    """Raises NotPossible if it is not one of the user's rules; if the settings cannot be read, their error,
    unless it was one before."""
    from holdfast.config import settings

    try:
        is_mine = rule in settings.notify_rules()
    except HoldfastError:
        if not _was_noted(rule):
            raise
        return
    if not is_mine:
        raise NotPossible("your settings have no such rule (any more)", hint="'holdfast config show'")


def note(rules: list[dict[str, Any]]) -> None:
    """These are the user's rules; they stay so while the settings cannot be read. Raises OSError,
    StorageError."""
    digests = sorted({_digest(rule) for rule in rules})
    if digests == _noted():
        return
    trust_dir.make()
    atomic.write_json(_path(), {"schema": _SCHEMA, "digests": digests}, durable=True)


def _was_noted(rule: dict[str, Any]) -> bool:
    """Whether it was one of the user's rules when the settings could last be read."""
    return _digest(rule) in _noted()


def _noted() -> list[str]:
    try:
        record = atomic.read_json(_path()) or {}
    except HoldfastError:
        return []
    digests: list[str] = record.get("digests") or []
    return digests if record.get("schema") == _SCHEMA else []


def _digest(rule: dict[str, Any]) -> str:
    return sha256(json.dumps(rule, sort_keys=True, default=str).encode())


def _path() -> str:
    return os.path.join(paths.trust_dir(), "notify.rules")
