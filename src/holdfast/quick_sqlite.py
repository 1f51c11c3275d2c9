"""SQLite without importing `sqlite3`, whose Python part loads datetime, and without functools.

The C module takes `lru_cache` from functools, for its cache of statements. Loading that takes longer than
SQLite itself. In a command that has not loaded functools, it gets the same cache from its C part.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
else:

    def _load():
        if "functools" in sys.modules:
            import _sqlite3

            return _sqlite3
        from _functools import _lru_cache_wrapper

        class Functools:
            """As much of functools as the C module needs: `lru_cache(128)(call)`."""

            @staticmethod
            def lru_cache(size):
                return lambda call: _lru_cache_wrapper(call, size, False, tuple)

        sys.modules["functools"] = Functools
        try:
            import _sqlite3
        finally:
            del sys.modules["functools"]
        return _sqlite3

    try:
        sqlite3 = _load()
    except (ImportError, AttributeError, TypeError):
        import sqlite3  # an interpreter that has other parts

__all__ = ["sqlite3"]
