"""The events in a task's journal, optionally followed until the task has ended."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.status import ENDS
from holdfast.packet import load, metrics
from holdfast.redact import Redactor
from holdfast.store import atomic
from holdfast.store.layout import Packet
from holdfast.views.recovery import KeeperStarter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_PAUSE_S = 0.1
_BLOCK_BYTES = 65536


def read(packet: Packet, *, follow: bool) -> Iterator[dict[str, Any]]:
    """All events, without secrets; with `follow`, also new ones until the task has ended.

    The journal has the command line and a person's answers verbatim, because the agent needs them.
    """
    redact = _redactor(packet)
    for event in _read(packet, follow=follow):
        # What an agent printed was redacted before it was journalled.
        yield event if str(event.get("type")).startswith("agent.") else _without_secrets(event, redact)


def _redactor(packet: Packet) -> Redactor:
    """Masks the values that the task had. An ended task's are gone, so those of this environment are used."""
    env: dict[str, str] = dict(os.environ)
    names: tuple[str, ...] = ()
    try:
        kept = (atomic.read_json(packet.env) or {}).get("env")
        env |= kept if isinstance(kept, dict) else {}
        names = load.fold(packet).spec.env
    except (HoldfastError, OSError, ValueError):
        pass  # damaged: what can be recognized by its shape is masked
    return Redactor(env, names)


def _without_secrets(value: Any, redact: Redactor) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_without_secrets(item, redact) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {name: _without_secrets(item, redact) for name, item in value.items()}  # pyright: ignore
    return value


def _read(packet: Packet, *, follow: bool) -> Iterator[dict[str, Any]]:
    offset = 0
    starter = KeeperStarter()
    while True:
        # Check for the end first: what was written before it is then read below.
        status = load.read_manifest(packet)["status"] if follow else ""
        is_over = not follow or (status in ENDS and os.path.exists(packet.task_done))
        end = _size_of_whole_lines(packet.journal)
        if end > offset:
            yield from metrics.lines(packet.journal, start=offset, end=end)
            offset = end
        if is_over:
            return
        starter.poll(packet, status)
        clock.sleep(_PAUSE_S)


def _size_of_whole_lines(path: str) -> int:
    """The size of a journal without a last line that is still being written."""
    try:
        with atomic.stream(path) as file:
            end = file.seek(0, os.SEEK_END)
            while end > 0:
                start = max(0, end - _BLOCK_BYTES)
                file.seek(start)
                newline = file.read(end - start).rfind(b"\n")
                if newline >= 0:
                    return start + newline + 1
                end = start
    except FileNotFoundError:
        return 0
    return 0
