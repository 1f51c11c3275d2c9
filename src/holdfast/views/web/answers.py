"""Data as an answer: within the limits, and without characters that change how text around them is read."""

from __future__ import annotations

import json

from starlette.responses import Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

#: The largest answer, and the longest text in it.
ANSWER_BYTES, TEXT_CHARS = 1024 * 1024, 64 * 1024
#: Lengths to which lists are cut, one after the other, while an answer is too large.
_LENGTHS = (1000, 200, 50, 10)
_CUT = "… (cut)"


def _visible() -> dict[int, str]:
    """Control characters as pictures; marks that reorder text (bidi) and hide it by their names."""
    table = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n\x1b"}
    table[0x7F] = "\u2421"
    table.update({code: f"⟨U+{code:04X}⟩" for code in range(0x80, 0xA0)})
    marks = (0x061C, 0x115F, 0x1160, 0x180E, *range(0x200B, 0x2010), *range(0x2028, 0x202F), 0x3164, 0xFEFF)
    marks = (*marks, *range(0x2060, 0x2070), 0xFFA0, *range(0xFFF9, 0xFFFC))
    table.update({code: f"⟨U+{code:04X}⟩" for code in marks})
    # A lone half of a pair is no character, and cannot be encoded.
    table.update(dict.fromkeys(range(0xD800, 0xE000), "\ufffd"))
    return table


_VISIBLE = _visible()


def clean(text: str) -> str:
    """Text that shows what it contains. Line ends of Windows become plain; ESC stays, for colours of logs."""
    if len(text) > TEXT_CHARS:
        text = text[:TEXT_CHARS] + _CUT
    if text.isascii() and text.isprintable():
        return text  # most texts
    return text.replace("\r\n", "\n").translate(_VISIBLE)


def encode(data: Any, *, limit: int = ANSWER_BYTES) -> bytes:
    """JSON of at most `limit` bytes: where lists are cut to their ends, `is_cut` says so."""
    data = _cleaned(data)
    encoded = _dumps(data)
    for length in _LENGTHS:
        if len(encoded) <= limit:
            return encoded
        data = _shortened(data, length, TEXT_CHARS * length // _LENGTHS[0])
        if isinstance(data, dict):
            data["is_cut"] = True
        encoded = _dumps(data)
    return encoded if len(encoded) <= limit else _dumps({"error": "too large to show", "is_cut": True})


class Json(Response):
    """An answer with data."""

    media_type = "application/json"

    def __init__(self, data: Any, status_code: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(encode(data), status_code, headers)


def _dumps(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace")


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(name)): _cleaned(each) for name, each in value.items()}  # pyright: ignore
    if isinstance(value, (list, tuple)):
        return [_cleaned(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def _shortened(value: Any, length: int, chars: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= chars else value[:chars] + _CUT
    if isinstance(value, dict):
        return {name: _shortened(each, length, chars) for name, each in value.items()}  # pyright: ignore
    if isinstance(value, list):
        return [_shortened(each, length, chars) for each in value[-length:]]  # pyright: ignore
    return value
