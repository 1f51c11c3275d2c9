"""Files that rules of ignoring hide which came with them: a changed `.gitignore` must not take its files out of sight.

Only rules in a `.gitignore` that is itself seen to be changed count. A cache that ignores itself, with all that is in it, is
nobody's work.
"""

from __future__ import annotations

import os

from holdfast.store import atomic
from holdfast.workspace import git
from holdfast.workspace.scope import below
from holdfast.workspace.snapshots.changes import Change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.workspace.place import Place
    from holdfast.workspace.snapshots.trees import Trees

_RULES_BYTES = 4 << 20


def newly_ignored(place: Place, trees: Trees, old_tree: str, changes: Iterable[Change]) -> list[Change]:
    """New files that git ignores now, by a rule of a changed `.gitignore`, and would not have ignored before."""
    changed = {
        change.path
        for change in changes
        if os.path.basename(change.path) == ".gitignore" and change.kind != "deleted"
    }
    if not changed:
        return []
    rules = os.path.join(trees.indexes, f"rules.{os.getpid()}")
    index = trees.index_of(place.top)
    atomic.write(rules, _rules(trees, old_tree), durable=False)
    try:
        seen = _others(trees, place, index, [f"--exclude-from={rules}"])
    finally:
        atomic.forget(rules)
    found = [path for path in seen if not path.endswith("/")]
    if not found:
        return []
    # Source, line, pattern and path, of each that is ignored now.
    said = trees.run(
        ["check-ignore", "-z", "-v", "--stdin"],
        work_tree=place.top,
        index=index,
        stdin=git.listing(found),
        # It takes paths, and minds being told so.
        env={"GIT_LITERAL_PATHSPECS": "0"},
        allowed=(0, 1),
    ).split(b"\0")
    return [
        Change(path=os.fsdecode(path), kind="added")
        for source, path in zip(said[0::4], said[3::4], strict=False)
        if os.fsdecode(source) in changed
    ]


def _others(trees: Trees, place: Place, index: str, rules: list[str]) -> list[str]:
    return git.names(trees.run(["ls-files", "-z", "-o", *rules], work_tree=place.top, index=index))


def _rules(trees: Trees, tree: str) -> bytes:
    """Every rule of ignoring that held in a tree, as patterns of its root: what lies deeper comes later and is stronger."""
    lines: list[bytes] = []
    asked = trees.run(["config", "--get", "--type=path", "core.excludesfile"], allowed=(0, 1))
    for path in (git.text(asked), os.path.join(trees.git_dir, "info", "exclude")):
        lines += (atomic.read_small(path, _RULES_BYTES) or b"").splitlines() if path else []
    entries = git.names(trees.run(["ls-tree", "-r", "-z", "--full-tree", tree]))
    found = [entry.split("\t", 1) for entry in entries if entry.endswith(".gitignore")]
    for facts, path in sorted(found, key=lambda pair: pair[1].count("/")):
        if os.path.basename(path) == ".gitignore" and facts.split()[1] == "blob":
            own = os.fsdecode(trees.run(["cat-file", "blob", facts.split()[2]])).splitlines()
            patterns = [line for line in own if line.strip() and not line.startswith("#")]
            lines += [os.fsencode(pattern) for pattern in below(path[: -len(".gitignore")], patterns)]
    return b"\n".join(lines) + b"\n"
