"""What a shared file contains: the answers that the page asks for, redacted again, within the limits.

A file leaves this machine. So everything is redacted once more, whole, before anything is cut from it: what
an older version journalled, what the task changed, what a person wrote.
"""

from __future__ import annotations

import json
import os

from holdfast import clock, files
from holdfast.errors import HoldfastError
from holdfast.model.record import Record
from holdfast.redact import LineRedactor
from holdfast.store.log_index import LogIndex
from holdfast.views.facts import diff, packet_files
from holdfast.views.facts.events import EventReader, redactor
from holdfast.views.output_refresh import refresh_once
from holdfast.views.text import amounts
from holdfast.views.web import answers, endpoints
from holdfast.workspace.snapshots.file_diffs import Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from holdfast.redact import Redactor
    from holdfast.store.layout import Home, Packet

#: The largest file.
MAX_BYTES = 5_000_000
#: What each part may have of it. The log gets the rest, at most so much.
_ANSWER, _DIFF, _STAGE_DIFFS, _EVENTS, _FILES, _LOG = 700_000, 900_000, 500_000, 600_000, 700_000, 2_000_000
#: The page shows no more events.
_MAX_EVENTS = 3000
_FILE_BYTES = 256 * 1024
#: Lines before the part of the log that is kept: the first one may belong to a private key.
_BEFORE = 64 * 1024
_POINTS = 2000
#: Answers that are gathered in another way.
_OTHERS = ("log", "search", "diff", "events")
#: No character of JSON needs more bytes in a page: `<` becomes `\u003c`.
_GROWTH = 6


class Shared(Record):
    """The data of one file."""

    task_id: str
    title: str
    #: JSON that is safe inside a page.
    data: bytes
    #: What is missing, as text.
    left_out: tuple[str, ...] = ()


def gather(home: Home, packet: Packet, *, room: int) -> Shared:
    """Everything about a task in at most `room` bytes."""
    return _Gathering(home, packet).run(room)


