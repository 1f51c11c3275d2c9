"""Printing: stdout is for results, stderr for messages.

Lines fit the terminal (`terminal.width`), and characters that the locale lacks are replaced
(`set_up_streams`). `holdfast help environment` documents both rules.
"""

from __future__ import annotations

import errno
import os
import stat
import sys

from holdfast import quick_json
from holdfast.views.cli.show import terminal
from holdfast.views.text.fit_text import as_displayed, cell_width, command_width, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TextIO

    from holdfast.errors import HoldfastError


#: Errors of a write to stdout.
_NO_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.ENXIO)


# ── results, on stdout ──


def data(value: Any) -> None:
    """Print a value as one line of JSON."""
    print(_json_line(value), flush=True)


def _json_line(value: Any) -> str:
    """JSON in which whatever stdout cannot encode is escaped; on a terminal, also what it would obey."""
    text = quick_json.dumps(value, ensure_ascii=False)
    if not text.isprintable() and terminal.is_terminal():
        # JSON itself escapes only the controls below 0x20.
        text = "".join(f"\\u{ord(char):04x}" if _is_obeyed(char) else char for char in text)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = quick_json.dumps(value)
    return text


def _is_obeyed(char: str) -> bool:
    """Whether it is a control character, or changes the order in which a line is shown."""
    return "\x7f" <= char < "\xa0" or "\u202a" <= char <= "\u202e" or "\u2066" <= char <= "\u2069"


def task_line(text: str, manifest: dict[str, Any] | None = None) -> None:
    """Print a line about a task, or its manifest. The task exists even if stdout is closed or full, so that
    is not an error: the command goes on."""
    try:
        print(text if manifest is None else _json_line(manifest), flush=True)
    except BrokenPipeError:
        discard_stdout()
    except OSError as error:
        discard_stdout()
        talk(f"warning: stdout did not take {text!r}: {error.strerror}")


def say(text: str, *, first: str = "", rest: str = "") -> None:
    """Print a wrapped text on stdout."""
    for line in wrap(as_displayed(text), terminal.width(), first=first, rest=rest):
        print(line)


def fact(name: str, text: str, *, at: int) -> None:
    """Print `name      text`; every line of the text starts in column `at`."""
    say(text, first=f"{name:{at - 1}} ", rest=" " * at)


def discard_stdout() -> None:
    """Send stdout to /dev/null, so that flushing its buffer does not fail again."""
    try:
        descriptor = os.open(os.devnull, os.O_WRONLY)
    except OSError:  # no descriptor is left: that of stdout is the next one to be used
        os.close(1)
        os.open(os.devnull, os.O_WRONLY)
        return
    os.dup2(descriptor, 1)
    os.close(descriptor)


def is_about_stdout(error: Exception) -> bool:
    """Whether an OSError without a file name comes from printing: it does not say what was written to."""
    if not isinstance(error, OSError) or error.errno not in _NO_OUTPUT:
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    # Views print; they write files through `store`.
    name = trace.tb_frame.f_globals.get("__name__", "") if trace is not None else ""
    return name.startswith(("holdfast.views.", "click."))


def is_terminal_gone(error: Exception) -> bool:
    """Whether the terminal on stdout was closed while we were kept alive (`nohup`). The same error for a file
    means a broken disk."""
    if not isinstance(error, OSError) or error.errno != errno.EIO or error.filename is not None:
        return False
    return stat.S_ISCHR(os.fstat(1).st_mode)


def go_on_without_terminal(stream: TextIO, error: OSError) -> None:
    """The terminal of a stream is gone: send the rest to /dev/null. Raises any other error."""
    if error.errno != errno.EIO or not stat.S_ISCHR(os.fstat(stream.fileno()).st_mode):
        raise error
    descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(descriptor, stream.fileno())
    os.close(descriptor)


# ── messages, on stderr; one that cannot be printed is dropped ──


def talk(text: str, *, rest: str = "  ") -> None:
    """Print a message, with `rest` before its continuation lines."""
    try:
        print("\n".join(message_lines(text, rest=rest)), file=sys.stderr, flush=True)
    except OSError:
        return


def message_lines(text: str, *, rest: str = "  ") -> list[str]:
    """The lines that `talk` prints."""
    indent = text[: len(text) - len(text.lstrip(" "))]
    return wrap(
        as_displayed(text.lstrip(" "), sys.stderr),
        terminal.width(sys.stderr),
        first=indent,
        rest=indent + rest,
    )


def quote(line: str) -> None:
    """Print a line of a task's output, with `| ` before each of its lines."""
    try:
        for piece in wrap(
            as_displayed(line, sys.stderr),
            terminal.width(sys.stderr),
            first="| ",
            rest="| ",
            is_quoted=True,
        ):
            print(piece, file=sys.stderr, flush=True)
    except OSError:
        return


def steps(pairs: Sequence[tuple[str, str]]) -> None:
    """Print commands to type next, in one column, and what they do, in another."""
    width = command_width(command for command, _ in pairs)
    for command, meaning in pairs:
        step(command, meaning, width=width)


def step(command: str, meaning: str, *, width: int = 0) -> None:
    """Print a command to type next and what it does, on one line or, if too narrow, on two."""
    columns = terminal.width(sys.stderr)
    line = as_displayed(f"  {command:{width}}   {meaning}".rstrip(), sys.stderr)
    if columns is None or cell_width(line) <= columns:
        talk(line)
        return
    try:
        print(f"  {as_displayed(command, sys.stderr)}", file=sys.stderr)
    except OSError:
        return
    talk(f"      {meaning}", rest="")


def complain(error: HoldfastError) -> int:
    """Print an error with its details and hint. Returns the exit status."""
    talk(f"error: {error}")
    for detail in error.details:
        talk(f"  {detail}")
    if error.hint:
        talk(f"hint: {error.hint}")
    return error.exit_status


def draw(text: str) -> None:
    """Write to the terminal on stderr as is."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        return


# ── characters ──


def set_up_streams() -> None:
    """Make stdout and stderr replace characters that the user's locale lacks, instead of raising."""
    streams: list[Any] = [each for each in (sys.stdout, sys.stderr) if hasattr(each, "reconfigure")]
    if is_utf8(os.environ):
        for stream in streams:
            stream.reconfigure(errors="backslashreplace")
        return
    from holdfast.views.cli.show import fallback_glyphs

    for stream in streams:
        fallback_glyphs.use_locale_encoding(stream, os.environ)


def is_utf8(environ: Mapping[str, str]) -> bool:
    """Whether the user's locale is UTF-8: the first of LC_ALL, LC_CTYPE and LANG that is set decides. Without
    any it is the C locale, which is not."""
    locale = environ.get("LC_ALL") or _ctype(environ) or environ.get("LANG") or "C"
    codeset = locale.partition("@")[0].rpartition(".")[2]
    return codeset.lower().replace("-", "") == "utf8"


def _ctype(environ: Mapping[str, str]) -> str:
    """LC_CTYPE as the user set it: in the C locale, Python sets its own (PEP 538)."""
    current = environ.get("LC_CTYPE", "")
    if current not in ("C.UTF-8", "C.utf8", "UTF-8") or environ is not os.environ:
        return current
    try:
        with open("/proc/self/environ", "rb") as file:
            initial = b"\0" + file.read()
    except OSError:
        return current
    return initial.partition(b"\0LC_CTYPE=")[2].partition(b"\0")[0].decode("ascii", "replace")
