"""Patterns of paths, the way of gitignore, as text: for git's own ears. (Matching in Python is in scope.py.) Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_SPECIAL = "\\*?[] !#"


def literal(path: str) -> str:
    """The pattern that fits this path, seen from the root, and nothing else."""
    return "/" + "".join("\\" + char if char in _SPECIAL else char for char in path)


def below(prefix: str, patterns: Iterable[str]) -> tuple[str, ...]:
    """Patterns of a directory as patterns of the root above it."""
    return tuple(_below(prefix, tidy(pattern)) for pattern in patterns)


def _below(prefix: str, pattern: str) -> str:
    if not prefix:
        return pattern
    negated = pattern.startswith("!")
    rest = pattern[1:] if negated else pattern
    # A slash that is not the last character ties a pattern to its directory.
    tied = "/" in rest.rstrip("/")
    root = literal(prefix.rstrip("/"))
    return ("!" if negated else "") + root + ("/" if tied else "/**/") + rest.lstrip("/")


def tidy(pattern: str) -> str:
    """A pattern as people write it: `./src` is `/src`, and `.` is everything."""
    negated = "!" if pattern.startswith("!") else ""
    rest = pattern[len(negated) :]
    if rest in (".", "./", ""):
        return negated + "/**" if rest else pattern
    return negated + ("/" + rest[2:] if rest.startswith("./") else rest)
