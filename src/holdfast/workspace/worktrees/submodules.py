"""Submodules of a task's worktree, at any depth.

git stores their repositories with the worktree and deletes them with it. So commits in a submodule are
copied into the project's own repository of that submodule before a commit that refers to them is merged.
"""

from __future__ import annotations

import os
import shlex

from holdfast.errors import GitFailed, NotPossible
from holdfast.store import linked_objects
from holdfast.store.no_links import plain_path
from holdfast.workspace import git
from holdfast.workspace.branch_links import refuse_branch_links
from holdfast.workspace.changed_files import submodule
from holdfast.workspace.worktrees import worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.workspace.worktrees.worktree import Worktree


def within(tree: Worktree) -> list[str]:
    """The paths of the checked-out submodules, inner ones first. Raises NotPossible if git cannot tell."""
    if not os.path.isdir(tree.path) or worktree.admin_of(tree) is None:
        return []
    return list(_below(tree, "", worktree.call(tree, ["ls-files", "-s", "-z"]).stdout))


def _below(tree: Worktree, parent: str, listed: bytes) -> Iterator[str]:
    """The submodules of one repository, given the list of its index."""
    for name, _ in git.gitlinks(listed):
        path = os.path.join(parent, name)
        repository = at(tree, path)
        if repository is not None:
            yield from _below(tree, path, _git(repository, "ls-files", "-s", "-z"))
            yield path


def at(tree: Worktree, path: str) -> git.Repository | None:
    """The submodule at a path, which may be in others."""
    around = worktree.inside(tree)
    parts = path.split("/")
    for count in range(1, len(parts)):
        parent = os.path.join(tree.path, *parts[:count])
        if os.path.lexists(os.path.join(parent, ".git")):
            around = submodule(around, os.path.relpath(parent, around.top)) or around
    return submodule(around, os.path.relpath(os.path.join(tree.path, path), around.top))


def unmerged(tree: Worktree) -> dict[str, int]:
    """Submodule path → number of commits that neither its origin nor the project's repository of it has.

    Raises NotPossible if git cannot tell.
    """
    counts: dict[str, int] = {}
    homes: dict[str, git.Repository | None] = {}
    for path in sorted(within(tree)):
        # A parent sorts before its submodules, so its home is known.
        parent = max((other for other in homes if path.startswith(other + "/")), key=len, default="")
        above = homes[parent] if parent else worktree.main_of(tree)
        homes[path] = _home_of(tree, above, os.path.relpath(path, parent or "."))
        repository, home = at(tree, path), homes[path]
        if repository is None:
            continue
        heads = ["--branches"] if _is_unborn(repository) else ["HEAD", "--branches"]
        commits = _git(repository, "rev-list", *heads, "--not", "--remotes", "--").decode().split()
        missing = commits if home is None else _missing(home, commits)
        if missing:
            counts[path] = len(missing)
    return counts


def fetch_home(tree: Worktree, head: str, ref: str) -> tuple[str, ...]:
    """Copy the submodule commits that a merge of `head` would refer to into the project's repositories.

    They are stored at the branch `ref`. Returns the submodules of the project that get a new commit. Raises
    NotPossible, before anything is merged, if the project has no such repository and no remote has the
    commit.
    """
    main = worktree.main_of(tree)
    raw = git.run(["diff", "--raw", "-z", "--no-abbrev", "--no-renames", f"HEAD...{head}", "--"], of=main)
    words = iter(git.names(raw))
    changed: list[str] = []
    for facts in words:
        path = next(words)
        _, mode, _, commit, _ = facts[1:].split(" ")
        if mode.encode() == git.GITLINK:
            _bring_commit(tree, path, commit, project=main, place=path, ref=ref)
            changed.append(path)
    return tuple(changed)


