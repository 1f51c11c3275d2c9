"""Text without control characters."""

from __future__ import annotations

#: The length to which `one_line` cuts.
_ONE_LINE_CHARS = 300


def printable(text: str) -> str:
    """The text with a space in place of each unprintable character, such as one that moves the cursor."""
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)


def one_line(raw: bytes) -> str:
    """The beginning of a file, as one line."""
    text = " ".join(printable(raw.decode("utf-8", "replace")).split())
    return text if len(text) <= _ONE_LINE_CHARS else text[: _ONE_LINE_CHARS - 1] + "…"
