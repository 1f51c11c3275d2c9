"""What is not as HEAD has it, whatever the index and the ignore files of a repository say.

An agent can write both: flags or times in the index that pass over a changed file, and an ignore file that
hides others and itself. So the index is one of ours, made from HEAD, and all files are read. Ignore rules
are those of HEAD, with those that a caller knows from the time before the agent.
"""

from __future__ import annotations

import contextlib
import os
from functools import partial

from holdfast.store import atomic
from holdfast.store.directories import remove_tree
from holdfast.workspace import git
from holdfast.workspace.snapshots import ignore_rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

#: Directories of tools that put an ignore file for everything into them. New ones are not work of an agent.
_CACHES = b".*_cache/\n.venv/\nvenv/\n.tox/\n.nox/\n"
_IGNORE_FILE = ".gitignore"
_READ_BYTES = 1 << 20


def changed(repository: git.Repository, frozen: git.Settings, skipped: Iterable[str] = ()) -> list[str]:
    """Changed and deleted files, but for `skipped` ones that are still absent.

    A file that is stored through a filter of the user is left out: we run none.
    """
    args = ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=no", "--ignore-submodules=all"]
    with _index_of_head(repository, frozen) as own:
        paths = [entry[3:] for entry in git.names(git.run(args, of=own, frozen=frozen))]
        filters = filters_of(own, paths, "--cached") if paths and frozen.filters else {}
    absent = set(skipped)
    return [
        path
        for path in paths
        if filters.get(path) not in frozen.filters
        and (path not in absent or os.path.lexists(os.path.join(repository.top, path)))
    ]


def untracked(repository: git.Repository, frozen: git.Settings) -> list[str]:
    """Files that HEAD has not and that neither its rules nor the frozen ones ignore.

    A nested repository has a final slash.
    """
    with _index_of_head(repository, frozen) as own:
        head, exclude = git.head(repository), frozen.exclude.encode("utf-8", "surrogateescape")
        run = partial(git.run, of=own, frozen=frozen)
        rules = os.path.join(os.path.dirname(own.index or ""), "rules")
        lines = ignore_rules.collected(run, head, exclude) if head is not None else exclude
        atomic.write(rules, lines + b"\n" + _CACHES, durable=False)
        return git.names(run(["ls-files", "-z", "-o", f"--exclude-from={rules}"]))


def uncommitted_rules(repository: git.Repository, frozen: git.Settings) -> str:
    """The rules of ignore files that are not as HEAD has them, as lines for the root."""
    lines: list[str] = []
    for path in sorted({*changed(repository, frozen), *untracked(repository, frozen)}):
        if os.path.basename(path) == _IGNORE_FILE:
            content = atomic.read_small(os.path.join(repository.top, path), _READ_BYTES) or b""
            lines += ignore_rules.for_root(path, os.fsdecode(content))
    return "".join(line + "\n" for line in lines)


def skipped(repository: git.Repository) -> list[str]:
    """The files that a sparse checkout leaves out, as the index of the repository says."""
    entries = git.names(git.run(["ls-files", "-v", "-z"], of=repository))
    paths = (entry[2:] for entry in entries if entry[0] in "Ss")
    return [path for path in paths if not os.path.lexists(os.path.join(repository.top, path))]


def filters_of(repository: git.Repository, paths: list[str], *options: str) -> dict[str, str]:
    """The attribute `filter` of each path."""
    args = ["check-attr", *options, "-z", "--stdin", "filter"]
    # For each path: path, attribute, value.
    found = git.names(git.run(args, of=repository, stdin=git.listing(paths)))
    return dict(zip(found[0::3], found[2::3], strict=True))


@contextlib.contextmanager
def _index_of_head(repository: git.Repository, frozen: git.Settings) -> Generator[git.Repository]:
    """The repository with an index of ours."""
    folder = git.new_directory()
    own = repository.evolve(index=os.path.join(folder, "index"))
    try:
        git.run(["read-tree", git.head(repository) or "--empty"], of=own, frozen=frozen)
        yield own
    finally:
        remove_tree(folder)
