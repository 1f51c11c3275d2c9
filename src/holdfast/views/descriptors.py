"""Whether enough files can be opened: an event loop that cannot be made leaves noise behind."""

from __future__ import annotations

import os

from holdfast.errors import NotPossible


def need(count: int, who: str) -> None:
    """Raises NotPossible if fewer files can be opened."""
    opened: list[int] = []
    try:
        for _ in range(count):
            opened.append(os.dup(2))
    except OSError as error:
        raise NotPossible(
            f"'{who}' needs {count} more open files: {error.strerror}",
            hint="'ulimit -n 1024' raises the limit of this shell",
        ) from error
    finally:
        for each in opened:
            os.close(each)
