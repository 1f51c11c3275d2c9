"""stdout is data, stderr is talk; both fit the terminal they go to, and survive one that is not UTF-8.

How wide a line may be (`room`) and which characters may be in it (`settle`) are decided here and nowhere else; `holdfast
help environment` tells the rule.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TextIO

    from holdfast.errors import HoldfastError

#: Columns of a terminal that does not say how many it has, and the fewest in which we try to fit.
USUAL, _NARROWEST = 80, 20
#: What begins a command in a sentence: to be copied, so never broken.
_COMMAND = "'holdfast "
#: As much of a file as stands in a sentence for people.
_BRIEF_CHARS = 300


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


def brief(raw: bytes) -> str:
    """The begin of a file that somebody left, in a line."""
    text = " ".join(printable(raw.decode("utf-8", "replace")).split())
    return text if len(text) <= _BRIEF_CHARS else text[: _BRIEF_CHARS - 1] + "…"


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


# ── how wide ──


def room(stream: TextIO | None = None) -> int | None:
    """Columns that a line may take: those of the terminal, else COLUMNS; None where nothing is cut or wrapped, which is a
    pipe or a file whose reader did not set COLUMNS."""
    to = stream or sys.stdout
    found = 0
    is_terminal = to.isatty()
    if is_terminal:
        try:
            found = os.get_terminal_size(to.fileno()).columns
        except OSError:
            found = 0
    if not found:
        text = os.environ.get("COLUMNS", "")
        found = int(text) if text.isascii() and text.isdigit() else 0
    if not found:
        return USUAL if is_terminal else None
    return max(_NARROWEST, found)


def cell_width(text: str) -> int:
    """Columns that a text takes: East Asian characters and emoji take two. (unicodedata knows better, and costs an import.)"""
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


def wrapped(
    text: str, columns: int | None, *, first: str = "", rest: str = "", is_quoted: bool = False
) -> list[str]:
    """A text in lines that fit, `first` before the first of them and `rest` before the others. It is broken at spaces only:
    a path, or a command of ours in quotes, that is longer than a line gets one of its own, to be copied whole. What is quoted
    from a task's output is broken wherever it must be."""
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
            # As far in as it can be.
            lines.append(rest[: max(0, columns - cell_width(piece))] + piece)
        if at is None:
            return lines
        start, text = rest, text[at:].lstrip()
    return [*lines, (start + text).rstrip()]


def _break(text: str, columns: int) -> int | None:
    """Where to break: behind the last word that fits, or behind the first; None where there is but one."""
    found: int | None = None
    at = 0
    while (at := text.find(" ", at)) != -1:
        quoted = text.rfind(_COMMAND, 0, at + 2)
        end = text.find("'", quoted + 1) if quoted != -1 else -1
        if end > at:
            at = end
            continue
        if text[:at].strip():
            if found is not None and cell_width(text[:at].rstrip()) > columns:
                break
            found = at
        at += 1
    return found


# ── what to say ──


def say(text: str, *, first: str = "", rest: str = "") -> None:
    """A line on stdout for a person, in as many lines as it needs."""
    for line in wrapped(shown(text), room(), first=first, rest=rest):
        print(line)


def fact(name: str, text: str, *, at: int) -> None:
    """`name      text`: the text begins in column `at`, in every line of it."""
    say(text, first=f"{name:{at - 1}} ", rest=" " * at)


def talk(text: str, *, rest: str = "  ") -> None:
    """A line for the person, on stderr; `rest` is before those that it goes on in. Where stderr takes none, nobody is left to
    tell."""
    indent = text[: len(text) - len(text.lstrip(" "))]
    lines = wrapped(shown(text.lstrip(" "), sys.stderr), room(sys.stderr), first=indent, rest=indent + rest)
    try:
        print("\n".join(lines), file=sys.stderr, flush=True)
    except OSError:
        return


def quote(line: str) -> None:
    """A line that a task printed, on stderr, marked as such in every line that it goes on in."""
    try:
        for piece in wrapped(
            shown(line, sys.stderr), room(sys.stderr), first="| ", rest="| ", is_quoted=True
        ):
            print(piece, file=sys.stderr, flush=True)
    except OSError:
        return


def step(command: str, meaning: str) -> None:
    """A command that may be typed next, whole, and what it does: behind it, or below where there is no room."""
    columns = room(sys.stderr)
    line = shown(f"  {command}   {meaning}".rstrip(), sys.stderr)
    if columns is None or cell_width(line) <= columns:
        talk(line)
        return
    try:
        print(f"  {shown(command, sys.stderr)}", file=sys.stderr)
    except OSError:
        return
    talk(f"      {meaning}", rest="")


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
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)


def shown(text: str, stream: TextIO | None = None) -> str:
    """A text as the stream will show it, so that it can be measured: nothing moves the cursor, and what the locale cannot
    hold has its stand-in already."""
    text = printable(text)
    if text.isascii():
        return text
    to = stream or sys.stdout
    encoding = to.encoding or "ascii"
    return text.encode(encoding, to.errors or "backslashreplace").decode(encoding, "replace")


def settle() -> None:
    """Both streams write what the user's locale can hold; a character that it cannot becomes a stand-in, not a traceback."""
    streams: list[Any] = [each for each in (sys.stdout, sys.stderr) if hasattr(each, "reconfigure")]
    if is_utf8(os.environ):
        for stream in streams:
            stream.reconfigure(errors="backslashreplace")
        return
    from holdfast.views.cli.show import fallback_glyphs

    for stream in streams:
        fallback_glyphs.settle(stream, os.environ)


def is_utf8(environ: Mapping[str, str]) -> bool:
    """Whether the locale that the user asked for can hold every character: LC_ALL, LC_CTYPE or LANG, whichever is set first,
    names UTF-8. Where none is set it is the C locale, which cannot."""
    asked = environ.get("LC_ALL") or _ctype(environ) or environ.get("LANG") or "C"
    codeset = asked.partition("@")[0].rpartition(".")[2]
    return codeset.lower().replace("-", "") == "utf8"


def _ctype(environ: Mapping[str, str]) -> str:
    """LC_CTYPE as the user set it: in the C locale Python puts one of its own there (PEP 538)."""
    found = environ.get("LC_CTYPE", "")
    if found not in ("C.UTF-8", "C.utf8", "UTF-8") or environ is not os.environ:
        return found
    try:
        with open("/proc/self/environ", "rb") as file:
            given = b"\0" + file.read()
    except OSError:
        return found
    return given.partition(b"\0LC_CTYPE=")[2].partition(b"\0")[0].decode("ascii", "replace")
