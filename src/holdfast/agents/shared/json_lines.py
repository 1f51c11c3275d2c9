"""JSON lines of agents: decoded fast if they are well-formed, repaired if they nearly are.

Node prints half of a surrogate pair as an escape if a tool's output was cut inside an emoji, and a raw log
can contain bytes that are not UTF-8. Such events must not be lost.
"""

from __future__ import annotations

import json

import msgspec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from holdfast.model import events as ev

    T = TypeVar("T")

#: Longer lines are not repaired.
_MEND_BYTES = 8 * 1024 * 1024
#: How nearly every line begins, and how far its type is searched.
_TYPE, _TYPE_END = b'{"type":"', 96


class _Typed(msgspec.Struct):
    type: str = ""


_TYPED = msgspec.json.Decoder(_Typed)


class ByType:
    """A reader with a struct and a handler for each type of line that matters."""

    def __init__(self, takers: dict[bytes, tuple[type[Any], Callable[[Any], list[ev.AgentEvent]]]]) -> None:
        self._takers = {name: (msgspec.json.Decoder(shape), take) for name, (shape, take) in takers.items()}

    def read(self, line: bytes) -> list[ev.AgentEvent]:
        """The events of one line."""
        taker = self._takers.get(kind(line))
        if taker is None:
            return []
        decoder, take = taker
        decoded = decode(decoder, line)
        return take(decoded) if decoded is not None else []


def kind(line: bytes) -> bytes:
    """The `type` of a line, without decoding it if it comes first, as in all of these programs.

    Empty if the line is not an object. Most lines do not matter, and this is their whole cost. Never raises.
    """
    if line.startswith(_TYPE):
        return line[9 : line.find(b'"', 9, _TYPE_END)]
    if not line.startswith(b"{"):
        return b""
    decoded = decode(_TYPED, line)
    return decoded.type.encode("utf-8", "replace") if decoded is not None else b""


def decode(decoder: msgspec.json.Decoder[T], line: bytes) -> T | None:
    """The line decoded by `decoder`; None if it is torn, hostile or of another shape. Never raises."""
    try:
        return decoder.decode(line)
    except msgspec.ValidationError:
        return None
    except (ValueError, RecursionError):
        pass
    if len(line) > _MEND_BYTES or not line.rstrip().endswith(b"}"):
        return None
    try:
        return decoder.decode(mended(line))
    except (ValueError, RecursionError):
        return None


def mended(line: bytes) -> bytes:
    """The same JSON with broken characters replaced. Raises ValueError if it is not JSON."""
    data = json.loads(line.decode("utf-8", "replace"))
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def summary(raw: msgspec.Raw, limit: int = 4000) -> str:
    """The beginning of a JSON value as text.

    Much longer than what is shown: text that is cut before secrets are masked could end in half a secret.
    """
    return str(memoryview(raw)[: limit * 4], "utf-8", "replace")[:limit]
