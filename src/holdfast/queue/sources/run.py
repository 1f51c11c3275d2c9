"""Asking another program for its items: with a time limit, and with words when it is not there."""

from __future__ import annotations

import os
import subprocess

from holdfast.errors import CommandNotFound, NotPossible, UnreadableFile

LIMIT_S = 60.0
#: How to get a program that a source needs.
INSTALL = {
    "gh": "install the GitHub CLI (https://cli.github.com), then 'gh auth login'",
    "bd": "install beads (https://github.com/steveyegge/beads), then 'bd init' in the project",
    "gt": "install Gas Town (https://github.com/steveyegge/gastown)",
}
_MOST_BYTES = 64 * 1024**2


def output(argv: list[str], *, cwd: str, limit_s: float = LIMIT_S) -> bytes:
    """What a program prints. Raises CommandNotFound, NotPossible."""
    # A session of its own: what it started goes with it when its time is over.
    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise CommandNotFound(
            f"{argv[0]} is not installed", hint=INSTALL.get(argv[0], "check the spelling and PATH")
        ) from error
    except OSError as error:
        raise NotPossible(f"cannot run {argv[0]}: {error.strerror}") from error
    try:
        said, complained = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, 9)
        process.communicate()
        raise NotPossible(f"{argv[0]} gave no answer in {limit_s:g} s") from error
    if process.returncode != 0:
        why = complained.decode("utf-8", "replace").strip().splitlines()
        raise NotPossible(
            f"'{' '.join(argv[:3])}' ended with {process.returncode}" + (f": {why[0][:200]}" if why else ""),
            hint=INSTALL.get(argv[0], "run it by hand to see what it says"),
        )
    return said


def contents(path: str) -> bytes:
    """A file, or stdin for `-`. Raises UnreadableFile."""
    try:
        with open(0 if path == "-" else path, "rb", closefd=path != "-") as file:
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise UnreadableFile(
            f"cannot read {path}: {error.strerror}", hint="check its path and mode"
        ) from error
