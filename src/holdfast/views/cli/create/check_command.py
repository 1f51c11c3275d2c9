"""Can a command be executed? A typo is told now, not after ten backoffs."""

from __future__ import annotations

import os

from holdfast.errors import CommandNotFound

_HEAD_BYTES = 512


def check(program: str, project: str) -> None:
    """Raise CommandNotFound, unless `program`, as a shell in the directory `project` would find it, may well run."""
    if "/" in program:
        candidates = [os.path.join(project, program)]
    else:
        folders = os.environ.get("PATH", os.defpath).split(":")
        # An empty one, or one that is not absolute, is meant from there as well.
        candidates = [os.path.join(project, folder, program) for folder in folders]
    for path in candidates:
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return _check_format(path, project)
    if "/" in program and os.path.isdir(candidates[0]):
        raise CommandNotFound(f"{program} is a directory", hint="name the program in it")
    for path in candidates:
        if os.path.isfile(path):
            raise CommandNotFound(f"{path} is not executable", hint=_how_to_run(path))
    raise CommandNotFound(f"{program}: no such program")


def _check_format(path: str, project: str) -> None:
    """Of what the kernel may know how to run only text is certain: it needs a first line that says who reads it."""
    head = _head(path)
    if not head.startswith(b"#!"):
        if head and b"\0" not in head:
            raise CommandNotFound(
                f"{path} is no program: it does not begin with #!",
                hint=f"name the program that reads it: 'sh {_quoted(path)}', if it is for a shell",
            )
        return
    line = head[2:].partition(b"\n")[0].replace(b"\t", b" ").strip(b" ")
    interpreter = os.fsdecode(line.partition(b" ")[0])
    if interpreter and os.path.exists(os.path.join(project, interpreter)):
        return
    if interpreter.endswith("\r"):
        raise CommandNotFound(
            f"the lines of {path} end with CR LF, so its interpreter is not found",
            hint=f"sed -i 's/\\r$//' {_quoted(path)}",
        )
    raise CommandNotFound(
        f"{path} needs {interpreter or 'an interpreter'}, which is not there", hint="see its first line"
    )


def _head(path: str) -> bytes:
    """Empty where it may be executed and not read."""
    try:
        with open(path, "rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""


def _how_to_run(path: str) -> str:
    """What lets a file run: its mode, where it is the user's own and begins as a program does."""
    is_program = _head(path).startswith((b"#!", b"\x7fELF"))
    is_own = os.stat(path).st_uid == os.getuid()
    if is_program and is_own:
        return f"chmod +x {_quoted(path)}"
    return "it is no program: name one that reads it"


def _quoted(path: str) -> str:
    from shlex import quote  # for a mistake only

    return quote(path)