def _bring_commit(
    tree: Worktree, path: str, commit: str, *, project: git.Repository, place: str, ref: str
) -> None:
    """Copy one commit, and those it refers to, from the submodule at `path` of the worktree to its home.

    `place` is its path in `project`, the repository around that home.
    """
    source, home = at(tree, path), _home_of(tree, project, place)
    if source is None or _missing(source, [commit]):
        return
    if home is None:
        if not _git(source, "rev-list", "--max-count=1", commit, "--not", "--remotes", "--"):
            return  # its origin has it; `git submodule update` fetches it from there
        raise NotPossible(
            f"the submodule {place} has unpushed commits, but {project.top} has no repository of it",
            hint=f"'git -C {shlex.quote(project.top)} submodule update --init {shlex.quote(place)}' creates "
            f"it, or push from {source.top}; then apply again",
        )
    for name, inner_commit in git.gitlinks(_git(source, "ls-tree", "-r", "-z", commit)):
        inner = os.path.join(path, name)
        _bring_commit(tree, inner, inner_commit, project=home, place=name, ref=ref)
    if _missing(home, [commit]):
        refuse_branch_links(home, ref)
        copy_commit(source, home, commit)
        git.run(["update-ref", "--no-deref", f"refs/heads/{ref}", commit], of=home)


def copy_commit(source: git.Repository, home: git.Repository, commit: str) -> None:
    """Copy a commit with its history. Not with `git fetch`, which starts a git with the source's settings."""
    objects = linked_objects.plain_place_of(home.common_dir)
    plain_path(objects, os.path.join(objects, "pack"))
    tips = git.run(["for-each-ref", "--format=%(objectname)"], of=home).decode().split()
    known = [tip for tip in dict.fromkeys(tips) if not _missing(source, [tip])]
    wanted = "".join(f"{line}\n" for line in (commit, *(f"^{tip}" for tip in known)))
    pack = git.run(["pack-objects", "--revs", "--stdout", "-q"], of=source, stdin=wanted.encode())
    git.run(["index-pack", "--stdin", "--fix-thin"], of=home, stdin=pack)
    # Every object is there now, or nothing refers to the commit.
    git.run(["rev-list", "--objects", "--quiet", commit, "--not", "--all", "--"], of=home)


def _home_of(tree: Worktree, parent: git.Repository | None, path: str) -> git.Repository | None:
    """The project's repository of a submodule: checked out in its parent, or in git's `modules`."""
    if parent is None:
        return None
    checked_out = submodule(parent, path) if parent.top != parent.git_dir else None
    if checked_out is not None:
        return checked_out
    module = os.path.join(parent.common_dir, "modules", path)
    repository = git.of_git_dir(module, module)
    roots = (tree.main, tree.common_dir)
    return repository if repository is not None and repository.is_inside(*roots) else None


def _is_unborn(repository: git.Repository) -> bool:
    """Whether the checked-out branch has no commit yet. (git does not know the name HEAD then.)"""
    args = ["symbolic-ref", "-q", "HEAD"]
    is_on_branch = git.call(args, of=repository, allowed=(0, 1, 128)).returncode == 0
    return is_on_branch and git.head(repository) is None


def _git(repository: git.Repository, *args: str) -> bytes:
    """Run git in the repository of a submodule. Raises NotPossible if it fails."""
    try:
        return git.run(args, of=repository)
    except GitFailed as error:
        raise NotPossible(
            f"cannot read the repository {repository.top}: {error}",
            hint="check it by hand; 'holdfast rm --force' discards it",
        ) from error


def _missing(repository: git.Repository, commits: Iterable[str]) -> list[str]:
    """The commits that a repository does not have."""
    wanted = list(commits)
    if not wanted:
        return []
    query = "".join(f"{commit}^{{commit}}\n" for commit in wanted).encode()
    lines = git.run(["cat-file", "--batch-check"], of=repository, stdin=query).splitlines()
    return [
        commit for commit, line in zip(wanted, lines, strict=True) if line.split(b" ")[1:2] != [b"commit"]
    ]
