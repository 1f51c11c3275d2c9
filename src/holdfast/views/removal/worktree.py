"""A task's worktree before its removal: whether its work is merged, and what is kept of it."""

from __future__ import annotations

import os
import re
from functools import partial

from holdfast.errors import HoldfastError
from holdfast.model.record import Record
from holdfast.packet import load
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.workspace.worktrees.worktree import Worktree


#: How long git may look for work that is not merged.
_CHECK_S = 60.0
#: The record of a candidate's worktree.
_CANDIDATE = re.compile(r"worktree\.c([1-9])\.json")


class RemovedWorktree(Record):
    """What remains of a removed worktree."""

    #: The patch with what `apply` left out; null if it left out nothing.
    patch: str | None = None
    #: What else remains, such as its branch; often empty.
    remains: str = ""

    @property
    def note(self) -> str:
        """One sentence for the user; empty if nothing remains."""
        parts = (f"what apply left out is kept in {self.patch}" if self.patch else "", self.remains)
        return "; ".join(part for part in parts if part)


def check_merged(packet: Packet) -> None:
    """Raises NotPossible if the task's worktree has work that exists nowhere else."""
    worktree = _worktree_of(packet)
    if worktree is not None and os.path.lexists(worktree.path):
        _check(packet, worktree)


def remove_worktree(packet: Packet, *, force: bool = False) -> RemovedWorktree:
    """Remove the worktree of a task whose work is merged; what `apply` left out is kept as a patch.

    Raises NotPossible if it has work that exists nowhere else; with `force` that work is lost.
    """
    removed = _remove_own(packet, force=force)
    # Only now: a removal that is refused keeps the candidates.
    remains = [_remove_candidate(each) for each in _candidates(packet)]
    return removed.evolve(remains="; ".join(text for text in (removed.remains, *remains) if text))


def _candidates(packet: Packet) -> list[Packet]:
    """The packet with each worktree of a candidate.

    Another task may have its name, and an agent can write the record: what is there is then that task's.
    """
    names = os.listdir(packet.workspace) if os.path.isdir(packet.workspace) else []
    found = [match[1] for name in sorted(names) if (match := _CANDIDATE.fullmatch(name))]
    candidates = [packet.candidate(int(number)) for number in found]
    return [each for each in candidates if not _is_task(packet.home, each.worktree_name)]


def _is_task(home: Home, name: str) -> bool:
    return any(os.path.lexists(each.path) for each in (home.packet(name), home.archived(name)))


def _remove_candidate(packet: Packet) -> str:
    """Remove the worktree of a candidate: what was chosen of them is in that of the task."""
    from holdfast.workspace.worktrees import removal

    try:
        worktree = _worktree_of(packet)
    except HoldfastError:
        return removal.discard(packet)
    return removal.remove(worktree, force=True) if worktree is not None else ""


def _remove_own(packet: Packet, *, force: bool) -> RemovedWorktree:
    try:
        worktree = _worktree_of(packet)
    except HoldfastError:
        # Its record was changed or is unreadable.
        if not force:
            raise
        from holdfast.workspace.worktrees import removal

        return RemovedWorktree(remains=removal.discard(packet))
    if worktree is None:
        return RemovedWorktree()
    from holdfast.workspace import scope
    from holdfast.workspace.worktrees import removal

    if force:
        return RemovedWorktree(remains=removal.remove(worktree, force=True))
    is_applied = _check(packet, worktree)
    patch = removal.keep_left_out(packet)
    remains = removal.remove(worktree, force=is_applied, scope=scope.of(packet))
    return RemovedWorktree(patch=patch, remains=remains)


def _worktree_of(packet: Packet) -> Worktree | None:
    # Most tasks have none; do not load the workspace package for them.
    if not os.path.exists(packet.worktree):
        return None
    from holdfast.workspace.worktrees import worktree

    return worktree.of(packet)


def _check(packet: Packet, worktree: Worktree) -> bool:
    """Whether its work was applied as a patch, which git does not see as merged.

    Raises NotPossible if it was neither applied nor merged.
    """
    from holdfast.workspace import git, sandbox_commits, scope
    from holdfast.workspace.worktrees import apply, removal
    from holdfast.workspace.worktrees import worktree as worktrees

    is_whole = worktrees.repair(worktree)
    if is_whole:
        sandbox_commits.bring(packet, worktree)
    # If git is slow, the task is kept: nobody knows what would be lost.
    with git.within(_CHECK_S):
        is_applied = is_whole and apply.is_applied(packet)
        how_to_keep = partial(_how_to_keep, packet, worktree)
        removal.check_removable(worktree, scope.of(packet), is_applied=is_applied, how_to_keep=how_to_keep)
    return is_applied


def _how_to_keep(packet: Packet, worktree: Worktree) -> str:
    """The commands for work that is merged nowhere. What was refused is merged only by force."""
    from holdfast.views import delivery

    task_id = packet.task_id
    if packet.path == packet.home.archived(task_id).path:
        return f"'holdfast archive --restore {task_id}' brings the task back, and then it can be applied"
    try:
        is_refused = bool(delivery.refusal(packet, load.derived(packet)))
    except HoldfastError:
        is_refused = False
    apply = f"'holdfast apply {'--force ' if is_refused else ''}{task_id}' applies it to {worktree.main}"
    refused = ", although it was refused" if is_refused else ""
    return f"{apply}{refused}; 'holdfast archive --force {task_id}' archives the task and keeps it"
