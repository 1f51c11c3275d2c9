"""Read the end of a file."""

from __future__ import annotations

import os

from holdfast import files

_BLOCK_BYTES = 16384
#: How much of a file is searched for its last line.
_LINE_BYTES = 2048


def end_bytes(path: str, count: int, folder: int | None = None) -> bytes:
    """The last bytes; empty if the file cannot be read. The path may be relative to an open folder."""
    try:
        return files.read_end(path, count, folder)
    except OSError:
        return b""


def end_text(path: str, count: int) -> str:
    """The last bytes as text."""
    return end_bytes(path, count).decode("utf-8", "replace")


def last_lines(path: str, count: int, limit: int = files.MAX_BYTES) -> tuple[bytes, int]:
    """The last `count` lines, at most `limit` bytes, and the offset at which they end.

    Empty if the file cannot be read. Lines end at newlines only: raw output may contain carriage returns.
    """
    try:
        with files.stream(path) as file:
            end = start = file.seek(0, os.SEEK_END)
            data, block = b"", _BLOCK_BYTES
            # One newline more than lines: the one before the first line.
            while start > 0 and len(data) < limit and data.count(b"\n") <= count:
                start = file.seek(max(0, end - block))
                data = file.read(end - start)
                block *= 2
    except OSError:
        return b"", 0
    lines = _split(data)
    return b"".join(lines[-count:] if count else []), end


def _split(data: bytes) -> list[bytes]:
    parts = data.split(b"\n")
    lines = [part + b"\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


#: Lines of a readable log that say where output begins, not what it says (`model/readable.py`).
_HEADINGS = ("[session ", "--- attempt ", "--- retry")


def last_line(path: str, folder: int | None = None) -> str:
    """The last line of a readable log that is not blank. The path may be relative to an open folder."""
    try:
        data = files.read_end(path, _LINE_BYTES, folder)
    except OSError:
        return ""
    if not data:
        return ""
    lines = data.decode("utf-8", "replace").splitlines()
    texts = (line.strip() for line in reversed(lines) if not line.startswith(_HEADINGS))
    return next(filter(None, texts), "")
