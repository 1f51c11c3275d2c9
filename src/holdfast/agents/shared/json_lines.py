"""JSON lines as agents print them: decoded fast when they are well-formed, mended when they are nearly so.

Node prints half of a surrogate pair as an escape when a tool's output was cut inside an emoji, and a raw log can hold bytes
that are no UTF-8. Neither may cost the event.
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

#: A longer line is not worth a second, slow look.
_MEND_BYTES = 8 * 1024 * 1024
#: How nearly every line begins, and how far its type is looked for.
_TYPE, _TYPE_END = b'{"type":"', 96


class _Typed(msgspec.Struct):
    type: str = ""


_TYPED = msgspec.json.Decoder(_Typed)


class ByType:
    """A reader for which each type of line that means something has a shape and a taker of its own."""

    def __init__(self, takers: dict[bytes, tuple[type[Any], Callable[[Any], list[ev.AgentEvent]]]]) -> None:
        self._takers = {name: (msgspec.json.Decoder(shape), take) for name, (shape, take) in takers.items()}

    def read(self, line: bytes) -> list[ev.AgentEvent]:
        """The events of one line."""
        taker = self._takers.get(kind(line))
        if taker is None:
            return []
        decoder, take = taker
        found = decode(decoder, line)
        return take(found) if found is not None else []


def kind(line: bytes) -> bytes:
    """The `type` of a line, found without decoding it where it stands first, as it does with all of these programs; empty
    for what is no object. Most lines mean nothing to us, and this is all that they cost. Never raises."""
    if line.startswith(_TYPE):
        return line[9 : line.find(b'"', 9, _TYPE_END)]
    if not line.startswith(b"{"):
        return b""
    found = decode(_TYPED, line)
    return found.type.encode("utf-8", "replace") if found is not None else b""


def decode(decoder: msgspec.json.Decoder[T], line: bytes) -> T | None:
    """The line as `decoder` types it; None for what is torn, hostile or of another shape. Never raises."""
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
    """The same JSON with a replacement character wherever a character was broken. Raises ValueError when it is no JSON."""
    data = json.loads(line.decode("utf-8", "replace"))
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def summary(raw: msgspec.Raw, limit: int = 4000) -> str:
    """The beginning of a JSON value as text, however long it is. Far more than is shown: what is cut before its secrets are
    masked can end in half a secret."""
    return str(memoryview(raw)[: limit * 4], "utf-8", "replace")[:limit]
