"""What a snapshot looks at: the repository around a project, or the project alone where git does not know it."""

from __future__ import annotations

import os

from holdfast.errors import NoSuchDirectory
from holdfast.model.record import Record
from holdfast.workspace import git


class Place(Record):
    """A directory in which agents write, and the tree that is watched for it."""

    #: Where the agent works.
    directory: str
    #: The root of the tree that is watched: of the repository, so that a change beside the project is seen too.
    top: str
    #: Where `directory` lies below `top`; empty, or with a slash at its end.
    prefix: str = ""
    #: Of this working tree, and the one that it shares; null outside git.
    git_dir: str | None = None
    common_dir: str | None = None


def locate(directory: str) -> Place:
    """The place of a project. Raises NoSuchDirectory, GitMissing, GitFailed."""
    directory = os.path.realpath(directory)
    if not os.path.isdir(directory):
        raise NoSuchDirectory(f"there is no directory {directory}")
    repository = git.find(directory)
    if repository is None or not _belongs(directory, repository):
        return Place(directory=directory, top=directory)
    return Place(
        directory=directory,
        top=repository.top,
        prefix=repository.prefix,
        git_dir=repository.git_dir,
        common_dir=repository.common_dir,
    )


def _belongs(directory: str, repository: git.Repository) -> bool:
    """Whether the repository tracks anything there. A project that merely lies below one (whose root may be somebody's whole
    home directory) is a project of its own."""
    return not repository.prefix or bool(git.run(["ls-files", "-z", "--", "."], cwd=directory))
