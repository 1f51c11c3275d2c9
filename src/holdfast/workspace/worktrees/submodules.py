"""Submodules of a task's worktree, and those inside them: git keeps their repositories with the worktree, and they go when it goes.

So what was committed in one is brought into the project's own repository of that submodule before anything is merged that names it.
"""

from __future__ import annotations

import os
import shlex

from holdfast.errors import GitFailed, NotPossible
from holdfast.workspace import git
from holdfast.workspace.worktrees import worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.workspace.worktrees.worktree import Worktree

_GITLINK = b"160000"


def within(tree: Worktree) -> list[str]:
    """Where repositories lie in the worktree that its commits name, and that are checked out; at any depth, the inner ones first.

    Raises NotPossible where git cannot tell.
    """
    if not os.path.isdir(tree.path) or worktree.admin_of(tree) is None:
        return []
    return list(_below(tree, "", worktree.call(tree, ["ls-files", "-s", "-z"]).stdout))


def _below(tree: Worktree, around: str, listed: bytes) -> Iterator[str]:
    """The repositories inside one, by what its index lists."""
    for name, _ in _gitlinks(listed):
        if _is_repository(os.path.join(tree.path, around), name):
            path = os.path.join(around, name)
            yield from _below(tree, path, _ask(os.path.join(tree.path, path), "ls-files", "-s", "-z"))
            yield path


def _gitlinks(listed: bytes) -> Iterator[tuple[str, str]]:
    """The path and the commit of each repository that `ls-files -s` or `ls-tree` lists."""
    for entry in listed.split(b"\0"):
        if entry.startswith(_GITLINK):
            facts, _, name = entry.partition(b"\t")
            # "160000 OBJECT 0" of an index, "160000 commit OBJECT" of a tree.
            words = facts.decode().split(" ")
            yield os.fsdecode(name), words[2] if words[1] == "commit" else words[1]


def unmerged(tree: Worktree) -> dict[str, int]:
    """Commits in submodules that neither their origin nor the project's own repository of them has, by the submodule's path.

    Raises NotPossible where git cannot tell.
    """
    found: dict[str, int] = {}
    places = sorted(within(tree))
    homes: dict[str, str | None] = {}
    for path in places:
        # Those around it were looked at before: they sort before it.
        around = max((other for other in homes if path.startswith(other + "/")), key=len, default="")
        homes[path] = _home_of(homes[around] if around else tree.main, os.path.relpath(path, around or "."))
        directory, home = os.path.join(tree.path, path), homes[path]
        heads = ["--branches"] if _is_unborn(directory) else ["HEAD", "--branches"]
        commits = _ask(directory, "rev-list", *heads, "--not", "--remotes").decode().split()
        missing = commits if home is None else _missing(home, commits)
        if missing:
            found[path] = len(missing)
    return found


def bring(tree: Worktree, head: str, ref: str) -> tuple[str, ...]:
    """Bring the commits that a merge of `head` would name into the project's repositories of the submodules, and of those inside
    them, at the branch `ref`. Returns the submodules of the project that have a new commit.

    Raises NotPossible, before anything is merged, where the project has no such repository and nobody else has the commit.
    """
    raw = git.run(["diff", "--raw", "-z", "--no-abbrev", "--no-renames", f"HEAD...{head}"], cwd=tree.main)
    words = iter(git.names(raw))
    brought: list[str] = []
    for facts in words:
        path = next(words)
        _, mode, _, commit, _ = facts[1:].split(" ")
        if mode.encode() == _GITLINK:
            _bring_one(tree.path, path, commit, around=tree.main, ref=ref)
            brought.append(path)
    return tuple(brought)


def _bring_one(inside: str, path: str, commit: str, *, around: str, ref: str) -> None:
    """Bring one commit, and what it names, from the submodule at `path` in `inside` to its home in `around`."""
    source, home = os.path.join(inside, path), _home_of(around, path)
    if not _is_repository(inside, path) or _missing(source, [commit]):
        return
    if home is None:
        if not _ask(source, "rev-list", "--max-count=1", commit, "--not", "--remotes"):
            return  # its origin has it, and an update brings it from there
        raise NotPossible(
            f"{path} has commits of its own, and {around} has no repository of that submodule to bring them into",
            hint=f"'git -C {shlex.quote(around)} submodule update --init {shlex.quote(path)}' makes it, "
            f"or push from {source}; then apply again",
        )
    for name, named in _gitlinks(_ask(source, "ls-tree", "-r", "-z", commit)):
        _bring_one(source, name, named, around=home, ref=ref)
    if _missing(home, [commit]):
        target = f"+{commit}:refs/heads/{ref}"
        git.run(["fetch", "-q", "--no-tags", "--recurse-submodules=no", source, target], cwd=home)


def _is_repository(inside: str, path: str) -> bool:
    """Whether it is the root of a repository. (An empty place of a submodule belongs to the repository around it, and a link may
    lead back to where we came from.)"""
    directory = os.path.join(inside, path)
    is_there = os.path.isdir(directory) and os.path.lexists(os.path.join(directory, ".git"))
    return is_there and os.path.realpath(directory) == os.path.join(os.path.realpath(inside), path)


def _home_of(around: str | None, path: str) -> str | None:
    """The project's own repository of a submodule: where it is checked out in the one around it, or where git keeps it."""
    if around is None:
        return None
    checked_out = os.path.join(around, path)
    if os.path.lexists(os.path.join(checked_out, ".git")):
        return checked_out
    kept = os.path.join(_git_dir(around), "modules", path)
    return kept if os.path.isfile(os.path.join(kept, "HEAD")) else None


def _git_dir(repository: str) -> str:
    if not os.path.lexists(os.path.join(repository, ".git")):
        return repository  # where git keeps it
    return git.text(_ask(repository, "rev-parse", "--path-format=absolute", "--git-common-dir"))


def _is_unborn(directory: str) -> bool:
    """Whether a branch is checked out that has no commit yet. (git fails at the name HEAD then.)"""
    is_on_branch = (
        git.call(["symbolic-ref", "-q", "HEAD"], cwd=directory, allowed=(0, 1, 128)).returncode == 0
    )
    return is_on_branch and git.head(directory) is None


def _ask(directory: str, *words: str) -> bytes:
    """What the repository in that very directory says. Raises NotPossible: that git cannot tell does not mean that nothing is there."""
    try:
        # Where it is broken, git would answer for the repository around it.
        return git.run(words, cwd=directory, env={"GIT_CEILING_DIRECTORIES": os.path.dirname(directory)})
    except GitFailed as error:
        raise NotPossible(
            f"nobody can tell what the repository {directory} holds: {error}",
            hint="look at it by hand; 'holdfast rm --force' gives it up",
        ) from error


def _missing(repository: str, commits: Iterable[str]) -> list[str]:
    """Those of some commits that a repository does not have."""
    wanted = list(commits)
    asked = "".join(f"{commit}^{{commit}}\n" for commit in wanted).encode()
    said = git.run(["cat-file", "--batch-check"], cwd=repository, stdin=asked).splitlines() if wanted else []
    return [commit for commit, line in zip(wanted, said, strict=True) if line.split(b" ")[1:2] != [b"commit"]]
