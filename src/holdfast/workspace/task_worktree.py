"""The record of a task's worktree, and what is believed of it.

The record is in the packet, where an agent can write. So the path and the branch are derived from the home
and the task's id, and the repository from the task's project. A record that says something else is refused.
"""

from __future__ import annotations

import os
import re

from holdfast.errors import NotPossible
from holdfast.model.record import Record
from holdfast.packet import load
from holdfast.store import atomic
from holdfast.store.no_links import is_directory
from holdfast.workspace import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.task import Task
    from holdfast.store.layout import Packet

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Worktree(Record):
    """The record of a worktree in `state/workspace/worktree.json`."""

    schema: str = "holdfast.worktree/1"
    #: The root of the worktree.
    path: str
    branch: str
    #: The commit at which the branch started.
    commit: str
    #: The root of the user's working tree, and the repository.
    main: str
    common_dir: str
    #: The path of the project below the root; empty, or with a final slash.
    prefix: str = ""

    @property
    def directory(self) -> str:
        """Where the agent works: the project in the worktree."""
        return os.path.join(self.path, self.prefix).rstrip("/")


def of_stage(packet: Packet, task: Task, stage: str) -> Packet:
    """The packet as a stage sees it: with the worktree of its candidate, or with that of the task."""
    spec = task.stage_spec(stage)
    return packet.candidate(spec.candidate) if spec is not None and task.has_own_worktree(stage) else packet


def path_of(packet: Packet) -> str:
    """Where the worktree of a task is, whatever any file says."""
    return os.path.join(os.path.realpath(packet.home.path), "worktrees", packet.worktree_name)


def branch_of(packet: Packet) -> str:
    """The branch of a task's worktree, whatever any file says."""
    return f"holdfast/{packet.worktree_name}"


def of(packet: Packet, *, project: str | None = None) -> Worktree | None:
    """The worktree of a task, complete or not; None if it has none. `project` is the task's, if known.

    Raises NotPossible if its record is not what we wrote.
    """
    data = atomic.read_json(packet.worktree)
    if data is None:
        return None
    try:
        tree = Worktree.from_json(data)
    except ValueError as error:
        raise _forged(packet) from error
    own = (tree.path, tree.branch) == (path_of(packet), branch_of(packet))
    if not own or not isinstance(tree.commit, str) or not _COMMIT.fullmatch(tree.commit):  # pyright: ignore
        raise _forged(packet)
    if not isinstance(tree.common_dir, str) or not isinstance(tree.main, str):  # pyright: ignore
        raise _forged(packet)
    if os.path.isdir(tree.common_dir):
        repository = git.find(project or load.fold(packet).spec.project_dir)
        if repository is None or (repository.common_dir, repository.top) != (tree.common_dir, tree.main):
            raise _forged(packet)
        return tree.evolve(prefix=repository.prefix)
    return tree


def _forged(packet: Packet) -> NotPossible:
    return NotPossible(
        f"{packet.worktree} does not fit the task: it was changed, or the project or the home was moved",
        hint=f"'holdfast rm --force {packet.task_id}' removes the task and {path_of(packet)}",
    )


def admin_of(tree: Worktree) -> str | None:
    """The directory in which the repository stores its data about this worktree.

    Its name is that of the worktree, perhaps with a number: what another directory says about its worktree
    was not written by git.
    """
    folder = os.path.join(tree.common_dir, "worktrees")
    name_of_ours = re.compile(re.escape(os.path.basename(tree.path)) + r"\d*")
    for name in sorted(os.listdir(folder)) if is_directory(folder) else []:
        admin = os.path.join(folder, name)
        if not name_of_ours.fullmatch(name) or not is_directory(admin):
            continue
        gitdir = atomic.read_small(os.path.join(admin, "gitdir"), 1 << 16)
        if gitdir is not None and os.path.dirname(git.text(gitdir)) == tree.path:
            return admin
        # If git was killed before it wrote `gitdir`: it names the directory after the worktree.
        is_ours = gitdir is None and name == os.path.basename(tree.path)
        if is_ours and is_admin_unfinished(admin):
            return admin
    return None


def is_admin_unfinished(admin: str) -> bool:
    """Whether a worktree was never finished: this lock is written first and removed last.

    A lock by a user has another text.
    """
    locked = atomic.read_small(os.path.join(admin, "locked"), 100)
    return locked is not None and locked.strip() == b"initializing"


def is_linked(tree: Worktree) -> bool:
    """Whether a link is in the place of the worktree, or on the way to it: an agent made it."""
    return os.path.realpath(tree.path) != tree.path


def refuse_linked(tree: Worktree) -> None:
    """Raises NotPossible if what is at its path is elsewhere: its files are a user's."""
    if is_linked(tree):
        raise NotPossible(
            f"a symbolic link is in the place of the worktree {tree.path}, or on the way to it",
            hint="an agent may have made it; remove the link",
        )


def refuse_linked_project(directory: str) -> None:
    """Raises NotPossible if a link is in the place of the project below the root of a worktree."""
    if os.path.realpath(directory) != directory:
        raise NotPossible(
            f"{directory} is a symbolic link, or behind one: it is not the project",
            hint="an agent may have made it, or it is in the commit; remove the link",
        )


def main_of(tree: Worktree) -> git.Repository:
    """The user's working tree. Raises NotPossible if it is no longer one of the repository."""
    repository = git.at(tree.main)
    if repository is None or repository.common_dir != tree.common_dir:
        raise NotPossible(
            f"{tree.main} is no longer a working tree of the repository {tree.common_dir}",
            hint="check its .git by hand",
        )
    return repository


def inside(tree: Worktree) -> git.Repository:
    """The worktree as a repository, whatever its `.git` file says.

    Raises NotPossible if the repository does not know it.
    """
    admin = admin_of(tree)
    if admin is None:
        raise NotPossible(
            f"{tree.path} is no longer a worktree of the repository {tree.main}",
            hint="check it by hand; 'holdfast rm --force' removes it",
        )
    mend(tree, admin)
    return git.Repository(top=tree.path, git_dir=admin, common_dir=tree.common_dir)


def mend(tree: Worktree, admin: str) -> None:
    """Restore the file by which git finds the repository of the worktree, if an agent changed it."""
    if git.common_of(admin) != tree.common_dir:
        atomic.write(os.path.join(admin, "commondir"), b"../..\n", durable=True)
