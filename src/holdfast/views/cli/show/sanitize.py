"""What an agent printed, for a terminal: text and colours pass, and nothing else reaches it as it is.

A raw log can hold anything: a sequence that clears the screen, renames the window, or makes the terminal type an answer.
"""

from __future__ import annotations

import re

#: A colour; the end of a line as some programs write it; or any control character that a terminal would obey.
_FOUND = re.compile(r"\x1b\[[0-9;:]*m|\r\n|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
#: What may become one of the first two with the next bytes. A colour is short.
_BEGUN = re.compile(r"(?:\x1b(?:\[[0-9;:]{0,40})?|\r)\Z")


class Sanitizer:
    """One stream on its way to a terminal. Pieces may be cut anywhere."""

    def __init__(self, *, has_colour: bool) -> None:
        self._has_colour = has_colour
        self._begun = ""
        self._is_coloured = False

    def show(self, text: str) -> str:
        """The next piece, as the terminal may have it. The beginning of a sequence waits for its end."""
        text = self._begun + text
        begun = _BEGUN.search(text)
        self._begun = begun.group() if begun is not None else ""
        return _FOUND.sub(self._replace, text[: len(text) - len(self._begun)])

    def end(self) -> str:
        """What was held back; and the terminal's own colour again."""
        rest, self._begun = _FOUND.sub(self._replace, self._begun), ""
        was_coloured, self._is_coloured = self._is_coloured, False
        return rest + ("\x1b[0m" if was_coloured else "")

    def _replace(self, found: re.Match[str]) -> str:
        text = found.group()
        if text == "\r\n":
            return "\n"
        if len(text) > 1:
            self._is_coloured = self._has_colour
            return text if self._has_colour else ""
        number = ord(text)
        # As `cat -v` and `less` write them: ^[ is an escape.
        return f"\\x{number:02x}" if number >= 0x80 else f"^{chr(number ^ 0x40)}"
