"""Parts of a task's readable log: a window of lines, and the lines that contain a text."""

from __future__ import annotations

import os

from holdfast import files
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WINDOW_SCHEMA, SEARCH_SCHEMA = "holdfast.log-window/1", "holdfast.log-search/1"
#: A window is not larger, however long its lines are.
MOST_BYTES = 256 * 1024
_BLOCK_BYTES = 1024 * 1024
_LINE_CHARS = 2000


def window(packet: Packet, *, begin: int = 0, end: int | None = None, limit: int = 65536) -> dict[str, Any]:
    """Whole lines from byte `begin`, or with `end` those before it; at most `limit` bytes.

    `begin` and `end` of the answer are where the next window before and after it joins without a gap. A line
    that is longer than the limit is given in pieces.
    """
    limit = max(1, min(limit, MOST_BYTES))
    try:
        with files.stream(packet.output_log) as file:
            size = file.seek(0, os.SEEK_END)
            if end is not None:
                end = min(max(0, end), size)
                begin = max(0, end - limit)
                file.seek(begin)
                data = file.read(end - begin)
                if begin > 0 and (first := data.find(b"\n") + 1) < len(data):
                    # What is before the first newline is the end of an earlier line.
                    begin, data = begin + first, data[first:]
            else:
                begin = min(max(0, begin), size)
                file.seek(begin)
                data = file.read(limit)
                if begin + len(data) < size and (last := data.rfind(b"\n") + 1) > 0:
                    data = data[:last]
    except OSError:
        begin, size, data = 0, 0, b""
    text = data.decode("utf-8", "replace")
    return {
        "schema": WINDOW_SCHEMA,
        "task_id": packet.task_id,
        "begin": begin,
        "end": begin + len(data),
        "size": size,
        "text": text,
    }


def search(packet: Packet, text: str, *, begin: int = 0, limit: int = 100) -> dict[str, Any]:
    """The lines that contain `text` in any case, each with the byte at which it begins; at most `limit`.

    `end` is where a further search continues; None at the end of the log.
    """
    needle = text.casefold()
    found: list[dict[str, Any]] = []
    try:
        with files.stream(packet.output_log) as file:
            offset = file.seek(begin)
            while block := file.readlines(_BLOCK_BYTES):
                for line in block:
                    decoded = line.decode("utf-8", "replace").rstrip("\n")
                    if needle in decoded.casefold():
                        if len(found) == limit:
                            return _found(packet, found, offset)
                        found.append({"at": offset, "text": decoded[:_LINE_CHARS]})
                    offset += len(line)
    except OSError:
        pass
    return _found(packet, found, None)


def _found(packet: Packet, lines: list[dict[str, Any]], end: int | None) -> dict[str, Any]:
    return {"schema": SEARCH_SCHEMA, "task_id": packet.task_id, "lines": lines, "end": end}
