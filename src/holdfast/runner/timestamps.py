"""The times in a shown file, which a heartbeat renews in place.

A heartbeat says that somebody looked, and as a rule nothing else: a new file for that would have the kernel wait for the disk twice. A
time is as long as the one before, so whoever reads meanwhile finds a whole file with one or the other in it.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The keys under which the times stand that a runner sees, and what it calls them.
_KEYS = {
    "last_checked_at": "last_checked_at",
    "last_check": "last_checked_at",
    "last_progress_at": "last_progress_at",
}
NAMES = frozenset(_KEYS.values())


class Stamps:
    """Where the times stand in a file of ours, as it was written."""

    def __init__(self, path: str, text: bytes) -> None:
        self._path = path
        # Ours come behind fields of another version; and in a value a quote has a backslash before it.
        places = {key: text.rfind(f'"{key}": "'.encode()) for key in _KEYS}
        self._spans = [(place + len(key) + 5, _KEYS[key]) for key, place in places.items() if place >= 0]

    def renew(self, old: dict[str, Any], new: dict[str, Any]) -> bool:
        """Put the new times in the place of the old ones. False where the file is not what it was, or has no room for them."""
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            return all(self._put(file, place, old.get(name), new.get(name)) for place, name in self._spans)
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
