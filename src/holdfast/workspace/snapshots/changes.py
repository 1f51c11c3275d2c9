"""Comparing two trees: the changes as a list, as a patch, and as a tree with some of them."""

from __future__ import annotations

import os

from holdfast.model.record import Record
from holdfast.store import atomic
from holdfast.workspace import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.workspace.scope import Scope
    from holdfast.workspace.snapshots.trees import Trees

_KINDS = {"A": "added", "D": "deleted", "M": "modified", "T": "modified", "R": "renamed"}
#: How many paths a message lists.
_MAX_LISTED = 5
_LINK, _GITLINK, _NOTHING = "120000", "160000", "000000"


class Change(Record):
    """One changed path."""

    #: Relative to the root of the tree.
    path: str
    #: added, deleted, modified, renamed, or submodule: a nested repository is at another commit.
    kind: str
    #: With `renamed`: the path before.
    old_path: str | None = None
    #: It is a symbolic link now, with this target.
    is_symlink: bool = False
    target: str | None = None

    @property
    def ends(self) -> tuple[str, ...]:
        """Every path that the change touches."""
        return (self.path,) if self.old_path is None else (self.old_path, self.path)


class _Raw(Record):
    """One line of `git diff-tree --raw`."""

    old_mode: str
    new_mode: str
    old: str
    new: str
    kind: str
    path: str
    old_path: str | None = None


def changed(trees: Trees, old_tree: str, new_tree: str) -> tuple[Change, ...]:
    """All changes from one tree to the other, sorted by path, also inside nested repositories."""
    if old_tree == new_tree:
        return ()
    raws = list(_raws(trees, old_tree, new_tree))
    targets = _targets(trees, [raw.new for raw in raws if raw.new_mode == _LINK])
    changes: list[Change] = []
    for raw in raws:
        if _GITLINK in (raw.old_mode, raw.new_mode):
            changes += _inside(trees, raw)
        else:
            changes.append(_change(raw, targets))
    return tuple(sorted(changes, key=lambda change: change.path))


def few(paths: Sequence[str]) -> str:
    """The first paths of a list, for a message."""
    return ", ".join(paths[:_MAX_LISTED]) + (", …" if len(paths) > _MAX_LISTED else "")


def patch(trees: Trees, old_tree: str, new_tree: str) -> bytes:
    """The difference as a patch for `git apply`, including binary files."""
    return trees.run(["diff", "--binary", "--full-index", *_PLAIN, old_tree, new_tree, "--"])


def text(trees: Trees, old_tree: str, new_tree: str) -> bytes:
    """The difference as a patch to read: a binary file is only named."""
    return trees.run(["diff", *_PLAIN, *opened(trees, old_tree, new_tree), "--"])


def gitlinks(trees: Trees, old_tree: str, new_tree: str) -> list[str]:
    """The nested repositories that are not at the same commit in both trees."""
    if old_tree == new_tree:
        return []
    raws = _raws(trees, old_tree, new_tree)
    return [raw.path for raw in raws if _GITLINK in (raw.old_mode, raw.new_mode)]


def links(trees: Trees, tree: str) -> list[tuple[str, str]]:
    """The symbolic links of a tree: path and target."""
    entries = git.names(trees.run(["ls-tree", "-r", "-z", "--full-tree", tree]))
    rows = [entry.split("\t", 1) for entry in entries if entry.startswith(_LINK)]
    targets = _targets(trees, [facts.split()[2] for facts, _ in rows])
    return [(path, targets.get(facts.split()[2], "")) for facts, path in rows]


def opened(trees: Trees, old_tree: str, new_tree: str) -> tuple[str, str]:
    """Both trees for display: a nested repository with uncommitted changes is replaced by its files.

    In the trees it is a commit of ours, whose id means nothing to a reader.
    """
    ours = [
        raw
        for raw in (_raws(trees, old_tree, new_tree) if old_tree != new_tree else ())
        if raw.old_mode == raw.new_mode == _GITLINK
        and all(trees.has(side) for side in (raw.old, raw.new))
        and any(trees.is_own(side) for side in (raw.old, raw.new))
    ]
    if not ours:
        return old_tree, new_tree
    return (
        _with_files(trees, old_tree, [(raw.path, raw.old) for raw in ours]),
        _with_files(trees, new_tree, [(raw.path, raw.new) for raw in ours]),
    )


def _with_files(trees: Trees, tree: str, links: list[tuple[str, str]]) -> str:
    index = trees.temporary("opened")
    try:
        trees.run(["read-tree", tree], index=index)
        removals = [f"0 {'0' * len(tree)}\t{path}" for path, _ in links]
        trees.run(["update-index", "-z", "--index-info"], index=index, stdin=git.listing(removals))
        for path, commit in links:
            trees.run(["read-tree", "-i", f"--prefix={path}/", commit], index=index)
        return git.text(trees.run(["write-tree"], index=index))
    finally:
        atomic.forget(index)


