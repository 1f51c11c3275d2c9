"""Parts of a task's readable log: a window of lines, and the lines that contain a text."""

from __future__ import annotations

import os
import sys

from holdfast import clock, files
from holdfast.store.layout import Packet
from holdfast.store.log_index import LogIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WINDOW_SCHEMA, SEARCH_SCHEMA = "holdfast.log-window/1", "holdfast.log-search/1"
#: A window is not larger, however long its lines are.
MAX_BYTES = 256 * 1024
_BLOCK_BYTES = 1024 * 1024
_LINE_CHARS = 2000


def window(
    packet: Packet,
    *,
    begin: int = 0,
    end: int | None = None,
    at: str | None = None,
    limit: int = 65536,
) -> dict[str, Any]:
    """Whole lines from byte `begin`, or those before `end`, or the last ones at a time; at most `limit`
    bytes.

    `begin` and `end` of the answer are where the next window before and after it joins without a gap. A line
    that is longer than the limit is given in pieces. `begin_at` and `end_at` are when its first and its last
    line were printed, at the latest. Times are unknown (null) in a log of an older version; `at` then gives
    the end of the log.
    """
    limit = max(1, min(limit, MAX_BYTES))
    index = LogIndex(packet.output_index)
    try:
        if at is not None:
            end = _end_at(index, at)
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
        begin_at, end_at = (_printed_at(index, byte) for byte in (begin, begin + max(0, len(data) - 1)))
    except OSError:
        begin, size, data, begin_at, end_at = 0, 0, b"", None, None
    finally:
        index.close()
    text = data.decode("utf-8", "replace")
    return {
        "schema": WINDOW_SCHEMA,
        "task_id": packet.task_id,
        "begin": begin,
        "end": begin + len(data),
        "size": size,
        "begin_at": begin_at,
        "end_at": end_at,
        "text": text,
    }


def moment(packet: Packet, at: str) -> dict[str, Any] | None:
    """How long log and journal were at a time, and the attempt that had printed last; None if unknown."""
    index = LogIndex(packet.output_index)
    try:
        point = index.at_time(clock.parse_iso(at))
    finally:
        index.close()
    return None if point is None else {**point.to_json(), "at": clock.iso(point.at)}


def _end_at(index: LogIndex, at: str) -> int:
    """The size of the log at a time; the end of the log if that is unknown."""
    seconds, first = clock.parse_iso(at), index.first()
    if first is None:
        return sys.maxsize
    point = index.at_time(seconds)
    return point.log_bytes if point is not None else 0


def _printed_at(index: LogIndex, byte: int) -> str | None:
    point = index.at_byte(byte)
    return clock.iso(point.at) if point is not None else None


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
