"""Marks: files by which an agent or a person says that the task must stop and ask.

`state/interrupt-request.txt` asks for a person, `state/error` reports an error; the text is the reason. A work item whose
status is `blocked` in `state/work.json` says the same. A mark is never cleared by itself. When a person resumes the task, it is
put aside under `state/interrupts/`.
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.packet import work_file
from holdfast.redact import MARGIN, begin_of
from holdfast.store import atomic
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from holdfast.redact import Redactor

_TEXT_CHARS = 4096
#: How often, and after what time, an empty mark is looked at again.
_LOOKS, _LOOK_S = 5, 0.02


def find(packet: Packet, redact: Redactor, off: Collection[str] = ()) -> str | None:
    """What the first mark says, without secrets; None when there is none. Those that are switched `off` stay where they are."""
    for name, path, what in (
        ("request", packet.interrupt_request, "a person is asked"),
        ("error", packet.error_marker, "an error is reported"),
    ):
        found = _text(path) if name not in off else None
        if found is not None:
            return begin_of(found, redact, _TEXT_CHARS).strip() or what
    item = _blocked(packet) if "blocked" not in off else None
    return None if item is None else f"the work is blocked: {work_file.words(item, redact)}".rstrip(": ")


def _text(path: str) -> bytes | None:
    """What a mark says. A shell makes the file before it writes: an empty one gets a moment more."""
    found = atomic.read_small(path, _TEXT_CHARS + MARGIN)
    for _ in range(_LOOKS):
        if found != b"":
            break
        clock.sleep(_LOOK_S)
        found = atomic.read_small(path, _TEXT_CHARS + MARGIN)
    return found


def _blocked(packet: Packet) -> dict[str, Any] | None:
    item = work_file.read(packet) if os.path.lexists(packet.work) else None
    return item if item is not None and (item["status"] or "").lower() == "blocked" else None


def is_left(packet: Packet) -> bool:
    """Whether there is any mark."""
    return os.path.lexists(packet.interrupt_request) or os.path.lexists(packet.error_marker)


def leave(packet: Packet, reason: str) -> None:
    """Ask for a person, unless that was done already: the file is there for as long as the task waits."""
    if not is_left(packet):
        atomic.write(
            packet.interrupt_request, f"{reason}\n".encode("utf-8", "backslashreplace"), durable=True
        )


def put_aside(packet: Packet, name: str) -> None:
    """A person has answered: keep the marks, out of the way."""
    for path in (packet.interrupt_request, packet.error_marker):
        if os.path.lexists(path):
            atomic.make_directory(packet.interrupts)
            os.rename(path, os.path.join(packet.interrupts, f"{name}-{os.path.basename(path)}"))
    item = _blocked(packet)
    if item is not None:
        work_file.write(packet, work_file.merge(item, status="in_progress"))
