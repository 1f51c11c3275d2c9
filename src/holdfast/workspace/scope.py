"""What a task may change: `scope.allow` without `scope.deny`. The scope gate asks it, and so do those who bring work home."""

from __future__ import annotations

import os

from pathspec import GitIgnoreSpec

from holdfast.packet import load
from holdfast.workspace.patterns import tidy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.store.layout import Packet


class Scope:
    """The patterns of a task."""

    def __init__(self, allow: Iterable[str], deny: Iterable[str]) -> None:
        self._allow = GitIgnoreSpec.from_lines([tidy(pattern) for pattern in allow])
        self._deny = GitIgnoreSpec.from_lines([tidy(pattern) for pattern in deny])

    def objection(self, path: str) -> str | None:
        """Why a path (relative to the project) may not change; None when it may."""
        if path == ".." or path.startswith("../"):
            return "it lies outside the project"
        if self.denies(path):
            return "it is denied by scope.deny"
        return None if self._allow.match_file(path) else "it is not in scope.allow"

    def denies(self, path: str) -> bool:
        """Whether a path is denied. A directory has a slash at its end, as patterns want it."""
        return bool(self._deny.match_file(path))

    def has(self, path: str, prefix: str) -> bool:
        """Whether a path of the whole tree may change, for a project that lies at `prefix` in it."""
        return self.objection(seen_from(prefix, path)) is None


def of(packet: Packet) -> Scope | None:
    """The scope of a task; None for a plain run, which has none and may change anything."""
    pipeline = load.fold(packet).spec.pipeline
    return None if pipeline is None else Scope(pipeline.scope_allow, pipeline.scope_deny)


def seen_from(prefix: str, path: str) -> str:
    """A path of the tree as the project sees it: `../x` where it lies beside the project."""
    if not prefix or path.startswith(prefix):
        return path[len(prefix) :]
    return os.path.relpath("/" + path, "/" + prefix)
