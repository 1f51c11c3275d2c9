"""What may be put away or removed: tasks that have ended, and whose work is somewhere else as well."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError, NotPossible
from holdfast.model.retention import Candidate
from holdfast.packet import archive, load
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.workspace.worktree import Worktree


def check_merged(packet: Packet) -> None:
    """Raises NotPossible when the task's worktree holds work that is nowhere else."""
    if not os.path.exists(os.path.join(packet.workspace, "worktree.json")):
        return
    from holdfast.workspace import removal, scope, worktree

    tree = worktree.of(packet)
    if tree is None or not os.path.lexists(tree.path):
        return
    if not os.path.isdir(tree.common_dir):
        raise NotPossible(f"the repository of {tree.path} is gone", hint="look at the worktree by hand")
    if not _is_applied(packet, tree):
        removal.check_removable(tree, scope.of(packet))


def _is_applied(packet: Packet, tree: Worktree) -> bool:
    """Whether everything in the worktree was brought over as a patch, which git does not call merged."""
    from holdfast.workspace import apply, worktree

    return worktree.mend(tree) and apply.is_applied(packet)


def remove_worktree(packet: Packet) -> str | None:
    """Remove the worktree of a task whose work is merged; what apply left out of that is kept as a patch. Returns where. Raises
    NotPossible otherwise."""
    check_merged(packet)
    if os.path.exists(os.path.join(packet.workspace, "worktree.json")):
        from holdfast.workspace import removal, scope, worktree

        tree = worktree.of(packet)
        if tree is not None:
            is_there = os.path.lexists(tree.path)
            kept = removal.keep_left_out(packet) if is_there else None
            is_applied = is_there and _is_applied(packet, tree)
            removal.remove(tree, force=is_applied, scope=scope.of(packet))
            return kept
    return None


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
