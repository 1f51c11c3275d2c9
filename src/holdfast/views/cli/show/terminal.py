"""What the terminal can do: its width, and whether it shows colours."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

#: Columns of a terminal that does not report its width, and the narrowest that we try to fit into.
DEFAULT_WIDTH, _NARROWEST = 80, 20

STATE_COLOURS = {
    "running": "32",
    "spawning": "36",
    "completing": "36",
    "queued": "36",
    "waiting": "33",
    "stopping": "33",
    "interrupted": "35",
    "crashed": "31",
    "hung": "31",
    "timeout": "31",
    "completed": "2;32",
    "failed": "31",
    "abandoned": "31",
    "killed": "2",
}


def width(stream: TextIO | None = None) -> int | None:
    """Columns that a line may take: the terminal's, else COLUMNS. None means no limit: nothing is cut or
    wrapped for a pipe or a file, unless COLUMNS is set."""
    to = stream or sys.stdout
    columns = 0
    is_tty = to.isatty()
    if is_tty:
        try:
            columns = os.get_terminal_size(to.fileno()).columns
        except OSError:
            columns = 0
    if not columns:
        text = os.environ.get("COLUMNS", "")
        columns = int(text) if text.isascii() and text.isdigit() else 0
    if not columns:
        return DEFAULT_WIDTH if is_tty else None
    return max(_NARROWEST, columns)


def height() -> int | None:
    """Lines of the terminal on stdout; None if that is none, or does not say."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines or None
    except OSError:
        return None


def is_terminal(stream: TextIO | None = None) -> bool:
    """Whether the stream (stdout by default) is a terminal."""
    return (stream or sys.stdout).isatty()


def is_dumb() -> bool:
    """Whether the terminal understands no escape sequences."""
    return os.environ.get("TERM", "dumb") in ("", "dumb")


def has_colour(stream: TextIO | None = None) -> bool:
    """Whether to use colours: not with NO_COLOR, on a dumb terminal, or into a pipe."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and not is_dumb()


def can_redraw(stream: TextIO) -> bool:
    """Whether a line on this stream can be redrawn in place."""
    return is_terminal(stream) and not is_dumb()


def coloured_state(status: str, stream: TextIO | None = None) -> str:
    """A task's state, in its colour if the stream shows colours."""
    code = STATE_COLOURS.get(status) if has_colour(stream) else None
    return f"\x1b[{code}m{status}\x1b[0m" if code else status
