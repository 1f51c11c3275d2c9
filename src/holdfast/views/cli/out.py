"""stdout is data, stderr is talk; both survive a terminal that is not UTF-8."""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.errors import HoldfastError


def data(value: Any) -> None:
    """Print a value as one line of JSON. What the terminal cannot show, or is no text at all, is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = json.dumps(value)
    print(text, flush=True)


def talk(text: str) -> None:
    """A line for the person, on stderr."""
    print(printable(text), file=sys.stderr, flush=True)


def complain(error: HoldfastError) -> int:
    """What, to which, why; and what to do. Returns the exit status."""
    talk(f"error: {error}")
    for detail in error.details:
        talk(f"  {detail}")
    if error.hint:
        talk(f"hint: {error.hint}")
    return error.exit_status


def printable(text: str) -> str:
    """Nothing in it may move the cursor."""
    return "".join(char if char.isprintable() else " " for char in text)


def settle() -> None:
    """A character that the terminal does not know becomes a question mark, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
