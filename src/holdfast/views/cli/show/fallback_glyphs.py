"""A terminal that is not UTF-8: our own signs in plain letters, everything else escaped, nothing lost.

Views write what they mean (`…`, `→`); the streams put it into what the user's locale can hold. Loaded only where that is
not UTF-8.
"""

from __future__ import annotations

import codecs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from io import TextIOWrapper
    from typing import Any

#: The name under which the streams know `replace`.
ERRORS = "holdfast.replace"

GLYPHS = {
    "…": "...", "→": "->", "←": "<-", "↑": "^", "↓": "v", "⇒": "=>", "×": "x", "÷": "/", "·": ".", "•": "*", "●": "*",
    "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "−": "-", "±": "+/-", "µ": "u", "μ": "u", "°": " deg", "–": "-", "—": "-",
    "‐": "-", "‑": "-", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "‚": "'", "✓": "ok",
    "✔": "ok", "✗": "x", "✘": "x", "─": "-", "━": "-", "│": "|", "┃": "|", "┌": "+", "┐": "+", "└": "+", "┘": "+",
    "├": "+", "┤": "+", "┬": "+", "┴": "+", "┼": "+", "█": "#", "\u00a0": " ", "\u202f": " ", "\u2009": " ",
}  # fmt: skip


def replace(error: UnicodeError) -> tuple[str, int]:
    """What goes out in place of characters that the encoding has not: a handler as `codecs.register_error` wants it."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_plain(char) for char in error.object[error.start : error.end]), error.end


def _plain(char: str) -> str:
    if "\udc80" <= char <= "\udcff":  # a byte that was no text when it was read
        return f"\\x{ord(char) - 0xDC00:02x}"
    return GLYPHS.get(char) or char.encode("ascii", "backslashreplace").decode("ascii")


def use_locale_encoding(stream: TextIOWrapper[Any], environ: Mapping[str, str]) -> None:
    """Make a stream write what the locale can hold. Python itself takes the C locale for UTF-8 (PEP 538 and 540), which is
    right for files and wrong for a terminal. Whoever set PYTHONIOENCODING has said what the streams speak."""
    codecs.register_error(ERRORS, replace)
    is_told = bool(environ.get("PYTHONIOENCODING"))
    is_utf8 = codecs.lookup(stream.encoding or "ascii").name == "utf-8"
    encoding = "ascii" if is_utf8 and not is_told else stream.encoding
    stream.reconfigure(encoding=encoding, errors=ERRORS)
