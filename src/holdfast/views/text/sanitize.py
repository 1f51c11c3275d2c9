"""An agent's output for a terminal: text and colours pass, other control characters become visible.

A raw log can hold anything: a sequence that clears the screen, renames the window, or makes the terminal send
input.
"""

from __future__ import annotations

import re

#: A colour, a Windows line end, or any control character that a terminal obeys, also those that change the
#: order in which a line is shown.
_SPECIAL = re.compile(r"\x1b\[[0-9;:]*m|\r\n|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
#: What the next bytes may turn into one of the first two. A colour is short.
_UNFINISHED = re.compile(r"(?:\x1b(?:\[[0-9;:]{0,40})?|\r)\Z")


class Sanitizer:
    """One stream on its way to a terminal, in pieces of any size."""

    def __init__(self, *, has_colour: bool) -> None:
        self._has_colour = has_colour
        self._unfinished = ""
        self._is_coloured = False

    def show(self, text: str) -> str:
        """The next piece, safe to print. An unfinished sequence is kept for the next call."""
        text = self._unfinished + text
        unfinished = _UNFINISHED.search(text)
        self._unfinished = unfinished.group() if unfinished is not None else ""
        return _SPECIAL.sub(self._replace, text[: len(text) - len(self._unfinished)])

    def end(self) -> str:
        """What was kept, and a reset of the colour if one was set."""
        rest, self._unfinished = _SPECIAL.sub(self._replace, self._unfinished), ""
        was_coloured, self._is_coloured = self._is_coloured, False
        return rest + ("\x1b[0m" if was_coloured else "")

    def _replace(self, match: re.Match[str]) -> str:
        text = match.group()
        if text == "\r\n":
            return "\n"
        if len(text) > 1:
            self._is_coloured = self._has_colour
            return text if self._has_colour else ""
        number = ord(text)
        # As `cat -v` and `less` show them: ^[ is an escape.
        if number > 0xFF:
            return f"<U+{number:04X}>"
        return f"\\x{number:02x}" if number >= 0x80 else f"^{chr(number ^ 0x40)}"
