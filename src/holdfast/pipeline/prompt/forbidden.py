"""Forbidden paths, which no agent may see. Patterns are those of .gitignore, relative to the project.

An attachment at such a path is refused, its diff is removed from texts, and mentions of it are masked. Of a
path outside the project (absolute, or with `../`) every suffix is matched, because its root is unknown.
"""

from __future__ import annotations

import os
import re

from holdfast.errors import InvalidPattern
from holdfast.pipeline.prompt import diff_text
from holdfast.workspace.scope import compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pathspec import GitIgnoreSpec

MASK = "[forbidden path]"
#: What could be a path in a text. The mask itself is skipped, and so are escape sequences of JSON and code.
_TOKEN = re.compile(re.escape(MASK) + r"|\\.|[^\s\"'`<>|;,()\[\]{}=:\\*?]+")
#: No path in a project is deeper.
_MAX_PARTS = 64
_WILD = re.compile(r"[*?\[\]\\!/]+")


class Forbidden:
    """The forbidden paths of one task. Raises InvalidPattern."""

    def __init__(self, patterns: Iterable[str], *, project_dir: str = "") -> None:
        self.patterns = tuple(patterns)
        self._root = os.path.realpath(project_dir).rstrip("/") + "/" if project_dir else ""
        self._spec = _spec(self.patterns) if self.patterns else None
        #: The longest literal part of each pattern, which every matching path contains; empty: any path.
        self._hints = [
            max(_WILD.split(pattern), key=len) for pattern in self.patterns if not pattern.startswith("!")
        ]
        self._spaced = [pattern.strip("/") for pattern in self.patterns if " " in pattern.strip()]
        self._known: dict[str, bool] = {}

    def matches(self, path: str) -> bool:
        """Whether this is a forbidden path."""
        if self._spec is None:
            return False
        if self._root and path.startswith(self._root):
            path = path[len(self._root) :]
        inner = path
        while inner.startswith("./"):
            inner = inner[2:]
        if not inner.startswith(("/", "../", "~")):
            return self._spec.match_file(inner)
        parts = [part for part in inner.split("/") if part not in ("", "..", "~")][-_MAX_PARTS:]
        tail = "/" if inner.endswith("/") else ""
        suffixes = ("/".join(parts[start:]) + tail for start in range(len(parts)))
        return any(self._spec.match_file(suffix) for suffix in suffixes)

    def without_diffs(self, text: str) -> str:
        """`text` with a note in place of every diff of a forbidden path."""
        return text if self._spec is None else diff_text.without(text, self.matches)

    def mask(self, text: str) -> str:
        """`text` with mentions of forbidden paths masked.

        The bare name of a directory is an ordinary word.
        """
        if self._spec is None:
            return text
        for path in self._spaced:
            text = text.replace(path, MASK)
        return _TOKEN.sub(self._masked, text)

    def _masked(self, match: re.Match[str]) -> str:
        token = match[0]
        if token == MASK or token[0] == "\\":
            return token
        bare = token.lstrip("+-@$&#%").rstrip(".!")
        return token.replace(bare, MASK) if bare and self._is_mention(bare) else token

    def _is_mention(self, word: str) -> bool:
        known = self._known.get(word)
        if known is None:
            known = self._known[word] = self._could_match(word) and self._matches_word(word)
        return known

    def _could_match(self, word: str) -> bool:
        return any(hint in word if hint else "/" in word or "." in word for hint in self._hints)

    def _matches_word(self, word: str) -> bool:
        # A directory is forbidden if its content is; git shows paths as a/… and b/….
        candidates = [word, word[2:]] if word.startswith(("a/", "b/")) else [word]
        candidates += [f"{candidate.rstrip('/')}/_" for candidate in candidates if "/" in candidate]
        return any(self.matches(candidate) for candidate in candidates)


def check(pattern: str) -> str | None:
    """Why a pattern cannot be used; None if it can."""
    try:
        _spec((pattern,))
    except InvalidPattern as error:
        return str(error)
    return None


def _spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    for pattern in patterns:
        if not pattern.strip() or pattern.lstrip().startswith("#"):
            raise InvalidPattern(f"{pattern!r} matches no path")
    try:
        return compiled(patterns)
    except ValueError as error:
        raise InvalidPattern(f"not a path pattern: {error}") from error
