"""A patch in colour, for a terminal."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_HEADER, _HUNK, _ADDED, _REMOVED = "1", "36", "32", "31"


def coloured(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a patch with colours, as git has them. A file's own text has none of its own: it must be
    printable already."""
    in_hunk = False
    for line in lines:
        if line.startswith("diff --git "):
            in_hunk = False
        elif line.startswith("@@ "):
            in_hunk = True
        code = _code(line, in_hunk=in_hunk)
        yield f"\x1b[{code}m{line}\x1b[0m" if code and line else line


def coloured_counts(lines: Iterable[str]) -> Iterator[str]:
    """The lines of `--stat`: `file | 3 ++-`, with the signs in colour."""
    for line in lines:
        name, bar, counts = line.rpartition(" | ")
        signs = counts.lstrip(" 0123456789")
        if not bar or not signs or signs.strip("+-"):
            yield line
            continue
        added, removed = signs.count("+"), signs.count("-")
        shown = f"\x1b[{_ADDED}m{'+' * added}\x1b[0m" * bool(added)
        shown += f"\x1b[{_REMOVED}m{'-' * removed}\x1b[0m" * bool(removed)
        yield f"{name}{bar}{counts[: len(counts) - len(signs)]}{shown}"


def _code(line: str, *, in_hunk: bool) -> str:
    if not in_hunk:
        return _HEADER
    if line.startswith("@@ "):
        return _HUNK
    return {"+": _ADDED, "-": _REMOVED}.get(line[:1], "")