class _Gathering:
    def __init__(self, home: Home, packet: Packet) -> None:
        self._home, self._packet = home, packet
        self._redact = redactor(packet)
        self._left_out: list[str] = []

    def run(self, room: int) -> Shared:
        refresh_once(self._packet)
        found = {what: self._read(what) for what in endpoints.READS_OF_TASK if what not in _OTHERS}
        stages = [stage["name"] for stage in found[""].get("stages") or ()]
        paths = [file["path"] for file in found[""].get("files") or ()]
        title = str(found[""].get("manifest", {}).get("task_name") or self._packet.task_id)
        parts = {
            "at": _safe(json.dumps(clock.iso_now()).encode()),
            "task_id": _safe(json.dumps(self._packet.task_id).encode()),
            "answers": self._object(
                {
                    **{
                        what: self._fit(value, _ANSWER, _NAMES.get(what, what))
                        for what, value in found.items()
                    },
                    "diff": self._fit(self._diff(None), _DIFF, "changes"),
                }
            ),
            "stage_diffs": self._stage_diffs(stages if len(stages) > 1 else []),
            "events": self._events(),
            "files": self._files(paths),
        }
        used = sum(map(len, parts.values()))
        # The list of what is missing comes last, because everything may add to it.
        parts["log"] = self._log(min(_LOG, max(0, room - used - 20_000)))
        parts["left_out"] = _safe(json.dumps(self._left_out).encode())
        return Shared(
            task_id=self._packet.task_id,
            title=answers.clean(title),
            data=self._object(parts),
            left_out=tuple(self._left_out),
        )

    # ── parts ──

    def _read(self, what: str) -> Any:
        try:
            return _masked(endpoints.READS_OF_TASK[what](self._home, self._packet, {}), self._redact)
        except (HoldfastError, OSError) as error:
            if not what:
                raise
            return {"error": str(error)}

    def _diff(self, stage: str | None) -> Any:
        limits = Limits(total_bytes=_DIFF)
        try:
            found = diff.diff(self._home, self._packet.task_id, stage=stage, limits=limits).to_json()
        except HoldfastError as error:
            return {"error": str(error), "hint": error.hint}
        except OSError as error:
            return {"error": f"cannot read it: {error.strerror}"}
        return _masked(found, self._redact)

    def _stage_diffs(self, stages: list[str]) -> bytes:
        found: dict[str, bytes] = {}
        room = _STAGE_DIFFS
        for at, stage in enumerate(stages):
            if room < 10_000:
                self._left_out.append(
                    f"the changes of {amounts.plural(len(stages) - at, 'stage')} by themselves"
                )
                break
            found[stage] = self._fit(self._diff(stage), room, f"changes of {stage}")
            room -= len(found[stage])
        return self._object(found)

    def _events(self) -> bytes:
        """The last events."""
        kept: list[bytes] = []
        count = size = 0
        for _, event in EventReader(self._packet).placed():
            count += 1
            kept.append(_safe(answers.encode(_masked(event, self._redact), limit=_EVENTS // 10)))
            size += len(kept[-1]) + 1
            while size > _EVENTS or len(kept) > _MAX_EVENTS:
                size -= len(kept.pop(0)) + 1
        if count > len(kept):
            self._left_out.append(f"the first {amounts.plural(count - len(kept), 'event')} of {count}")
        return b"[" + b",".join(kept) + b"]"

    def _files(self, paths: list[str]) -> bytes:
        found: dict[str, bytes] = {}
        room, missing = _FILES, 0
        for path in paths:
            try:
                text, cut = packet_files.read(self._packet, path, limit=_FILE_BYTES)
            except HoldfastError:
                continue
            text = "\n".join(map(answers.clean, _masked_lines(text.split("\n"), self._redact)))
            if cut:
                text += f"\n… {amounts.size(cut)} left out"
                self._left_out.append(f"the last {amounts.size(cut)} of {path}")
            encoded = _safe(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace"))
            if len(encoded) > room:
                missing += 1
                continue
            found[path] = encoded
            room -= len(encoded)
        if missing:
            self._left_out.append(f"{amounts.plural(missing, 'file')} of the packet")
        return self._object(found)

    def _log(self, room: int) -> bytes:
        """The end of the log, and how long it was at which time."""
        limit = room
        while True:
            begin, size, text, ends = self._end_of_log(limit)
            points = _points(self._packet, begin, ends)
            encoded = _safe(
                json.dumps({"text": text, "points": points}, ensure_ascii=False).encode("utf-8", "replace")
            )
            if len(encoded) <= room + 1000 or limit < 1000:
                break
            limit = limit * room // len(encoded) * 9 // 10
        if begin:
            self._left_out.append(f"the first {amounts.size(begin)} of {amounts.size(size)} of the log")
        return encoded

    def _end_of_log(self, limit: int) -> tuple[int, int, str, list[tuple[int, int]]]:
        """Where the kept part begins, the size of the log, the part, and where its lines end in both."""
        try:
            with files.stream(self._packet.output_log) as file:
                size = file.seek(0, os.SEEK_END)
                begin = max(0, size - limit)
                start = max(0, begin - _BEFORE)
                file.seek(start)
                data = file.read(size - start)
        except OSError:
            return 0, 0, "", []
        redact = LineRedactor(self._redact)
        lines: list[str] = []
        ends: list[tuple[int, int]] = []
        place, length, first = start, 0, -1
        for raw in data.splitlines(keepends=True) if b"\r" not in data else _lines(data):
            line = answers.clean(redact(raw.decode("utf-8", "replace").rstrip("\n")))
            # A line that began before the part is not in it, unless nothing else is.
            if place >= begin or (place + len(raw) >= size and first < 0 and place > start):
                first = place if first < 0 else first
                lines.append(line)
                length += len(line.encode("utf-8", "replace")) + 1
                ends.append((place + len(raw), length))
            place += len(raw)
        if first < 0 and size:
            return size, size, "", []
        text = "\n".join(lines) + ("\n" if data.endswith(b"\n") else "")
        return max(first, 0), size, text, ends

    # ── sizes ──

    def _fit(self, value: Any, room: int, name: str) -> bytes:
        """A value as JSON for the page, cut until it fits."""
        for limit in (room, room // 3, room // _GROWTH):
            encoded = answers.encode(value, limit=limit)
            safe = _safe(encoded)
            if len(safe) <= room:
                break
        if b'"is_cut":true' in encoded:
            self._left_out.append(f"parts of: {name}")
        return safe

    def _object(self, parts: dict[str, bytes]) -> bytes:
        pairs = (_safe(json.dumps(name).encode()) + b":" + value for name, value in parts.items())
        return b"{" + b",".join(pairs) + b"}"


_NAMES = {"": "details", "usage": "usage over time", "replay": "moments for the replay"}


def _lines(data: bytes) -> list[bytes]:
    """Lines that end with a newline, and only with that."""
    pieces = data.split(b"\n")
    return [piece + b"\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def _safe(encoded: bytes) -> bytes:
    """JSON that can be inside a script element: nothing in it can be markup."""
    return encoded.replace(b"<", b"\\u003c").replace(b">", b"\\u003e").replace(b"&", b"\\u0026")


def _points(packet: Packet, begin: int, ends: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Times in ms, and how long the kept part of the log was then."""
    index = LogIndex(packet.output_index)
    found: list[tuple[int, int]] = []
    try:
        first = index.first()
        if first is not None and first.log_bytes > begin:
            found.append((int(first.at * 1000) - 1, 0))
        last_at = -1.0
        for own, length in ends[:: max(1, len(ends) // _POINTS)] + ends[-1:]:
            # The time by which a line was printed is that of its last byte.
            point = index.at_byte(own - 1)
            if point is None:
                continue
            if point.at == last_at:
                found[-1] = (found[-1][0], length)
            else:
                found.append((int(point.at * 1000), length))
                last_at = point.at
    finally:
        index.close()
    return found


def _masked(value: Any, redact: Redactor) -> Any:
    """Data without secrets, also in names. A list of texts is redacted as lines, perhaps of a key."""
    if isinstance(value, str):
        return "\n".join(_masked_lines(value.split("\n"), redact)) if "\n" in value else redact(value)
    if isinstance(value, dict):
        return {redact(str(name)): _masked(each, redact) for name, each in value.items()}  # pyright: ignore
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(each, str) for each in value):  # pyright: ignore
            return list(_masked_lines(value, redact))  # pyright: ignore
        return [_masked(each, redact) for each in value]  # pyright: ignore
    return value


def _masked_lines(lines: Iterable[str], redact: Redactor) -> Iterable[str]:
    return map(LineRedactor(redact), lines)
