"""A shell script, taken apart into the commands that can be run and judged one by one."""

from __future__ import annotations

import re
import shutil
import subprocess

_CHECK_S = 10
#: More lines than this are one command: whoever writes so much means a program.
_MOST_LINES = 500
#: `<<END`, `<<-'END'`; a `<<<` is a word, and `1<<2` in `$(( ))` has no word behind it.
_DOCUMENT = re.compile(r"(?<!<)<<(-?)[ \t]*((?:\\?[A-Za-z_][\w-]*)|'[^'\n]+'|\"[^\"\n]+\")")


def shell_path() -> str:
    """bash where it is, else sh."""
    return shutil.which("bash") or "/bin/sh"


def commands(text: str) -> tuple[str, ...]:
    """The commands of a script: each as few lines as are a command by themselves, so that a loop or a here-document is one, and
    the line behind it is another. Lines at the end that are none are one that will fail."""
    if text.count("\n") > _MOST_LINES:
        return (text.strip(),)
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
    if _awaits_document("\n".join(lines)):
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


def _awaits_document(text: str) -> bool:
    """Whether a here-document has begun and not ended, which is only worth a warning to a shell, or not even that."""
    open_ends: list[tuple[str, bool]] = []
    for line in text.split("\n"):
        if open_ends:
            word, is_stripped = open_ends[0]
            if (line.lstrip("\t") if is_stripped else line) == word:
                open_ends.pop(0)
            continue
        for dash, word in _DOCUMENT.findall(line):
            open_ends.append((word.replace("\\", "").strip("'\""), bool(dash)))
    return bool(open_ends)
