"""The workspace at the start of a task: `state/workspace/base.json`, written once, with the first stage."""

from __future__ import annotations

import os

from holdfast.errors import CorruptFile, NotPossible
from holdfast.model.record import Record
from holdfast.packet import load
from holdfast.store import atomic
from holdfast.workspace import git, task_worktree
from holdfast.workspace.project_tree import ProjectTree, locate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.task import Task
    from holdfast.store.layout import Packet


class Base(Record):
    """The workspace of a task at its start."""

    nested = {"place": ProjectTree}

    schema: str = "holdfast.workspace/1"
    #: `in_place` or `worktree`.
    kind: str
    place: ProjectTree
    base_tree: str
    #: The commit that was checked out, and the branch of a worktree; null outside git.
    commit: str | None = None
    branch: str | None = None


def read(packet: Packet) -> Base | None:
    """The base of a task; None before its first stage."""
    data = atomic.read_json(packet.workspace_base)
    try:
        base = Base.from_json(data) if data is not None else _from_journal(packet)
    except (ValueError, TypeError, AttributeError) as error:
        raise CorruptFile(f"{packet.workspace_base} is damaged: {error}") from error
    if base is None:
        return None
    if not _fits(packet, base):
        raise NotPossible(
            f"{packet.workspace_base} does not fit the task: it was changed, or the project or its "
            "repository was moved or replaced",
            hint=f"'holdfast rm --force {packet.task_id}' removes the task",
        )
    return base


def _from_journal(packet: Packet) -> Base | None:
    """The base from the journal: if an agent removed the file, its changes must not become the start.

    None before the first stage, or if the start was never recorded.
    """
    if packet.worktree_name != packet.task_id:
        return None  # that of a candidate is made whenever it is prepared
    task = load.fold(packet)
    found = task.first_workspace
    if found is None:
        return None
    directory, branch = task.spec.project_dir, None
    if task.spec.workspace == "worktree":
        tree = task_worktree.of(packet)
        if tree is None:
            return None
        directory, branch = tree.directory, tree.branch
    return Base(
        kind=task.spec.workspace,
        place=locate(directory),
        base_tree=found.base_tree,
        commit=found.commit,
        branch=branch,
    )


def _fits(packet: Packet, base: Base) -> bool:
    """Whether the record, which an agent can write, names the directory that follows from the task.

    A gate reverts changes there, and reads other files of it.
    """
    task = load.fold(packet)
    spec, project = task.spec, base.place
    # git would take such a name for one of its options, which can name a file to write.
    if any(name.startswith("-") for name in (base.base_tree, base.commit or "")):
        return False
    if base.kind != spec.workspace or not _fits_journal(task, base):
        return False
    if base.kind == "worktree":
        tree = task_worktree.of(packet)
        if tree is None:
            return False
        task_worktree.refuse_linked(tree)
        directory, tops = tree.directory, (tree.path, tree.directory)
        dirs = (task_worktree.admin_of(tree) or project.git_dir, tree.common_dir)
    else:
        directory, repository = os.path.realpath(spec.project_dir), git.at(project.top)
        tops = (project.top,) if (directory + "/").startswith(project.top.rstrip("/") + "/") else ()
        dirs = (project.git_dir, project.common_dir)
        # One that is gone is reported as such when it is needed.
        if repository is not None:
            dirs = (repository.git_dir, repository.common_dir)
    if project.directory != directory or project.top not in tops:
        return False
    below = os.path.relpath(directory, project.top)
    if project.prefix != ("" if below == "." else f"{below}/"):
        return False
    if project.git_dir is None:
        return project.top == directory
    return (project.git_dir, project.common_dir) == dirs


def _fits_journal(task: Task, base: Base) -> bool:
    """Whether start tree, commit and repository are those that were there before the first stage."""
    first = task.first_workspace
    if first is None:
        return True
    # Without a repository there is no clean room.
    has_repository = base.place.git_dir is not None or not first.own_files
    return has_repository and (first.base_tree, first.commit) == (base.base_tree, base.commit)


def directory_of(packet: Packet, project_dir: str) -> str:
    """Where the agent worked, and commands judge it. Raises NotPossible if a link is in its place: what a
    command may write, in a sandbox too, would be behind it."""
    base = read(packet)
    if base is None:
        return project_dir
    task_worktree.refuse_linked_project(base.place.directory)
    return base.place.directory


def require(packet: Packet) -> Base:
    """As `read`, but raises NotPossible before the first stage."""
    base = read(packet)
    if base is None:
        raise NotPossible(
            f"{packet.task_id} has no recorded workspace",
            hint="tasks with a scope or a worktree have one, once their first stage has started",
        )
    return base
