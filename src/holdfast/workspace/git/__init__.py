"""Running git in a way that no repository, no agent and no setting can change.

All calls of git go through here. git gets a git directory and a configuration of ours (`private`), an
environment built from nothing (`execute`), and a few harmless settings of the user (`settings`). Repositories
are found without git (`discovery`). Hooks, filters, drivers, monitors, pagers and fetches do not exist.
Commands that would start another git in a submodule are not used: that git would read the submodule's own
settings.
"""

from __future__ import annotations

import os

from holdfast import program_search
from holdfast.errors import GitFailed
from holdfast.store import linked_objects
from holdfast.workspace.git import confined, settings
from holdfast.workspace.git.confined import is_possible as is_confined
from holdfast.workspace.git.discovery import Repository, at, common_of, find, of_git_dir
from holdfast.workspace.git.execute import LIMIT_S, VIEW_S, execute, is_late, program, within
from holdfast.workspace.git.merge_trees import Merged, merge_trees
from holdfast.workspace.git.parse import (
    GITLINK,
    contents,
    flagged,
    gitlinks,
    listing,
    names,
    read_objects,
    text,
)
from holdfast.workspace.git.private import SharedDirectories, Target, new_directory
from holdfast.workspace.git.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable
    from typing import TypedDict, Unpack

    class Limits(TypedDict, total=False):
        """How one call of git is run; for the defaults see `execute`."""

        stdin: bytes
        allowed: tuple[int, ...]
        limit_s: float

    class Options(Limits, total=False):
        """How git is run on a repository."""

        cwd: str | None
        env: dict[str, str] | None
        frozen: Settings | None


__all__ = (
    "GITLINK", "IDENTITY", "LIMIT_S", "VIEW_S", "Merged", "Repository", "Settings", "SharedDirectories",
    "Target", "at", "call", "common_of", "contents", "find", "flagged", "gitlinks", "head", "is_confined",
    "is_late", "is_merging", "listing", "merge_trees", "names", "new_directory", "of_git_dir", "read_objects",
    "run", "settings", "text", "version", "within", "work_on",
)  # fmt: skip

#: The author of holdfast's own commits.
IDENTITY = {
    "GIT_AUTHOR_NAME": "holdfast",
    "GIT_AUTHOR_EMAIL": "holdfast@localhost",
    "GIT_COMMITTER_NAME": "holdfast",
    "GIT_COMMITTER_EMAIL": "holdfast@localhost",
}


def run(arguments: Iterable[str], *, of: Repository, **options: Unpack[Options]) -> bytes:
    """Run git on a repository and return its stdout.

    Raises GitMissing, or GitFailed for an exit status that is not `allowed`.
    """
    return call(arguments, of=of, **options).stdout


def call(
    arguments: Iterable[str],
    *,
    of: Repository,
    cwd: str | None = None,
    frozen: Settings | None = None,
    env: dict[str, str] | None = None,
    **options: Unpack[Limits],
) -> subprocess.CompletedProcess[bytes]:
    """As `run`, but return the exit status too.

    `frozen` are settings that were read earlier, before an agent could change them.
    """
    # git finds refs through this file, whatever GIT_COMMON_DIR says.
    if common_of(of.git_dir) != of.common_dir:
        raise GitFailed(f"{of.git_dir}/commondir does not lead to {of.common_dir}: it was changed")
    target = Target(
        objects=linked_objects.place_of(of.common_dir), git_dir=of.git_dir, common_dir=of.common_dir
    )
    index = {} if of.index is None else {"GIT_INDEX_FILE": of.index}
    return work_on(
        target,
        arguments,
        known=frozen or settings.read(of),
        cwd=cwd or of.top,
        env={"GIT_WORK_TREE": of.top, **index, **(env or {})},
        **options,
    )


def work_on(
    target: Target,
    arguments: Iterable[str],
    *,
    known: Settings,
    cwd: str,
    env: dict[str, str] | None = None,
    **options: Unpack[Limits],
) -> subprocess.CompletedProcess[bytes]:
    """Run git on any target."""
    with SharedDirectories() as directories:
        args, variables = list(arguments), {**directories.variables(target, known), **(env or {})}
        places = confined.writable(args[0], variables, objects=target.objects, common_dir=target.common_dir)
        return execute(args, cwd=cwd, env=variables, writable=places, **options)


def version(limit_s: float = 10.0) -> tuple[str, str]:
    """The output of `git version`, and the path of the program. Raises GitMissing, GitFailed."""
    program_search.distrust(os.getcwd())  # a project from which no program is taken
    done = execute(["version"], cwd="/", env={}, limit_s=limit_s)
    return text(done.stdout), program()


def head(repository: Repository) -> str | None:
    """The commit that is checked out; None before the first commit."""
    args = ["rev-parse", "--verify", "-q", "HEAD^{commit}"]
    # Not in the working tree, which may be gone.
    done = call(args, of=repository, cwd=repository.common_dir, allowed=(0, 1, 128))
    return text(done.stdout) or None if done.returncode == 0 else None


def is_merging(repository: Repository) -> bool:
    """Whether a merge was started there and not finished."""
    args = ["rev-parse", "-q", "--verify", "MERGE_HEAD"]
    return call(args, of=repository, cwd=repository.common_dir, allowed=(0, 1, 128)).returncode == 0
