"""A shell script, taken apart into the commands that can be run and judged one by one."""

from __future__ import annotations

import os
import shutil
import subprocess

_CHECK_S = 10


def shell_path() -> str:
    """bash where it is, else sh."""
    return shutil.which("bash") or "/bin/sh"


def commands(text: str) -> tuple[str, ...]:
    """The commands of a script: each as few lines as are a command by themselves, so that a loop or a here-document is one, and
    the line behind it is another. Lines at the end that are none are one that will fail."""
    found: list[str] = []
    lines: list[str] = []
    for line in text.split("\n"):
        if not lines and (not line.strip() or line.lstrip().startswith("#")):
            continue
        lines.append(line if lines else line.lstrip())
        if _is_whole(lines):
            found.append("\n".join(lines).rstrip())
            lines = []
    rest = "\n".join(lines).strip()
    return (*found, rest) if rest else tuple(found)


def _is_whole(lines: list[str]) -> bool:
    last = lines[-1]
    if (len(last) - len(last.rstrip("\\"))) % 2:
        return False
    done = subprocess.run(
        [shell_path(), "-n", "-c", "\n".join(lines)],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C"},
        check=False,
        timeout=_CHECK_S,
    )
    # A here-document without an end is only worth a warning to a shell.
    return done.returncode == 0 and b"here-document" not in done.stderr
