"""Checks that a command can be executed, so that a typo is an error now and not after ten retries."""

from __future__ import annotations

import os

from holdfast.errors import CommandNotFound

_HEAD_BYTES = 512


def check(program: str, project: str) -> None:
    """Raise CommandNotFound if `program`, found as by a shell in the directory `project`, cannot run."""
    if "/" in program:
        candidates = [os.path.join(project, program)]
    else:
        folders = os.environ.get("PATH", os.defpath).split(":")
        # An empty or relative entry of PATH is relative to the project, too.
        candidates = [os.path.join(project, folder, program) for folder in folders]
    for path in candidates:
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return _check_format(path, project)
    if "/" in program and os.path.isdir(candidates[0]):
        raise CommandNotFound(f"{program} is a directory", hint="name a program in it")
    for path in candidates:
        if os.path.isfile(path):
            raise CommandNotFound(f"{path} is not executable", hint=_how_to_run(path))
    raise CommandNotFound(f"{program}: command not found")


def _check_format(path: str, project: str) -> None:
    """A text file needs a `#!` line with an interpreter that exists. Other formats are not checked."""
    head = _head(path)
    if not head.startswith(b"#!"):
        if head and b"\0" not in head:
            raise CommandNotFound(
                f"{path} is a text file without a #! line",
                hint=f"run it with its interpreter: 'sh {_quoted(path)}' if it is a shell script",
            )
        return
    line = head[2:].partition(b"\n")[0].replace(b"\t", b" ").strip(b" ")
    interpreter = os.fsdecode(line.partition(b" ")[0])
    if interpreter and os.path.exists(os.path.join(project, interpreter)):
        return
    if interpreter.endswith("\r"):
        raise CommandNotFound(
            f"{path} has Windows line ends (CR LF), so its interpreter is not found",
            hint=f"sed -i 's/\\r$//' {_quoted(path)}",
        )
    raise CommandNotFound(
        f"{path} needs {interpreter or 'an interpreter'}, which does not exist", hint="fix its first line"
    )


def _head(path: str) -> bytes:
    """The first bytes; empty if the file is not readable."""
    try:
        with open(path, "rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""


def _how_to_run(path: str) -> str:
    """The hint for a file without execute permission."""
    is_program = _head(path).startswith((b"#!", b"\x7fELF"))
    is_own = os.stat(path).st_uid == os.getuid()
    if is_program and is_own:
        return f"chmod +x {_quoted(path)}"
    return "it does not look like a program: name one that reads it"


def _quoted(path: str) -> str:
    from shlex import quote  # only needed for an error

    return quote(path)
