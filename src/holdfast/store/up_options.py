"""Whether the options of `up` that a home has are those that the user typed.

They name sources, which can run commands; an agent can write in the home. So their digest is noted where no
agent can write.
"""

from __future__ import annotations

import os

from holdfast.errors import HoldfastError
from holdfast.store import atomic, trust_dir
from holdfast.store.digest import sha256

_SCHEMA = "holdfast.trust-up/1"


def note(home: str, options: bytes) -> None:
    """`up` was run in this home with these options. Raises OSError, StorageError."""
    trust_dir.make()
    record = {"schema": _SCHEMA, "home": os.path.realpath(home), "digest": sha256(options)}
    atomic.write_json(trust_dir.path_for(home, "up"), record, durable=True)


def are_noted(home: str, options: bytes) -> bool:
    """Whether the last `up` in this home had these options."""
    try:
        record = atomic.read_json(trust_dir.path_for(home, "up")) or {}
    except HoldfastError:
        return False
    return record.get("schema") == _SCHEMA and record.get("digest") == sha256(options)
