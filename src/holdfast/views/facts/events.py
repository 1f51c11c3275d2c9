"""The events in a task's journal, without secrets."""

from __future__ import annotations

import os

from holdfast.errors import HoldfastError, InvalidPattern
from holdfast.packet import load, metrics
from holdfast.redact import Redactor, WithholdingRedactor
from holdfast.store import atomic
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_BLOCK_BYTES = 65536


class EventReader:
    """Reads a journal piece by piece.

    The journal has the command line and a person's answers verbatim, because the agent needs them; what this
    returns has no secrets.
    """

    def __init__(self, packet: Packet, *, offset: int = 0) -> None:
        self._packet = packet
        self._redact = redactor(packet)
        #: Bytes of the journal that were read: where the next event begins.
        self.offset = offset

    def new(self) -> Iterator[dict[str, Any]]:
        """The events that were written since the last call."""
        if not self._has_grown():
            return
        end = _size_of_whole_lines(self._packet.journal)
        if end <= self.offset:
            return
        for event in metrics.lines(self._packet.journal, start=self.offset, end=end):
            yield self._clean(event)
        self.offset = end

    def placed(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The same, each with the byte of the journal after it, from which another reader can go on."""
        end = _size_of_whole_lines(self._packet.journal)
        while self.offset < end:
            for place, event in metrics.placed_lines(self._packet.journal, start=self.offset, end=end):
                self.offset = place
                yield place, self._clean(event)
            self.offset = end  # what follows are lines that cannot be read

    def _clean(self, event: dict[str, Any]) -> dict[str, Any]:
        # What an agent printed was redacted before it was journalled.
        is_clean = str(event.get("type")).startswith("agent.")
        return event if is_clean else _without_secrets(event, self._redact)

    def _has_grown(self) -> bool:
        try:
            return os.stat(self._packet.journal).st_size > self.offset
        except OSError:
            return False


def redactor(packet: Packet) -> Redactor:
    """Masks the values that the task had. An ended task's are gone, so those of this environment are used."""
    env: dict[str, str] = dict(os.environ)
    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    try:
        kept = (atomic.read_json(packet.env) or {}).get("env")
        env |= kept if isinstance(kept, dict) else {}
        spec = load.fold(packet).spec
        names, patterns = spec.env, spec.pipeline.redaction_patterns if spec.pipeline else ()
    except (HoldfastError, OSError, ValueError):
        pass  # damaged: what can be recognized by its shape is masked
    try:
        return Redactor(env, names, patterns)
    except InvalidPattern as error:  # of an earlier version: any text may have a match
        return WithholdingRedactor(f"security.redaction_patterns cannot be applied: {error}")


def _without_secrets(value: Any, redact: Redactor) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_without_secrets(item, redact) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {name: _without_secrets(item, redact) for name, item in value.items()}  # pyright: ignore
    return value


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
