"""What is different between two trees: as a list for checks, and as a patch for people."""

from __future__ import annotations

import os

from holdfast.model.record import Record
from holdfast.store import atomic
from holdfast.workspace import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.workspace.scope import Scope
    from holdfast.workspace.snapshots.trees import Trees

_KINDS = {"A": "added", "D": "deleted", "M": "modified", "T": "modified", "R": "renamed"}
_LINK, _GITLINK, _NOTHING = "120000", "160000", "000000"


class Change(Record):
    """One path that is not what it was."""

    #: Relative to the root of the tree.
    path: str
    #: added, deleted, modified, renamed; submodule: another commit of a repository inside.
    kind: str
    #: With `renamed`: where it was before.
    old_path: str | None = None
    #: It is a symbolic link now, and this is what it says.
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
    """Every change from the one tree to the other, in the order of their paths. A repository inside is looked into."""
    if old_tree == new_tree:
        return ()
    raws = list(_raws(trees, old_tree, new_tree))
    targets = _targets(trees, [raw.new for raw in raws if raw.new_mode == _LINK])
    found: list[Change] = []
    for raw in raws:
        if _GITLINK in (raw.old_mode, raw.new_mode):
            found += _inside(trees, raw)
        else:
            found.append(_change(raw, targets))
    return tuple(sorted(found, key=lambda change: change.path))


def patch(trees: Trees, old_tree: str, new_tree: str) -> bytes:
    """The difference as a patch that `git apply` takes, binary files included."""
    return trees.run(["diff", "--binary", "--full-index", *_PLAIN, old_tree, new_tree, "--"])


def gitlinks(trees: Trees, old_tree: str, new_tree: str) -> list[str]:
    """The repositories inside that are not at the same commit in both trees."""
    if old_tree == new_tree:
        return []
    raws = _raws(trees, old_tree, new_tree)
    return [raw.path for raw in raws if _GITLINK in (raw.old_mode, raw.new_mode)]


def links(trees: Trees, tree: str) -> list[tuple[str, str]]:
    """Every symbolic link of a tree, and what it says."""
    entries = git.names(trees.run(["ls-tree", "-r", "-z", "--full-tree", tree]))
    found = [entry.split("\t", 1) for entry in entries if entry.startswith(_LINK)]
    targets = _targets(trees, [facts.split()[2] for facts, _ in found])
    return [(path, targets.get(facts.split()[2], "")) for facts, path in found]


def opened(trees: Trees, old_tree: str, new_tree: str) -> tuple[str, str]:
    """Both trees, to be shown: where files in a repository inside are changed and not committed, the commit that stands for
    them is one of ours and says nothing to anybody; so these files stand there themselves."""
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
    index = os.path.join(trees.indexes, f"opened.{os.getpid()}")
    try:
        trees.run(["read-tree", tree], index=index)
        gone = [f"0 {'0' * len(tree)}\t{path}" for path, _ in links]
        trees.run(["update-index", "-z", "--index-info"], index=index, stdin=git.listing(gone))
        for path, commit in links:
            trees.run(["read-tree", "-i", f"--prefix={path}/", commit], index=index)
        return git.text(trees.run(["write-tree"], index=index))
    finally:
        atomic.forget(index)


def within(
    trees: Trees, old_tree: str, new_tree: str, *, scope: Scope | None, prefix: str
) -> tuple[str, tuple[str, ...]]:
    """The new tree with only those changes that are in the scope; and the paths that were left out."""
    if scope is None or old_tree == new_tree:
        return new_tree, ()
    inside: set[str] = set()
    for change in changed(trees, old_tree, new_tree):
        slash = "/" if change.kind == "submodule" else ""
        inside.update(end for end in change.ends if scope.has(end + slash, prefix))
    return only(trees, old_tree, new_tree, inside)


def only(trees: Trees, old_tree: str, new_tree: str, inside: set[str]) -> tuple[str, tuple[str, ...]]:
    """The new tree with only the changes of some paths, which may be more than a command line holds; and the other paths."""
    # A repository inside is one entry of the tree; it comes as a whole, or not.
    whole = {above for path in inside for above in _above(path)}
    names = git.names(trees.run(["diff-tree", "-r", "-z", "--no-renames", "--name-only", old_tree, new_tree]))
    outside = tuple(name for name in names if name not in inside and name not in whole)
    return (_without(trees, old_tree, new_tree, outside) if outside else new_tree), outside


def _above(path: str) -> Iterator[str]:
    while path := os.path.dirname(path):
        yield path


def _without(trees: Trees, old_tree: str, new_tree: str, paths: tuple[str, ...]) -> str:
    """The new tree, in which these paths are what they are in the old one."""
    left = set(paths)
    index = os.path.join(trees.indexes, f"within.{os.getpid()}")
    gone = "0" * len(new_tree)
    lines = [f"0 {gone}\t{path}" for path in paths]
    old = git.names(trees.run(["ls-tree", "-r", "-z", "--full-tree", old_tree]))
    lines += [entry for entry in old if entry.partition("\t")[2] in left]
    try:
        trees.run(["read-tree", new_tree], index=index)
        trees.run(["update-index", "-z", "--index-info"], index=index, stdin=git.listing(lines))
        return git.text(trees.run(["write-tree"], index=index))
    finally:
        atomic.forget(index)


def stat(trees: Trees, old_tree: str, new_tree: str) -> bytes:
    """The difference in short, for people."""
    return trees.run(["diff", "--stat=100", *_PLAIN, old_tree, new_tree, "--"])


_PLAIN = (
    "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short", "--ignore-submodules=none",
    "--src-prefix=a/", "--dst-prefix=b/", "-M",
)  # fmt: skip


def _raws(trees: Trees, old_tree: str, new_tree: str) -> Iterator[_Raw]:
    words = git.names(
        trees.run(["diff-tree", "-r", "-z", "-M", "-l2000", "--raw", "--full-index", old_tree, new_tree])
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
    """What symbolic links say, by the object that holds it."""
    found: dict[str, str] = {}
    wanted = list(dict.fromkeys(blobs))
    if not wanted:
        return found
    output = trees.run(["cat-file", "--batch"], stdin="\n".join(wanted).encode() + b"\n")
    at = 0
    for blob in wanted:
        begins = output.index(b"\n", at) + 1
        line, at = output[at : begins - 1], begins
        if line.endswith(b" missing"):
            continue
        size = int(line.rsplit(b" ", 1)[1])
        found[blob] = os.fsdecode(output[begins : begins + size])
        at = begins + size + 1
    return found


def _inside(trees: Trees, raw: _Raw) -> list[Change]:
    """What changed in a repository inside; the repository itself where that cannot be told."""
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
    # A file took its place, or the other way round.
    is_swap = raw.old_mode != raw.new_mode and _NOTHING not in (raw.old_mode, raw.new_mode)
    beside = [Change(path=raw.path, kind="modified")] if is_swap else []
    return beside + inner if inner else [Change(path=raw.path, kind="submodule")]
