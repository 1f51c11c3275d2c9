"""The ends of log files."""

from __future__ import annotations

import os

_BLOCK_BYTES = 16384
#: What a line is cut to where it is quoted; 'logs' has it whole.
_QUOTED_CHARS = 400


def last_lines(path: str, count: int) -> list[str]:
    """The last lines of a log, to be quoted: none fills a screen. None when there is no log."""
    data = read_last_lines(path, count)[0]
    return [_quoted(line) for line in data.decode("utf-8", "replace").splitlines()]


def _quoted(line: str) -> str:
    if len(line) <= _QUOTED_CHARS:
        return line
    size = line.rpartition(" … (")[2]  # one that was cut before says how long it is
    return f"{line[:_QUOTED_CHARS]} …" + (f" ({size}" if size.endswith(" bytes)") else "")


def read_last_lines(path: str, count: int) -> tuple[bytes, int]:
    """The bytes of the last `count` lines, and the size of the file up to which they go."""
    try:
        with open(path, "rb") as file:
            end = start = file.seek(0, os.SEEK_END)
            data = b""
            # One newline more than lines: the one before the first of them.
            while start > 0 and data.count(b"\n") <= count:
                block = min(_BLOCK_BYTES, start)
                start = file.seek(start - block)
                data = file.read(block) + data
    except OSError:
        return b"", 0
    lines = _split(data)
    return b"".join(lines[-count:] if count else []), end


def _split(data: bytes) -> list[bytes]:
    """At newlines only: raw output redraws its lines with carriage returns."""
    parts = data.split(b"\n")
    lines = [part + b"\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def last_line(path: str) -> str:
    """The last line of a log that says something."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 2048))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
