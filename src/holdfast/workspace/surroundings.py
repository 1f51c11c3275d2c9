"""What is around a task's worktree: the branches of the repository, and the user's own tree.

A worktree shares them, and only the sandbox keeps an agent from changing them. They are noted before a stage
and compared after it. A person works there too, so a difference is reported, but is no failure
(docs/decisions/0068-around-a-worktree.md).
"""

from __future__ import annotations

import json
import os

from holdfast.errors import HoldfastError
from holdfast.model.record import Record
from holdfast.store.digest import sha256
from holdfast.workspace import git, task_worktree
from holdfast.workspace.project_tree import locate
from holdfast.workspace.snapshots import snapshot
from holdfast.workspace.snapshots.changes import changed, few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Home, Packet
    from holdfast.workspace.snapshots.trees import Trees

#: Branches of tasks, and what a fetch in the background writes.
_NOT_COMPARED = ("refs/heads/holdfast/", "refs/remotes/", "refs/prefetch/")
_SHORT = 10
#: Ended tasks that may have been applied meanwhile.
_RECENT = 200
_ASK = "if that was not you, look at 'git reflog' there"


class Around(Record):
    """The surroundings at one moment."""

    #: Ref → commit.
    refs: dict[str, str] = {}
    #: The branch and the commit that are checked out in the user's tree.
    head: str = ""
    #: The digest of its index, and its tree of files.
    index: str = ""
    files: str = ""


def note(packet: Packet, trees: Trees) -> str:
    """Store what is there now; returns the id for `changed_since`, empty if it cannot be read."""
    try:
        around = _read(packet, trees)
        if around is None:
            return ""
        data = json.dumps(around.to_json(), sort_keys=True).encode()
        return git.text(trees.run(["hash-object", "-w", "-t", "blob", "--no-filters", "--stdin"], stdin=data))
    except HoldfastError:
        return ""  # it is no part of the stage's work


def changed_since(packet: Packet, trees: Trees, noted: str, stage: str) -> tuple[str, ...]:
    """What changed since a note, as sentences; nothing if there is no note."""
    if not noted:
        return ()
    try:
        old = Around.from_json(json.loads(trees.run(["cat-file", "blob", noted])))
        new = _read(packet, trees)
    except (HoldfastError, ValueError):
        return ()
    if new is None:
        return ()
    found = differences(old, new, trees)
    ask = (found and _applied(packet.home, old, new)) or _ASK
    return tuple(f"{what} while {stage} ran; {ask}" for what in found)


def _applied(home: Home, old: Around, new: Around) -> str:
    """That a `holdfast apply` explains the difference; empty if none does. An agent could forge its record,
    so the difference is reported all the same."""
    moved = [name for name in {*old.refs, *new.refs} if old.refs.get(name) != new.refs.get(name)]
    if len(moved) != 1 or moved[0] not in new.refs:
        return ""
    from holdfast.store.index import Index  # few gates see a moved branch

    index = Index(home)
    try:
        rows = index.ended(_RECENT)
    finally:
        index.close()
    for row in rows:
        applied: Any = row.get("applied") or {}
        is_it = applied.get("commit") == new.refs[moved[0]]
        if is_it and moved[0] == f"refs/heads/{applied.get('branch')}":
            return f"'holdfast apply {row['task_id']}' made that commit, as its record says"
    return ""


def differences(old: Around, new: Around, trees: Trees) -> list[str]:
    """Each kind of difference as the start of a sentence."""
    found: list[str] = []
    refs = [
        f"{name} ({_short(old.refs.get(name))} → {_short(new.refs.get(name))})"
        for name in sorted({*old.refs, *new.refs})
        if old.refs.get(name) != new.refs.get(name)
    ]
    if refs:
        found.append(f"refs of the repository changed: {few(refs)}")
    if old.head.partition(" ")[0] != new.head.partition(" ")[0]:
        found.append("another branch was checked out in the project")
    if old.files != new.files and old.files and new.files:
        paths = [change.path for change in changed(trees, old.files, new.files)]
        if paths:
            found.append(f"files of the project itself changed: {few(paths)}")
    elif old.index != new.index and old.head == new.head:
        found.append("the index of the project itself changed")
    return found


def _short(commit: str | None) -> str:
    return commit[:_SHORT] if commit else "none"


def _read(packet: Packet, trees: Trees) -> Around | None:
    tree = task_worktree.of(packet)
    if tree is None:
        return None
    main = task_worktree.main_of(tree)
    with git.SharedDirectories():
        listed = git.run(["for-each-ref", "--format=%(refname) %(objectname)"], of=main)
        branch = git.text(git.run(["symbolic-ref", "-q", "HEAD"], of=main, allowed=(0, 1)))
        index = git.run(["ls-files", "-s", "-z"], of=main)
    pairs = (line.split(" ") for line in listed.decode("utf-8", "replace").splitlines())
    return Around(
        refs={name: commit for name, commit in pairs if not name.startswith(_NOT_COMPARED)},
        head=f"{branch or 'detached'} {git.head(main) or ''}",
        index=sha256(index),
        files=snapshot.take(locate(tree.main), trees, hidden=(os.path.realpath(packet.home.path),)),
    )
