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


#: The separators of a readable log (`model/readable.py`): the one directly before the output of an attempt or
#: step, and those that may come before it. Between a question and the next line stands who answered.
_BEGINS = ("--- attempt ", "--- holdfast step (")
_QUESTION = "--- interrupted: "
_TELLS = ("--- attempt ", "--- retry", "--- the gate", _QUESTION)


def last_line(path: str, folder: int | None = None) -> str:
    """The last line of a readable log that is not blank and not holdfast's own. The path may be relative to
    an open folder."""
    for count in (_LINE_BYTES, _BLOCK_BYTES):
        try:
            data = files.read_end(path, count, folder)
        except OSError:
            return ""
        line = _last_said(data.decode("utf-8", "replace").splitlines(), is_cut=len(data) == count)
        if line or len(data) < count:
            return line
    return ""


def _last_said(lines: list[str], *, is_cut: bool) -> str:
    """The last line that an agent printed. A line of the agent that only looks like a separator counts: ours
    come in a block, which ends with the heading of an attempt or step. `is_cut`: the first line has lost its
    beginning."""
    in_block = False
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number]
        if line.startswith("--- ") and line.endswith(" ---"):
            if line.startswith(_BEGINS) and line.endswith(") ---"):
                in_block = True
                continue
            if in_block and (line.startswith(_TELLS) or (number and lines[number - 1].startswith(_QUESTION))):
                continue
        if in_block and is_cut and number == 0:
            return ""  # perhaps the rest of a separator
        in_block = False
        if not line.startswith("[session ") and (text := line.strip()):
            return text
    return ""
