"""What a task may change: `scope.allow` without `scope.deny`. And patterns of paths, as in .gitignore."""

from __future__ import annotations

import os
import re

from holdfast.packet import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pathspec import GitIgnoreSpec

    from holdfast.store.layout import Packet

#: Characters that have a meaning in a pattern.
_SPECIAL = "\\*?[] !#"
#: What pathspec makes of `?`, of `*`, of `/**` before a slash, and of `**/` at the beginning.
_ONE, _STAR, _FOLDERS, _ANYWHERE = "[^/]", "[^/]*", "(?:/.+)?", "^(?:.+/)?"


class Scope:
    """The scope of a task."""

    def __init__(self, allow: Iterable[str], deny: Iterable[str]) -> None:
        self._allow = compiled([_anchored(normalized(pattern)) for pattern in allow])
        self._deny = compiled([normalized(pattern) for pattern in deny])

    def objection(self, path: str) -> str | None:
        """Why a path, relative to the project, may not change; None if it may."""
        if path == ".." or path.startswith("../"):
            return "it is outside the project"
        if self.denies(path):
            return "it matches scope.deny"
        return None if self._allow.match_file(path) else "it is not in scope.allow"

    def denies(self, path: str) -> bool:
        """Whether `scope.deny` matches a path. A directory must end with a slash."""
        return bool(self._deny.match_file(path))

    def has(self, path: str, prefix: str) -> bool:
        """Whether a path of the whole tree may change, for a project at `prefix` in that tree."""
        return self.objection(project_path(prefix, path)) is None


def of(packet: Packet) -> Scope | None:
    """The scope of a task; None for a plain run, which may change anything."""
    pipeline = load.fold(packet).spec.pipeline
    return None if pipeline is None else Scope(pipeline.scope_allow, pipeline.scope_deny)


def project_path(prefix: str, path: str) -> str:
    """A path of the tree, relative to the project at `prefix`; `../x` if it is outside the project."""
    if not prefix or path.startswith(prefix):
        return path[len(prefix) :]
    return os.path.relpath("/" + path, "/" + prefix)


def compiled(patterns: Iterable[str]) -> GitIgnoreSpec:
    """Patterns, ready for matching. Raises ValueError."""
    from pathspec import GitIgnoreSpec  # a snapshot only needs patterns as text

    # Another backend, which pathspec would choose if it is installed, fails on names that are not UTF-8.
    found = GitIgnoreSpec.from_lines(patterns, backend="simple")
    for pattern in found.patterns:
        regex = getattr(pattern, "regex", None)
        if regex is not None and (text := _without_backtracking(regex.pattern)) != regex.pattern:
            pattern.regex = re.compile(text)
    return found


def _without_backtracking(regex: str) -> str:
    """The same expression of pathspec, in which a wildcard that another one follows takes the first match.

    That is enough: what is left for the next one only gets shorter. Otherwise the time grows with the power
    of the wildcards, and a packet could stop its runner for ever.
    """
    first, *rest = regex.split(_STAR)
    parts = [first]
    for at, piece in enumerate(rest):
        plain = piece.replace(_ONE, "")
        is_followed = at + 1 < len(rest) and "/" not in plain and "(?" not in plain
        parts.append(f"(?>[^/]*?{piece})" if is_followed else _STAR + piece)
    first, *rest = "".join(parts).split(_FOLDERS)
    if not rest:
        return first
    if first.startswith(_ANYWHERE):
        first = f"^(?>(?:.+?/)??{first[len(_ANYWHERE) :]}(?=/))"
    parts = [first, *(f"(?>(?:/.+?)??{piece}(?=/))" for piece in rest[:-1]), _FOLDERS + rest[-1]]
    return "".join(parts)


# ── patterns as text, for git ───────────────────────────────────────────────


def literal(path: str) -> str:
    """The pattern that matches only this path, relative to the root."""
    return "/" + "".join("\\" + char if char in _SPECIAL else char for char in path)


def below(prefix: str, patterns: Iterable[str]) -> tuple[str, ...]:
    """Patterns of the directory `prefix`, rewritten for the root above it."""
    return tuple(_below(prefix, normalized(pattern)) for pattern in patterns)


def _below(prefix: str, pattern: str) -> str:
    if not prefix:
        return pattern
    is_negated = pattern.startswith("!")
    rest = pattern[1:] if is_negated else pattern
    # A slash before the last character anchors a pattern to its directory.
    is_anchored = "/" in rest.rstrip("/")
    root = literal(prefix.rstrip("/"))
    return ("!" if is_negated else "") + root + ("/" if is_anchored else "/**/") + rest.lstrip("/")


def _anchored(pattern: str) -> str:
    """A pattern of `allow`: `src/` is the directory at the top, not one with that name anywhere."""
    is_plain_directory = pattern.endswith("/") and "/" not in pattern[:-1]
    return "/" + pattern if is_plain_directory else pattern


def normalized(pattern: str) -> str:
    """A pattern in the form that git knows: `./src` becomes `/src`, and `.` matches everything."""
    negation = "!" if pattern.startswith("!") else ""
    rest = pattern[len(negation) :]
    if rest in (".", "./", ""):
        return negation + "/**" if rest else pattern
    return negation + ("/" + rest[2:] if rest.startswith("./") else rest)
