"""Timestamps in a shown file, which a heartbeat overwrites in place.

A heartbeat usually changes nothing else, and a new file would make the kernel wait for the disk twice. The
new text is as long as the old one, so a reader always finds a whole file.
"""

from __future__ import annotations

import os

from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The keys in the file, and what they show of Observed.
_KEYS = {
    "last_checked_at": "last_checked_at",
    "last_check": "last_checked_at",
    "last_progress_at": "last_progress_at",
}
NAMES = frozenset(_KEYS.values())


class Timestamps:
    """Where the timestamps are in a file, as it was written."""

    def __init__(self, path: str, text: bytes) -> None:
        self._path = path
        # Our keys come after fields of other versions; and inside a value a quote is escaped.
        places = {key: text.rfind(f'"{key}": "'.encode()) for key in _KEYS}
        self._spans = [(place + len(key) + 5, _KEYS[key]) for key, place in places.items() if place >= 0]

    def renew(self, old: dict[str, Any], new: dict[str, Any]) -> bool:
        """Replace the old timestamps by the new ones. False if the file has changed or the lengths differ."""
        try:
            file = atomic.open_own(self._path, os.O_RDWR)
        except OSError:
            return False
        try:
            return all(self._put(file, place, old[name], new[name]) for place, name in self._spans)
        except OSError:
            return False
        finally:
            os.close(file)

    def _put(self, file: int, place: int, old: str | None, new: str | None) -> bool:
        if old is None or new is None or len(new) != len(old):
            return False
        if os.pread(file, len(old), place) != old.encode():
            return False
        return os.pwrite(file, new.encode(), place) == len(new)
