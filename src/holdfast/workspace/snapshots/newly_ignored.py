"""Files hidden by a new ignore rule: an agent must not hide files by changing a `.gitignore`.

Only rules in a `.gitignore` that is itself a visible change count. A cache directory whose `.gitignore`
ignores everything, itself included, stays ignored.
"""

from __future__ import annotations

import os

from holdfast.store import atomic
from holdfast.workspace import git
from holdfast.workspace.snapshots import ignore_rules
from holdfast.workspace.snapshots.changes import Change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.workspace.project_tree import ProjectTree
    from holdfast.workspace.snapshots.trees import Trees


def newly_ignored(
    project: ProjectTree, trees: Trees, old_tree: str, changes: Iterable[Change]
) -> list[Change]:
    """New files that a rule of a changed `.gitignore` hides, and that the old rules did not."""
    changed = {
        change.path
        for change in changes
        if os.path.basename(change.path) == ".gitignore" and change.kind != "deleted"
    }
    if not changed:
        return []
    index, rules = trees.index_of(project.top), ignore_rules.write(trees, old_tree)
    try:
        untracked = _untracked(trees, project, index, [f"--exclude-from={rules}"])
    finally:
        atomic.forget(rules)
    files = [path for path in untracked if not path.endswith("/")]
    if not files:
        return []
    # For each ignored file: source, line, pattern, path.
    output = trees.run(
        ["check-ignore", "-z", "-v", "--stdin"],
        work_tree=project.top,
        index=index,
        stdin=git.listing(files),
        # check-ignore takes paths and fails if this is set.
        env={"GIT_LITERAL_PATHSPECS": "0"},
        allowed=(0, 1),
    ).split(b"\0")
    return [
        Change(path=os.fsdecode(path), kind="added")
        for source, path in zip(output[0::4], output[3::4], strict=False)
        if os.fsdecode(source) in changed
    ]


def _untracked(trees: Trees, project: ProjectTree, index: str, rules: list[str]) -> list[str]:
    return git.names(trees.run(["ls-files", "-z", "-o", *rules], work_tree=project.top, index=index))
