"""Text for a terminal: without control characters, measured in columns, cut and wrapped."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

#: The start of a command inside a sentence. It is meant to be copied, so it is never broken.
_COMMAND = "'holdfast "
_ELLIPSIS = "…"
#: A command that is longer does not widen the column of commands.
_COMMAND_CHARS = 40


def printable(text: str) -> str:
    """The text with a space in place of each unprintable character, such as one that moves the cursor."""
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)


def visible(text: str) -> str:
    """The text with an escape in place of each unprintable character, which could make it read as another."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def as_displayed(text: str, stream: TextIO | None = None) -> str:
    """The text as the stream will show it, so that it can be measured: printable, and with a replacement for
    each character that the stream's encoding lacks."""
    text = printable(text)
    if text.isascii():
        return text
    to = stream or sys.stdout
    encoding = to.encoding or "ascii"
    return text.encode(encoding, to.errors or "backslashreplace").decode(encoding, "replace")


def cell_width(text: str) -> int:
    """Columns that a text takes. East Asian characters and emoji take two. (unicodedata is more exact, but
    costs an import.)"""
    if text.isascii():
        return len(text)
    return sum(
        2 if "\u1100" <= char <= "\u115f" or "\u2e80" <= char <= "\uffdc" or char >= "\U0001f300" else 1
        for char in text
    )


def count_fitting(text: str, columns: int) -> int:
    """How many characters of a text fit."""
    if text.isascii():
        return min(len(text), columns)
    used = 0
    for at, char in enumerate(text):
        used += cell_width(char)
        if used > columns:
            return at
    return len(text)


def cut(text: str, columns: int) -> str:
    """The part of a text that fits."""
    return text[: count_fitting(text, columns)]


def shorten(text: str, columns: int) -> str:
    """The text, or the part of it that fits with an ellipsis."""
    mark = as_displayed(_ELLIPSIS)
    return text if cell_width(text) <= columns else cut(text, max(0, columns - len(mark))) + mark


def wrap(
    text: str, columns: int | None, *, first: str = "", rest: str = "", is_quoted: bool = False
) -> list[str]:
    """The text in lines that fit, with `first` before the first line and `rest` before the others.

    Lines are broken at spaces only: a path or a quoted holdfast command that is longer than a line gets its
    own line, so that it can be copied whole. With `is_quoted` (a task's output), they are broken anywhere.
    """
    lines: list[str] = []
    start, text = first, text.rstrip()
    while columns is not None and cell_width(text) > columns - cell_width(start):
        at = _break(text, columns - cell_width(start))
        if is_quoted and (at is None or cell_width(text[:at].rstrip()) > columns - cell_width(start)):
            at = max(1, count_fitting(text, columns - cell_width(start)))
        piece = text[:at].rstrip()
        if cell_width(piece) <= columns - cell_width(start):
            lines.append(start + piece)
        else:
            lines += [start.rstrip()] if start.strip() else []
            # Indented as far as there is room.
            lines.append(rest[: max(0, columns - cell_width(piece))] + piece)
        if at is None:
            return lines
        start, text = rest, text[at:].lstrip()
    return [*lines, (start + text).rstrip()]


def _break(text: str, columns: int) -> int | None:
    """Where to break: after the last word that fits, or after the first word; None if there is only one."""
    position: int | None = None
    at = 0
    while (at := text.find(" ", at)) != -1:
        quoted = text.rfind(_COMMAND, 0, at + 2)
        end = text.find("'", quoted + 1) if quoted != -1 else -1
        if end > at:
            at = end
            continue
        if text[:at].strip():
            if position is not None and cell_width(text[:at].rstrip()) > columns:
                break
            position = at
        at += 1
    return position


def command_width(commands: Iterable[str]) -> int:
    """The width of a column of commands to type next."""
    return max((len(command) for command in commands if len(command) <= _COMMAND_CHARS), default=0)
