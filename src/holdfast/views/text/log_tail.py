"""The last lines of log files."""

from __future__ import annotations

import os

from holdfast import files

_BLOCK_BYTES = 16384
#: How much of a log is searched for its last line.
_LINE_BYTES = 2048
#: How much of a log is searched for lines to quote: a damaged log may be one endless line.
_QUOTED_BYTES = 1024 * 1024
#: The length to which a quoted line is cut; `logs` prints it whole.
_QUOTED_CHARS = 400


def last_lines(path: str, count: int) -> list[str]:
    """The last lines of a log, shortened for quoting; empty if there is no log."""
    data = read_last_lines(path, count, _QUOTED_BYTES)[0]
    return [_quoted(line) for line in data.decode("utf-8", "replace").splitlines()]


def _quoted(line: str) -> str:
    if len(line) <= _QUOTED_CHARS:
        return line
    size = line.rpartition(" … (")[2]  # a line that the runner cut ends with its size
    return f"{line[:_QUOTED_CHARS]} …" + (f" ({size}" if size.endswith(" bytes)") else "")


def read_last_lines(path: str, count: int, limit: int = files.MAX_BYTES) -> tuple[bytes, int]:
    """The bytes of the last `count` lines, at most `limit`, and the offset at which they end."""
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
    """Split at newlines only: raw output may contain carriage returns."""
    parts = data.split(b"\n")
    lines = [part + b"\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def last_line(path: str) -> str:
    """The last line of a log that is not blank."""
    try:
        lines = files.read_end(path, _LINE_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
