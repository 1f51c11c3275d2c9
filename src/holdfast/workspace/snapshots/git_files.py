"""Hooks and settings of the repository, which no tree contains.

A changed hook or setting can run code at the user's next git command. So digests of these files are noted
before a stage and compared after it.
"""

from __future__ import annotations

import json
import os
import re

from holdfast.store import atomic
from holdfast.store.digest import sha256
from holdfast.store.directories import walk
from holdfast.workspace import git
from holdfast.workspace.snapshots.changes import Change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.workspace.project_tree import ProjectTree
    from holdfast.workspace.snapshots.trees import Trees

#: Settings that everyday commands write (a new branch, `submodule update --init`), and that never run code.
_EVERYDAY = re.compile(r"branch\..*|submodule\..*\.(url|active)|extensions\.worktreeconfig", re.DOTALL)
#: Shared settings that never run code, but decide where a push goes and who commits. Another worktree may
#: have written them, so a change is a warning. (`remote.*.uploadpack` and similar ones are commands.)
_NEUTRAL = re.compile(
    r"\.git/config \((user\..*|remote\.pushdefault"
    r"|remote\..*\.(url|pushurl|fetch|push|mirror|tagopt|prune|prunetags|gh-resolved))\)",
    re.DOTALL,
)
#: Of a larger hook only size and time are compared.
_READ_BYTES = 4 << 20


def note(project: ProjectTree, trees: Trees) -> str:
    """Store the current digests and return the id of the note for `changed_since`; empty outside git."""
    if project.common_dir is None:
        return ""
    data = json.dumps(_digests(project), sort_keys=True).encode()
    return git.text(trees.run(["hash-object", "-w", "-t", "blob", "--no-filters", "--stdin"], stdin=data))


def changed_since(project: ProjectTree, trees: Trees, noted: str) -> tuple[Change, ...]:
    """The changes since a note; nothing if there is no note."""
    if not noted or project.common_dir is None:
        return ()
    old: dict[str, str] = json.loads(trees.run(["cat-file", "blob", noted]))
    new = _digests(project)
    changes: list[Change] = []
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            kind = "added" if name not in old else "deleted" if name not in new else "modified"
            changes.append(Change(path=f".git/{name}", kind=kind))
    return tuple(changes)


def is_neutral(change: Change) -> bool:
    """Whether a change is in a shared setting that never runs code."""
    return _NEUTRAL.fullmatch(change.path) is not None


def _digests(project: ProjectTree) -> dict[str, str]:
    assert project.common_dir is not None
    digests = dict(_hooks(project.common_dir, ""))
    for folder, names, _ in walk(os.path.join(project.common_dir, "modules")):
        if "hooks" in names:
            digests |= _hooks(folder, os.path.relpath(folder, project.common_dir) + "/")
            names[:] = [name for name in names if name not in ("hooks", "objects", "refs", "logs")]
    for directory in dict.fromkeys((project.common_dir, project.git_dir or project.common_dir)):
        for name in ("config", "config.worktree"):
            digests |= _settings(os.path.join(directory, name), name)
    attributes = os.path.join(project.common_dir, "info", "attributes")
    if os.path.lexists(attributes):
        digests["info/attributes"] = _digest(attributes)
    return digests


def _hooks(git_dir: str, prefix: str) -> Iterator[tuple[str, str]]:
    folder = os.path.join(git_dir, "hooks")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if not name.endswith(".sample"):
            yield f"{prefix}hooks/{name}", _digest(os.path.join(folder, name))


def _settings(path: str, name: str) -> dict[str, str]:
    if not os.path.exists(path):
        return {}
    listed = git.settings.listed(atomic.read_small(path, _READ_BYTES) or b"")
    if listed is None:
        return {name: _digest(path)}  # it cannot be parsed
    values: dict[str, list[str]] = {}
    for key, value in listed:
        if not _EVERYDAY.fullmatch(key):
            values.setdefault(key, []).append(value)
    return {
        f"{name} ({key})": sha256("\0".join(each).encode("utf-8", "surrogateescape"))
        for key, each in values.items()
    }


def _digest(path: str) -> str:
    try:
        stats, target = os.stat(path), os.readlink(path) if os.path.islink(path) else ""
        data = atomic.read_small(path, _READ_BYTES) if os.path.isfile(path) else None
    except OSError as error:
        return f"unreadable: {error.strerror}"
    content = sha256(data) if data is not None else f"{stats.st_size} {stats.st_mtime_ns}"
    return f"{stats.st_mode & 0o111:o} {target} {content}"