def within(
    trees: Trees, old_tree: str, new_tree: str, *, scope: Scope | None, prefix: str
) -> tuple[str, tuple[str, ...]]:
    """The new tree with only the changes in the scope, and the paths that were left out."""
    if scope is None or old_tree == new_tree:
        return new_tree, ()
    inside: set[str] = set()
    for change in changed(trees, old_tree, new_tree):
        slash = "/" if change.kind == "submodule" else ""
        inside.update(end for end in change.ends if scope.has(end + slash, prefix))
    return only(trees, old_tree, new_tree, inside)


def only(trees: Trees, old_tree: str, new_tree: str, inside: set[str]) -> tuple[str, tuple[str, ...]]:
    """The new tree with only the changes of some paths (of any number), and the other changed paths."""
    # A nested repository is one entry of the tree, so it is included as a whole.
    whole = {parent for path in inside for parent in _parents(path)}
    names = git.names(
        trees.run(["diff-tree", "-r", "-z", "--no-renames", "--name-only", old_tree, new_tree, "--"])
    )
    outside = tuple(name for name in names if name not in inside and name not in whole)
    return (_without(trees, old_tree, new_tree, outside) if outside else new_tree), outside


def _parents(path: str) -> Iterator[str]:
    while path := os.path.dirname(path):
        yield path


def _without(trees: Trees, old_tree: str, new_tree: str, paths: tuple[str, ...]) -> str:
    """The new tree with these paths as in the old tree."""
    restored = set(paths)
    index = trees.temporary("within")
    null_id = "0" * len(new_tree)
    lines = [f"0 {null_id}\t{path}" for path in paths]
    old = git.names(trees.run(["ls-tree", "-r", "-z", "--full-tree", old_tree]))
    lines += [entry for entry in old if entry.partition("\t")[2] in restored]
    try:
        trees.run(["read-tree", new_tree], index=index)
        trees.run(["update-index", "-z", "--index-info"], index=index, stdin=git.listing(lines))
        return git.text(trees.run(["write-tree"], index=index))
    finally:
        atomic.forget(index)


def stat(trees: Trees, old_tree: str, new_tree: str) -> bytes:
    """The output of `git diff --stat`."""
    return trees.run(["diff", "--stat=100", *_PLAIN, old_tree, new_tree, "--"])


_PLAIN = (
    "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short", "--ignore-submodules=none",
    "--src-prefix=a/", "--dst-prefix=b/", "-M",
)  # fmt: skip


def _raws(trees: Trees, old_tree: str, new_tree: str) -> Iterator[_Raw]:
    words = git.names(
        trees.run(
            ["diff-tree", "-r", "-z", "-M", "-l2000", "--raw", "--full-index", old_tree, new_tree, "--"]
        )
    )
    rest = iter(words)
    for facts in rest:
        old_mode, new_mode, old, new, kind = facts[1:].split(" ")
        path = next(rest)
        old_path = None
        if kind[0] == "R":
            old_path, path = path, next(rest)
        yield _Raw(
            old_mode=old_mode,
            new_mode=new_mode,
            old=old,
            new=new,
            kind=kind[0],
            path=path,
            old_path=old_path,
        )


def _change(raw: _Raw, targets: dict[str, str]) -> Change:
    is_symlink = raw.new_mode == _LINK
    return Change(
        path=raw.path,
        kind=_KINDS.get(raw.kind, "modified"),
        old_path=raw.old_path,
        is_symlink=is_symlink,
        target=targets.get(raw.new) if is_symlink else None,
    )


def _targets(trees: Trees, blobs: list[str]) -> dict[str, str]:
    """The targets of symbolic links by the id of their blob."""
    return {blob: os.fsdecode(bytes(content)) for blob, _, content in trees.contents(blobs)}


def _inside(trees: Trees, raw: _Raw) -> list[Change]:
    """The changes inside a nested repository; the repository itself if they cannot be determined."""
    empty = git.text(trees.run(["mktree"]))
    sides: list[str] = []
    for mode, name in ((raw.old_mode, raw.old), (raw.new_mode, raw.new)):
        if mode != _GITLINK:
            sides.append(empty)
        elif trees.has(name):
            sides.append(trees.tree_of(name))
        else:
            return [Change(path=raw.path, kind="submodule")]
    inner = [
        change.evolve(
            path=f"{raw.path}/{change.path}",
            old_path=None if change.old_path is None else f"{raw.path}/{change.old_path}",
        )
        for change in changed(trees, *sides)
    ]
    # A file replaced the repository, or the reverse.
    is_swap = raw.old_mode != raw.new_mode and _NOTHING not in (raw.old_mode, raw.new_mode)
    itself = [Change(path=raw.path, kind="modified")] if is_swap else []
    return itself + inner if inner else [Change(path=raw.path, kind="submodule")]
