"""Splitting a shell script into commands that can be run and judged one by one."""

from __future__ import annotations

import re
import subprocess

from holdfast import program_search

_CHECK_S = 10
#: A longer script is one command.
_MAX_LINES = 500
#: `<<END`, `<<-'END'`; but not `<<<`, nor `1<<2` in `$(( ))`, which no word follows.
_HERE_DOCUMENT = re.compile(r"(?<!<)<<(-?)[ \t]*((?:\\?[A-Za-z_][\w-]*)|'[^'\n]+'|\"[^\"\n]+\")")


def shell_path() -> str:
    """The path of bash, or of sh where there is no bash. An agent's `bash` would pass every check."""
    return program_search.find("bash") or "/bin/sh"


def commands(text: str) -> tuple[str, ...]:
    """The commands of a script. A loop or a here-document is one command.

    Each command has as few lines as possible. Incomplete lines at the end are one command, which will fail.
    """
    if text.count("\n") > _MAX_LINES:
        return (text.strip(),)
    whole: list[str] = []
    lines: list[str] = []
    for line in text.split("\n"):
        if not lines and (not line.strip() or line.lstrip().startswith("#")):
            continue
        lines.append(line if lines else line.lstrip())
        if _is_whole(lines):
            whole.append("\n".join(lines).rstrip())
            lines = []
    rest = "\n".join(lines).strip()
    return (*whole, rest) if rest else tuple(whole)


def _is_whole(lines: list[str]) -> bool:
    last = lines[-1]
    if (len(last) - len(last.rstrip("\\"))) % 2:
        return False
    if _has_open_document("\n".join(lines)):
        return False
    try:
        done = subprocess.run(
            [shell_path(), "-n"],
            input="\n".join(lines).encode("utf-8", "surrogateescape"),
            capture_output=True,
            check=False,
            timeout=_CHECK_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _has_open_document(text: str) -> bool:
    """Whether a here-document has no end yet. `sh -n` accepts that, with a warning at most."""
    delimiters: list[tuple[str, bool]] = []
    for line in text.split("\n"):
        if delimiters:
            word, is_stripped = delimiters[0]
            if (line.lstrip("\t") if is_stripped else line) == word:
                delimiters.pop(0)
            continue
        for dash, word in _HERE_DOCUMENT.findall(line):
            delimiters.append((word.replace("\\", "").strip("'\""), bool(dash)))
    return bool(delimiters)
