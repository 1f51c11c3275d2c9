"""The key that signs the buttons of notices of a home.

It is beside the settings: in the home, an agent could write it, and a copy of the home would have it.
"""

from __future__ import annotations

import os
import stat

from holdfast.errors import NotPossible
from holdfast.store import atomic, trust_dir

_KEY_BYTES = 32


def read(home: str, *, create: bool) -> bytes | None:
    """The key of a home; None if there is none and it is not created.

    Raises NotPossible if others can write or read it, StorageError.
    """
    path = trust_dir.path_for(home, "reply-key")
    if create and not os.path.lexists(path):
        trust_dir.make()
        atomic.create(path, os.urandom(_KEY_BYTES).hex().encode() + b"\n")
    if not os.path.lexists(path):
        return None
    text = trust_dir.read(path, others=stat.S_IRWXG | stat.S_IRWXO)
    try:
        key = bytes.fromhex((text or b"").decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise NotPossible(
            f"{path} is not a key that only you can read and write",
            hint="remove it: buttons of notices that were sent then do nothing",
        )
    return key
