"""The uncommitted files of a working tree, also in submodules.

git looks into a submodule by starting another git in it, which reads settings that an agent can write. So it
is told to ignore them, and we look ourselves.
"""

from __future__ import annotations

import os

from holdfast.errors import NotPossible
from holdfast.store.no_links import is_directory
from holdfast.workspace import git, unlike_head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def listed(repository: git.Repository, frozen: git.Settings | None = None) -> list[str]:
    """Changed and untracked files, without ignored ones. A nested repository has a final slash.

    `frozen` are settings of an earlier time; those of submodules are the current ones.
    """
    args = [
        "status",
        "--porcelain",
        "-z",
        "--no-renames",
        "--untracked-files=all",
        "--ignore-submodules=all",
    ]
    paths = [entry[3:] for entry in git.names(git.run(args, of=repository, frozen=frozen))]
    return list(dict.fromkeys((*paths, *_staged_links(repository), *_moved_links(repository))))


def listed_in_full(repository: git.Repository, frozen: git.Settings, skipped: Iterable[str]) -> list[str]:
    """As `listed`, with what its index and its uncommitted ignore files hide: an agent can write them.

    `frozen` has the ignore rules of the start. `skipped` are files that a sparse checkout left out then. In
    submodules, the current ignore files count.
    """
    found = (
        *listed(repository, frozen),
        *unlike_head.changed(repository, frozen, skipped),
        *unlike_head.untracked(repository, frozen),
        *_hidden_in_links(repository),
    )
    return list(dict.fromkeys(found))


def _hidden_in_links(repository: git.Repository) -> list[str]:
    """Submodules with files that are not as their HEAD has them, whatever their index says."""
    found: list[str] = []
    for name, _ in git.gitlinks(git.run(["ls-files", "-s", "-z"], of=repository)):
        inner = submodule(repository, name)
        if inner is not None and (
            unlike_head.changed(inner, git.settings.read(inner), unlike_head.skipped(inner))
            or _hidden_in_links(inner)
        ):
            found.append(name)
    return found


def _staged_links(repository: git.Repository) -> list[str]:
    """Submodules whose commit in the index is not that of HEAD."""
    if git.head(repository) is None:
        return []
    args = ["diff-index", "--cached", "--raw", "-z", "--no-renames", "--ignore-submodules=none", "HEAD", "--"]
    rest = git.names(git.run(args, of=repository))
    link = git.GITLINK.decode()
    return [
        path for facts, path in zip(rest[::2], rest[1::2], strict=True) if link in facts[1:].split(" ")[:2]
    ]


def _moved_links(repository: git.Repository) -> list[str]:
    """Submodules that are not as the index has them: another commit, or uncommitted files."""
    moved: list[str] = []
    for name, commit in git.gitlinks(git.run(["ls-files", "-s", "-z"], of=repository)):
        full = os.path.join(repository.top, name)
        inner = submodule(repository, name)
        if not is_directory(full) or (inner is not None and (git.head(inner) != commit or listed(inner))):
            moved.append(name)
    return moved


def submodule(around: git.Repository, path: str) -> git.Repository | None:
    """The repository of a submodule; None if it is empty, or reached through a link.

    Its git directory is in its own directory, or in `modules` of the repository around it. Raises NotPossible
    if it is elsewhere: an agent can write a `.git` file that names any repository of the user.
    """
    directory = os.path.join(around.top, path)
    if os.path.realpath(directory) != os.path.join(os.path.realpath(around.top), path):
        return None
    repository = git.at(directory)
    modules = os.path.join(around.git_dir, "modules")
    if repository is not None and (os.path.islink(modules) or not repository.is_inside(directory, modules)):
        raise NotPossible(
            f"{directory}/.git leads to {repository.git_dir}, which is not the submodule's own",
            hint="check it by hand; 'holdfast rm --force' discards it",
        )
    return repository
