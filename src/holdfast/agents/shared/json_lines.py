"""JSON lines of agents: decoded fast if they are well-formed, repaired if they nearly are.

Node prints half of a surrogate pair as an escape if a tool's output was cut inside an emoji, and a raw log
can contain bytes that are not UTF-8. Such events must not be lost.
"""

from __future__ import annotations

import json

import msgspec

from holdfast import clock

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


class _Text(msgspec.Struct):
    type: str = ""
    text: str = ""


class _Content(msgspec.Struct):
    content: list[_Text] | str | None = None


_STRING = msgspec.json.Decoder(str)
_RESULT = msgspec.json.Decoder(list[_Text] | _Content)
#: A larger result that is not a plain string is not decoded.
_RESULT_BYTES = 256 * 1024


def result_text(raw: msgspec.Raw | bytes, limit: int = 4000) -> str:
    """The beginning of a tool's result: a string, blocks of text, or an object with these as `content`.

    Of a long string, only the beginning is decoded. As with `summary`, it is longer than what is kept.
    """
    data = memoryview(raw)
    if bytes(data[:1]) == b'"':
        head = bytes(data[: limit * 4])
        if len(head) < len(data):
            # The cut must not be inside a character or an escape, which has up to six.
            head = head.decode("utf-8", "ignore").encode()
            before = head[: head.rfind(b"\\", -6) + 1]
            if (len(before) - len(before.rstrip(b"\\"))) % 2:
                head = before[:-1]
            head += b'"'
        return _string(head)[:limit]
    decoded = decode(_RESULT, bytes(data)) if 0 < len(data) <= _RESULT_BYTES else None
    if decoded is None:
        return ""
    content = decoded.content if isinstance(decoded, _Content) else decoded
    if isinstance(content, str):
        return content[:limit]
    return "\n".join(block.text for block in content or () if block.text)[:limit]


def _string(quoted: bytes) -> str:
    try:
        return _STRING.decode(quoted)
    except ValueError:
        pass
    try:
        text = json.loads(quoted.decode("utf-8", "replace"), strict=False)
    except ValueError:
        return ""
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else ""


class _Stamped(msgspec.Struct):
    timestamp: str | float | None = None


_STAMP = msgspec.json.Decoder(_Stamped)


def timestamp(line: bytes) -> float | None:
    """The time in a line's own `timestamp`: text, or milliseconds since 1970. None if it has none."""
    if b'"timestamp"' not in line:
        return None
    decoded = decode(_STAMP, line)
    stamp = decoded.timestamp if decoded is not None else None
    try:
        return clock.parse_iso(stamp) if isinstance(stamp, str) else None if stamp is None else stamp / 1000
    except (ValueError, IndexError):
        return None


def iso(milliseconds: float | None) -> str | None:
    """Milliseconds since 1970 as a time; None if they are not one."""
    if milliseconds is None or not 0 < milliseconds < 1e14:
        return None
    return clock.iso(milliseconds / 1000)
