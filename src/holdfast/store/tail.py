"""Read the end of a file."""

from __future__ import annotations

import os

from holdfast import files


def end_bytes(path: str, count: int) -> bytes:
    """The last bytes; empty if the file cannot be read."""
    try:
        with files.stream(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - count))
            return file.read(count)
    except OSError:
        return b""


def end_text(path: str, count: int) -> str:
    """The last bytes as text."""
    return end_bytes(path, count).decode("utf-8", "replace")
