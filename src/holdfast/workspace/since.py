"""What changed in a workspace since a moment: two snapshots, and a shortened patch between them."""

from __future__ import annotations

from holdfast.errors import HoldfastError
from holdfast.workspace import base as bases
from holdfast.workspace import task_worktree
from holdfast.workspace.current_tree import take_snapshot
from holdfast.workspace.project_tree import ProjectTree, locate
from holdfast.workspace.snapshots import changes
from holdfast.workspace.snapshots.trees import Trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.task import Task
    from holdfast.store.layout import Packet

#: For a prompt: the agent can look at the rest itself.
_LINES, _CHARS = 300, 16_000


class Since:
    """The workspace of a stage, from now on. Outside git, nothing is noted: every file would be copied."""

    def __init__(self, packet: Packet, task: Task, stage: str) -> None:
        self._packet, self._task = packet, task
        self._place, self._start = _place(packet, task, stage)
        self._tree = self._take()

    def changed(self) -> tuple[int, str]:
        """How many files changed, and how; nothing if that cannot be found out."""
        tree = self._take() if self._tree is not None else None
        if self._tree is None or tree is None or tree == self._tree:
            return 0, ""
        try:
            trees = Trees.of(self._packet)
            paths = changes.changed(trees, self._tree, tree)
            return len(paths), _short(changes.text(trees, self._tree, tree).decode("utf-8", "replace"))
        except (OSError, HoldfastError):
            return 0, ""

    def _take(self) -> str | None:
        if self._place is None:
            return None
        try:
            return take_snapshot(self._packet, self._place, self._task.spec, since=self._start)
        except (OSError, HoldfastError):
            return None


def _place(packet: Packet, task: Task, stage: str) -> tuple[ProjectTree | None, str]:
    """Where it is, and its tree at the task's start: by the task's record, if it has one, because an agent
    can write a `.git`."""
    try:
        base = bases.read(task_worktree.of_stage(packet, task, stage))
        place = base.place if base is not None else locate(task.workspace_of(stage))
    except (OSError, HoldfastError):
        return None, ""
    return place if place.git_dir is not None else None, base.base_tree if base is not None else ""


def _short(patch: str) -> str:
    lines = patch.splitlines()
    kept: list[str] = []
    room = _CHARS
    for line in lines[:_LINES]:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    left = len(lines) - len(kept)
    return "\n".join([*kept, f"… and {left} more lines"] if left else kept)
