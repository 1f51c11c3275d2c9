"""stdout is data, stderr is talk; both survive a terminal that is not UTF-8."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.errors import HoldfastError


def data(value: Any) -> None:
    """Print a value as one line of JSON. What the terminal cannot show, or is no text at all, is escaped."""
    print(_as_line(value), flush=True)


def _as_line(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = json.dumps(value)
    return text


def made(text: str, manifest: dict[str, Any] | None = None) -> None:
    """Print the id of a task that exists, or its manifest. The task is there whether or not stdout takes that, so it is no
    error when it does not: the command goes on, and ends as its work does."""
    try:
        print(text if manifest is None else _as_line(manifest), flush=True)
    except BrokenPipeError:
        forget_stdout()
    except OSError as error:
        forget_stdout()
        talk(f"warning: stdout did not take {text!r}: {error.strerror}")


def forget_stdout() -> None:
    """What is still in the buffer can go nowhere, and must not fail again."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(descriptor, 1)
    os.close(descriptor)


def is_terminal_gone(error: Exception) -> bool:
    """Whether this says that the terminal on stdout was closed, and we were told to stay (`nohup`). A file that says the same
    is on a broken disk."""
    if not isinstance(error, OSError) or error.errno != errno.EIO or error.filename is not None:
        return False
    return stat.S_ISCHR(os.fstat(1).st_mode)


def draw(text: str) -> None:
    """Draw on the terminal that is stderr. One that went away needs no picture."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        return


def talk(text: str) -> None:
    """A line for the person, on stderr. Where that takes none, nobody is left to tell."""
    try:
        print(printable(text), file=sys.stderr, flush=True)
    except OSError:
        return


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
