"""Interrupt files: with them, an agent or a person interrupts the task.

`state/interrupt-request.txt` asks for a person, `state/error` reports an error; the text is the reason. A
work item with status `blocked` in `state/work.json` has the same effect. The files do not expire. When a
person resumes the task, they are moved to `state/interrupts/`. While a runner's file asks for an approval,
`state/interrupts/approval.json` names the stage.
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import CorruptFile
from holdfast.failpoints import failpoint
from holdfast.packet import work_file
from holdfast.redact import MARGIN, begin_of
from holdfast.store import atomic
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from holdfast.redact import Redactor

SCHEMA = "holdfast.asked-approval/1"
_TEXT_CHARS = 4096
#: An empty file is read again this often, at this interval.
_RETRIES, _RETRY_S = 5, 0.02


def find(packet: Packet, redact: Redactor, off: Collection[str] = ()) -> str | None:
    """The text of the first interrupt file, redacted; None if there is none. Kinds in `off` are ignored."""
    for name, path, default in (
        ("request", packet.interrupt_request, "a person is asked"),
        ("error", packet.error_marker, "an error was reported"),
    ):
        text = _text(path) if name not in off else None
        if text is not None:
            return begin_of(text, redact, _TEXT_CHARS).strip() or default
    item = _blocked(packet) if "blocked" not in off else None
    return None if item is None else f"the work is blocked: {work_file.as_text(item, redact)}".rstrip(": ")


def move_from_sandbox(packet: Packet) -> None:
    """Move the interrupt file of a sandboxed agent, which sees nothing of the packet, to where it belongs."""
    text = atomic.read_small(packet.sandbox_request, _TEXT_CHARS + MARGIN)
    if text is None or not text:
        return  # it is being written
    if not os.path.lexists(packet.interrupt_request):
        atomic.write(packet.interrupt_request, text, durable=True)
    failpoint("interrupt_files.moved")
    os.unlink(packet.sandbox_request)


def _text(path: str) -> bytes | None:
    """The text of an interrupt file. A shell creates it before it writes, so an empty one is read again."""
    text = atomic.read_small(path, _TEXT_CHARS + MARGIN)
    for _ in range(_RETRIES):
        if text != b"":
            break
        clock.sleep(_RETRY_S)
        text = atomic.read_small(path, _TEXT_CHARS + MARGIN)
    return text


def _blocked(packet: Packet) -> dict[str, Any] | None:
    item = work_file.read(packet) if os.path.lexists(packet.work) else None
    return item if item is not None and (item["status"] or "").lower() == "blocked" else None


def exists(packet: Packet) -> bool:
    """Whether there is an interrupt file."""
    return os.path.lexists(packet.interrupt_request) or os.path.lexists(packet.error_marker)


def write(packet: Packet, reason: str, *, approval: str | None = None) -> None:
    """Create the interrupt file unless there is one; it exists as long as the task waits.

    `approval` is the stage for whose approval it asks.
    """
    if exists(packet):
        return
    if approval is not None:
        atomic.make_directory(packet.interrupts)
        atomic.write_json(packet.asked_approval, {"schema": SCHEMA, "stage": approval}, durable=True)
        failpoint("interrupt_files.approval")
    atomic.write(packet.interrupt_request, f"{reason}\n".encode("utf-8", "backslashreplace"), durable=True)


def asked_approval(packet: Packet) -> str | None:
    """The stage whose approval the interrupt file asks for; None if no runner wrote the file."""
    try:
        stage = (atomic.read_json(packet.asked_approval) or {}).get("stage")
    except CorruptFile:
        return None
    return stage if isinstance(stage, str) else None


def put_aside(packet: Packet, name: str) -> None:
    """Move the interrupt files to `state/interrupts/` after a person has answered."""
    for path in (packet.interrupt_request, packet.error_marker):
        if os.path.lexists(path):
            atomic.make_directory(packet.interrupts)
            atomic.move(path, os.path.join(packet.interrupts, f"{name}-{os.path.basename(path)}"))
    if os.path.isfile(packet.asked_approval):
        atomic.remove(packet.asked_approval)
    item = _blocked(packet)
    if item is not None:
        work_file.write(packet, work_file.merge(item, status="in_progress"))
