"""What git keeps for itself and runs or obeys later: hooks and settings of the repository. No tree has it.

Who changes it has a person's next commit run something. So it is noted before a stage, by digests, and compared behind it.
"""

from __future__ import annotations

import json
import os
import re

from holdfast.errors import GitFailed
from holdfast.store import atomic
from holdfast.store.digest import sha256
from holdfast.workspace import git
from holdfast.workspace.snapshots.changes import Change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.workspace.place import Place
    from holdfast.workspace.snapshots.trees import Trees

#: Settings that everyday commands write (a new branch, `submodule update --init`), and that run nothing.
_EVERYDAY = re.compile(r"branch\..*|submodule\..*\.(url|active)|extensions\.worktreeconfig", re.DOTALL)
#: Settings in the file that all worktrees share which run nothing either, but decide where a push goes and who commits: told, though a
#: person or a neighbour may have written them. (`remote.*.uploadpack` and its like are commands.)
_NEUTRAL = re.compile(
    r"\.git/config \((user\..*|remote\.pushdefault"
    r"|remote\..*\.(url|pushurl|fetch|push|mirror|tagopt|prune|prunetags|gh-resolved))\)",
    re.DOTALL,
)
#: A hook that is larger is known by its size and time.
_READ_BYTES = 4 << 20


def note(place: Place, trees: Trees) -> str:
    """Keep what is there now; the name by which `changed_since` finds it again. Empty outside git."""
    if place.common_dir is None:
        return ""
    data = json.dumps(_all(place), sort_keys=True).encode()
    return git.text(trees.run(["hash-object", "-w", "-t", "blob", "--no-filters", "--stdin"], stdin=data))


def changed_since(place: Place, trees: Trees, noted: str) -> tuple[Change, ...]:
    """What is not as it was noted. Nothing, where nothing was noted."""
    if not noted or place.common_dir is None:
        return ()
    old: dict[str, str] = json.loads(trees.run(["cat-file", "blob", noted]))
    new = _all(place)
    found: list[Change] = []
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            kind = "added" if name not in old else "deleted" if name not in new else "modified"
            found.append(Change(path=f".git/{name}", kind=kind))
    return tuple(found)


def is_neutral(change: Change) -> bool:
    """Whether a change is one of settings that everybody who shares the repository may write, and that run nothing."""
    return _NEUTRAL.fullmatch(change.path) is not None


def _all(place: Place) -> dict[str, str]:
    assert place.common_dir is not None
    found = dict(_hooks(place.common_dir, ""))
    for folder, names, _ in os.walk(os.path.join(place.common_dir, "modules")):
        if "hooks" in names:
            found |= _hooks(folder, os.path.relpath(folder, place.common_dir) + "/")
            names[:] = [name for name in names if name not in ("hooks", "objects", "refs", "logs")]
    for directory in dict.fromkeys((place.common_dir, place.git_dir or place.common_dir)):
        for name in ("config", "config.worktree"):
            found |= _settings(os.path.join(directory, name), name)
    attributes = os.path.join(place.common_dir, "info", "attributes")
    if os.path.lexists(attributes):
        found["info/attributes"] = _digest(attributes)
    return found


def _hooks(git_dir: str, prefix: str) -> Iterator[tuple[str, str]]:
    folder = os.path.join(git_dir, "hooks")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if not name.endswith(".sample"):
            yield f"{prefix}hooks/{name}", _digest(os.path.join(folder, name))


def _settings(path: str, name: str) -> dict[str, str]:
    if not os.path.exists(path):
        return {}
    try:
        listed = git.names(git.run(["config", "--file", path, "--list", "-z"], cwd=os.path.dirname(path)))
    except GitFailed:
        return {name: _digest(path)}  # it cannot be read, or not any more
    values: dict[str, list[str]] = {}
    for entry in listed:
        key, _, value = entry.partition("\n")
        if not _EVERYDAY.fullmatch(key):
            values.setdefault(key, []).append(value)
    return {
        f"{name} ({key})": sha256("\0".join(said).encode("utf-8", "surrogateescape"))
        for key, said in values.items()
    }


def _digest(path: str) -> str:
    try:
        found, target = os.stat(path), os.readlink(path) if os.path.islink(path) else ""
        data = atomic.read_small(path, _READ_BYTES) if os.path.isfile(path) else None
    except OSError as error:
        return f"unreadable: {error.strerror}"
    content = sha256(data) if data is not None else f"{found.st_size} {found.st_mtime_ns}"
    return f"{found.st_mode & 0o111:o} {target} {content}"
