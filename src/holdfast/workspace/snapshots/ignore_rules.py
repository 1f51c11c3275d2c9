"""The ignore rules of a tree: those that were in force when it was taken, whatever an agent wrote since."""

from __future__ import annotations

import os

from holdfast.errors import GitFailed
from holdfast.store import atomic
from holdfast.workspace import git
from holdfast.workspace.scope import below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from holdfast.workspace.snapshots.trees import Trees

#: The rules that this process needed last, by repository, settings and tree. A name means one content.
_made: dict[tuple[str, str, str], bytes] = {}
_MANY = 8


def write(trees: Trees, tree: str) -> str:
    """Write the rules to a temporary file, for `--exclude-from`. The caller removes it."""
    path = trees.temporary("rules")
    atomic.write(path, _rules(trees, tree), durable=False)
    return path


def ignored(trees: Trees, tree: str, paths: Iterable[str], *, top: str) -> set[str]:
    """The paths that these rules ignore. The files of the working tree are not looked at."""
    index, rules = trees.temporary("ignored"), write(trees, tree)
    try:
        # In this index only the paths matter, so any name of an object will do.
        lines = b"".join(b"100644 %b\t%b\0" % (tree.encode(), os.fsencode(path)) for path in paths)
        trees.run(["update-index", "-z", "--index-info"], work_tree=top, index=index, stdin=lines)
        args = ["ls-files", "-z", "-c", "-i", f"--exclude-from={rules}"]
        return set(git.names(trees.run(args, work_tree=top, index=index)))
    finally:
        for path in (rules, index, index + ".lock"):
            atomic.forget(path)


def without_caches(trees: Trees, tree: str, denied: list[str], deny: Iterable[str], *, top: str) -> list[str]:
    """The denied files, without those that a test run leaves below a denied directory: not in the tree, and
    ignored by its rules. A file that `deny` matches by itself counts."""
    from holdfast.workspace.scope import compiled  # only now: most trees have no such file

    patterns = compiled(deny)
    inside = [path for path in denied if any(patterns.match_file(folder) for folder in _folders(path))]
    if not inside:
        return denied
    known = set(git.names(trees.run(["ls-tree", "-r", "-z", "--name-only", "--full-tree", tree])))
    caches = ignored(trees, tree, (path for path in inside if path not in known), top=top)
    return [path for path in denied if path not in caches]


def _folders(path: str) -> Iterator[str]:
    """The directories above a path, each with a slash at its end, as patterns need it."""
    at = path.rstrip("/").rfind("/")
    while at > 0:
        yield path[: at + 1]
        at = path.rfind("/", 0, at)


def _rules(trees: Trees, tree: str) -> bytes:
    """All ignore rules of a tree as patterns for its root.

    Rules of deeper directories come later and override.
    """
    exclude = trees.settings.exclude
    key = (trees.path, exclude, tree)
    if key not in _made:
        if len(_made) >= _MANY:
            _made.clear()
        _made[key] = collected(trees.run, tree, exclude.encode("utf-8", "surrogateescape"))
    return _made[key]


def collected(run: Callable[..., bytes], tree: str, exclude: bytes) -> bytes:
    """The lines of `exclude` and all rules of a tree or commit. `run` runs git on its repository."""
    lines = exclude.splitlines()
    entries = git.names(run(["ls-tree", "-r", "-z", "--full-tree", tree]))
    rows = [entry.split("\t", 1) for entry in entries if entry.endswith(".gitignore")]
    blobs = {
        path: facts.split()[2]
        for facts, path in sorted(rows, key=lambda row: row[1].count("/"))
        if os.path.basename(path) == ".gitignore" and facts.split()[1] == "blob"
    }
    found = git.read_objects(run, blobs.values())
    texts = {name: os.fsdecode(bytes(content)) for name, _, content in found}
    for path, blob in blobs.items():
        if blob not in texts:
            raise GitFailed(f"{path} of the tree {tree} is missing in the repository: {blob}")
        lines += [os.fsencode(pattern) for pattern in for_root(path, texts[blob])]
    return b"\n".join(lines) + b"\n"


def for_root(path: str, text: str) -> tuple[str, ...]:
    """The patterns of the ignore file at a path, rewritten for the root."""
    patterns = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return below(path[: -len(".gitignore")], patterns)
