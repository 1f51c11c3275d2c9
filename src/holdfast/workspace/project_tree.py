"""The tree that a snapshot records: the repository around a project, or the project alone outside git."""

from __future__ import annotations

import os

from holdfast.errors import NoSuchDirectory
from holdfast.model.record import Record
from holdfast.workspace import git


class ProjectTree(Record):
    """A directory in which agents write, and the tree that is recorded for it."""

    #: Where the agent works.
    directory: str
    #: The root of the tree. It is that of the repository, so that changes beside the project are seen too.
    top: str
    #: The path of `directory` below `top`; empty, or with a final slash.
    prefix: str = ""
    #: The git directory of this working tree, and the one that all worktrees share; null outside git.
    git_dir: str | None = None
    common_dir: str | None = None

    @property
    def repository(self) -> git.Repository | None:
        """The repository of the tree; None outside git."""
        if self.git_dir is None or self.common_dir is None:
            return None
        return git.Repository(
            top=self.top, git_dir=self.git_dir, common_dir=self.common_dir, prefix=self.prefix
        )


def locate(directory: str) -> ProjectTree:
    """The tree of a project. Raises NoSuchDirectory, GitMissing, GitFailed."""
    directory = os.path.realpath(directory)
    if not os.path.isdir(directory):
        raise NoSuchDirectory(f"there is no directory {directory}")
    repository = git.find(directory)
    if repository is None or not _belongs(directory, repository):
        return ProjectTree(directory=directory, top=directory)
    return ProjectTree(
        directory=directory,
        top=repository.top,
        prefix=repository.prefix,
        git_dir=repository.git_dir,
        common_dir=repository.common_dir,
    )


def _belongs(directory: str, repository: git.Repository) -> bool:
    """Whether the repository tracks files of the project.

    If not, only the project is recorded: the root of such a repository may be a home directory.
    """
    return not repository.prefix or bool(git.run(["ls-files", "-z", "--", "."], of=repository, cwd=directory))
