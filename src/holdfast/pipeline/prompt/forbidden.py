"""Forbidden paths: what no agent may be shown. Patterns are those of .gitignore, seen from the project's root.

An attachment of such a path is refused, what a diff says about it is left out, and where a text mentions it the mention is
masked. A path that is relative is looked at as it is; of one from elsewhere (absolute, `../`) every end counts, because
its root is not known.
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
#: What could be a path in running text. The mask comes first, it is not looked into; then the escapes of JSON and code.
_TOKEN = re.compile(re.escape(MASK) + r"|\\.|[^\s\"'`<>|;,()\[\]{}=:\\*?]+")
#: No path of a project is deeper, whatever stands before it.
_MOST_PARTS = 64
_WILD = re.compile(r"[*?\[\]\\!/]+")


class Forbidden:
    """The forbidden paths of one task. Raises InvalidPattern for a pattern that means nothing."""

    def __init__(self, patterns: Iterable[str], *, project_dir: str = "") -> None:
        self.patterns = tuple(patterns)
        self._root = os.path.realpath(project_dir).rstrip("/") + "/" if project_dir else ""
        self._spec = _spec(self.patterns) if self.patterns else None
        #: A path that a pattern fits contains the longest plain part of that pattern; empty: it may fit anything.
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
        parts = [part for part in inner.split("/") if part not in ("", "..", "~")][-_MOST_PARTS:]
        tail = "/" if inner.endswith("/") else ""
        ends = ("/".join(parts[start:]) + tail for start in range(len(parts)))
        return any(self._spec.match_file(end) for end in ends)

    def without_diffs(self, text: str) -> str:
        """`text` with a note in place of every diff of a forbidden path."""
        return text if self._spec is None else diff_text.without(text, self.matches)

    def mask(self, text: str) -> str:
        """`text` with every mention of a forbidden path masked. The bare name of a directory is an ordinary word and stays."""
        if self._spec is None:
            return text
        for path in self._spaced:
            text = text.replace(path, MASK)
        return _TOKEN.sub(self._masked, text)

    def _masked(self, found: re.Match[str]) -> str:
        token = found[0]
        if token == MASK or token[0] == "\\":
            return token
        bare = token.lstrip("+-@$&#%").rstrip(".!")
        return token.replace(bare, MASK) if bare and self._is_mention(bare) else token

    def _is_mention(self, word: str) -> bool:
        known = self._known.get(word)
        if known is None:
            known = self._known[word] = self._could_fit(word) and self._fits(word)
        return known

    def _could_fit(self, word: str) -> bool:
        return any(hint in word if hint else "/" in word or "." in word for hint in self._hints)

    def _fits(self, word: str) -> bool:
        # A directory is forbidden if what lies in it is; git shows paths as a/… and b/….
        shapes = [word, word[2:]] if word.startswith(("a/", "b/")) else [word]
        shapes += [f"{shape.rstrip('/')}/_" for shape in shapes if "/" in shape]
        return any(self.matches(shape) for shape in shapes)


def check(pattern: str) -> str | None:
    """Why a pattern cannot be used; None when it can."""
    try:
        _spec((pattern,))
    except InvalidPattern as error:
        return str(error)
    return None


def _spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    for pattern in patterns:
        if not pattern.strip() or pattern.lstrip().startswith("#"):
            raise InvalidPattern(f"{pattern!r} names no path")
    try:
        return compiled(patterns)
    except ValueError as error:
        raise InvalidPattern(f"not a pattern of paths: {error}") from error
