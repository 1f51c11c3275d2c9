"""Unified diffs inside a text, file by file. Pure.

The line counts of each hunk are followed, so that file content that looks like a diff header is not taken for
one.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_HEADER = re.compile(
    r"--- |\+\+\+ |index |old mode |new mode |new file |deleted file |rename |copy |similarity "
    r"|dissimilarity |Binary files |\\ "
)
_NAMED = re.compile(r"(?:--- |\+\+\+ |rename from |rename to |copy from |copy to )(.*)")


def without(text: str, is_left_out: Callable[[str], bool]) -> str:
    """`text` with a note in place of each file's diff if its old or new path is to be left out."""
    if "\n+++ " not in text and "diff --git " not in text:
        return text
    lines = text.split("\n")
    shown: list[str] = []
    number = 0
    while number < len(lines):
        if not _begins(lines, number):
            shown.append(lines[number])
            number += 1
            continue
        end, paths = _file(lines, number)
        if any(is_left_out(path) for path in paths):
            shown.append(f"[the diff of a forbidden path is left out: {end - number} lines]")
        else:
            shown.extend(lines[number:end])
        number = end
    return "\n".join(shown)


def _begins(lines: list[str], number: int) -> bool:
    line = lines[number]
    if line.startswith("diff --git "):
        return True
    return line.startswith("--- ") and number + 1 < len(lines) and lines[number + 1].startswith("+++ ")


def _file(lines: list[str], start: int) -> tuple[int, set[str]]:
    """Where the diff that begins at `start` ends, and the paths that it names."""
    is_git = lines[start].startswith("diff --git ")
    paths = _git_paths(lines[start]) if is_git else _named(lines[start])
    has_name = not is_git
    number = start + 1
    while number < len(lines):
        line = lines[number]
        if hunk := _HUNK.match(line):
            number = _after_hunk(lines, number + 1, int(hunk[1] or 1), int(hunk[2] or 1))
            continue
        if line.startswith("diff --git ") or (has_name and _begins(lines, number)):
            break
        if line.startswith("GIT binary patch"):
            number = _after_binary(lines, number + 1)
            continue
        if not _HEADER.match(line):
            break
        paths |= _named(line)
        has_name = has_name or line.startswith("--- ")
        number += 1
    return number, paths


def _after_hunk(lines: list[str], number: int, old: int, new: int) -> int:
    while number < len(lines) and (old > 0 or new > 0):
        match lines[number][:1]:
            case "-":
                old -= 1
            case "+":
                new -= 1
            case " " | "":
                old, new = old - 1, new - 1
            case "\\":
                pass
            case _:
                return number
        number += 1
    # Agents miscount: a line that still looks like part of the hunk belongs to it.
    while number < len(lines) and lines[number][:1] in ("+", "-", " ", "\\") and not _begins(lines, number):
        number += 1
    return number


def _after_binary(lines: list[str], number: int) -> int:
    """The line after the one or two blocks, each of which ends with an empty line."""
    while number < len(lines) and (lines[number].startswith(("literal ", "delta "))):
        while number < len(lines) and lines[number]:
            number += 1
        number += 1
    return number


def _git_paths(line: str) -> set[str]:
    rest = line[len("diff --git ") :].rstrip("\r")
    # `a/x b/x`: unquoted names may contain spaces, so every possible cut is tried.
    names = {part.strip('"') for part in re.split(r' (?="?b/)', rest)}
    return {path for name in names for path in (name, _below_prefix(name))}


def _named(line: str) -> set[str]:
    named = _NAMED.match(line)
    if named is None:
        return set()
    name = named[1].rstrip("\r").split("\t")[0].strip().strip('"')
    return {name, _below_prefix(name)}


def _below_prefix(name: str) -> str:
    return name[2:] if name.startswith(("a/", "b/")) else name
