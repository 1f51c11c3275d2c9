"""Replacements for characters that the user's locale lacks: symbols in ASCII, everything else escaped.

Views just write `…` or `→`; the streams replace them. Loaded only if the locale is not UTF-8.
"""

from __future__ import annotations

import codecs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from io import TextIOWrapper
    from typing import Any

#: The name of `replace` as an error handler.
ERRORS = "holdfast.replace"

GLYPHS = {
    "…": "...", "→": "->", "←": "<-", "↑": "^", "↓": "v", "⇒": "=>", "×": "x", "÷": "/", "·": ".", "•": "*",
    "●": "*", "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~", "−": "-", "±": "+/-", "µ": "u", "μ": "u",
    "°": " deg", "–": "-", "—": "-", "‐": "-", "‑": "-", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"',
    "‘": "'", "’": "'", "‚": "'", "✓": "ok", "✔": "ok", "✗": "x", "✘": "x", "─": "-", "━": "-", "│": "|",
    "┃": "|", "┌": "+", "┐": "+", "└": "+", "┘": "+", "├": "+", "┤": "+", "┬": "+", "┴": "+", "┼": "+",
    "█": "#", "\u00a0": " ", "\u202f": " ", "\u2009": " ",
}  # fmt: skip


def replace(error: UnicodeError) -> tuple[str, int]:
    """Replace what cannot be encoded: an error handler for `codecs.register_error`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_plain(char) for char in error.object[error.start : error.end]), error.end


def _plain(char: str) -> str:
    if "\udc80" <= char <= "\udcff":  # a byte that could not be decoded
        return f"\\x{ord(char) - 0xDC00:02x}"
    return GLYPHS.get(char) or char.encode("ascii", "backslashreplace").decode("ascii")


def use_locale_encoding(stream: TextIOWrapper[Any], environ: Mapping[str, str]) -> None:
    """Make a stream use the locale's encoding. Python uses UTF-8 in the C locale (PEP 538 and 540), which is
    right for files and wrong for a terminal. PYTHONIOENCODING, if set, wins."""
    codecs.register_error(ERRORS, replace)
    is_set = bool(environ.get("PYTHONIOENCODING"))
    is_utf8 = codecs.lookup(stream.encoding or "ascii").name == "utf-8"
    encoding = "ascii" if is_utf8 and not is_set else stream.encoding
    stream.reconfigure(encoding=encoding, errors=ERRORS)
