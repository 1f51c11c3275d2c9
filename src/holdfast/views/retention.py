"""What may be put away or removed: tasks that have ended, and whose work is somewhere else as well."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.record import Record
from holdfast.model.retention import Candidate
from holdfast.packet import archive, load
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.workspace.worktrees.worktree import Worktree


class Removed(Record):
    """What is left of a worktree that was removed."""

    #: The patch with what apply left out; null where it left out nothing.
    kept: str | None = None
    #: What else is left, in words; often nothing.
    left: str = ""

    @property
    def words(self) -> str:
        """Both, for people."""
        parts = (f"what apply left out is kept in {self.kept}" if self.kept else "", self.left)
        return "; ".join(part for part in parts if part)


def check_merged(packet: Packet) -> None:
    """Raises NotPossible when the task's worktree holds work that is nowhere else."""
    tree = _worktree_of(packet)
    if tree is not None and os.path.lexists(tree.path):
        _check(packet, tree)


def remove_worktree(packet: Packet, *, force: bool = False) -> Removed:
    """Remove the worktree of a task whose work is merged; what apply left out of that is kept as a patch. Raises NotPossible when
    work in it is nowhere else; with `force` that is given up."""
    tree = _worktree_of(packet)
    if tree is None:
        return Removed()
    from holdfast.workspace import scope
    from holdfast.workspace.worktrees import removal

    if force:
        return Removed(left=removal.remove(tree, force=True))
    is_applied = _check(packet, tree)
    kept = removal.keep_left_out(packet)
    return Removed(kept=kept, left=removal.remove(tree, force=is_applied, scope=scope.of(packet)))


def _worktree_of(packet: Packet) -> Worktree | None:
    # Most tasks have none, and need not load what knows about them.
    if not os.path.exists(os.path.join(packet.workspace, "worktree.json")):
        return None
    from holdfast.workspace.worktrees import worktree

    return worktree.of(packet)


def _check(packet: Packet, tree: Worktree) -> bool:
    """Whether everything in the worktree was brought over as a patch, which git does not call merged. Raises NotPossible when it was
    brought over in no way."""
    from holdfast.workspace import scope
    from holdfast.workspace.worktrees import apply, removal, worktree

    is_applied = worktree.mend(tree) and apply.is_applied(packet)
    removal.check_removable(tree, scope.of(packet), is_applied=is_applied)
    return is_applied


def ended(home: Home) -> list[Packet]:
    """The packets in `tasks/` whose task has ended."""
    found: list[Packet] = []
    for task_id in load.task_ids(home):
        packet = home.packet(task_id)
        try:
            archive.check_ended(packet)
        except HoldfastError:
            continue
        found.append(packet)
    return found


def archived(home: Home) -> list[Packet]:
    """The packets of the archive."""
    return [home.archived(task_id) for task_id in load.archived_ids(home)]


def ended_at(packet: Packet) -> float:
    """When a task ended, in seconds since 1970; of a packet that cannot be read, when it was changed last."""
    try:
        return clock.parse_iso(load.read_manifest(packet)["finished_at"])
    except (HoldfastError, KeyError, ValueError, AttributeError, TypeError):
        try:
            return os.stat(packet.path).st_mtime
        except OSError:
            return clock.now()


def candidate(packet: Packet, *, is_archived: bool) -> Candidate:
    """A packet, as the choice looks at it."""
    return Candidate(
        task_id=packet.task_id,
        ended=ended_at(packet),
        size_bytes=archive.size_bytes(packet.path),
        is_archived=is_archived,
    )


def file_notes(packet: Packet, folder: str, *, make: bool) -> str | None:
    """Put a page about the task into `<project>/<folder>/sessions/`, and say where. Only where that folder exists, unless
    `make`, and only inside the project: a link must not lead us elsewhere."""
    manifest: dict[str, Any] = load.read_manifest(packet)
    project = os.path.realpath(manifest["project_dir"])
    target = os.path.join(project, folder, "sessions")
    if make and os.path.isdir(project):
        os.makedirs(target, exist_ok=True)
    real = os.path.realpath(target)
    if not os.path.isdir(real) or not real.startswith(project + os.sep):
        return None
    try:
        with open(packet.summary, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        text = f"# {manifest['task_name']}: {manifest['status']}\n\n{manifest.get('status_reason') or ''}\n"
    path = os.path.join(real, f"{packet.task_id}.md")
    try:
        # Never over what a person wrote.
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return path
    except OSError:
        return None
    return path
