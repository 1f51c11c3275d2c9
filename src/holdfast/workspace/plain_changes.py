"""What changed around a plain run, which has no snapshot of its start: a snapshot would delay it.

The files are compared with the commit that was checked out at the start, without those that have
not been touched since then. Changes by other programs, and earlier ones in the same files, are included.
"""

from __future__ import annotations

import os
import tempfile

from holdfast import clock
from holdfast.errors import NotPossible
from holdfast.model import events as ev
from holdfast.packet import load
from holdfast.store import journal
from holdfast.workspace import checked_out
from holdfast.workspace.project_tree import locate
from holdfast.workspace.snapshots import changes, snapshot
from holdfast.workspace.snapshots.trees import Trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Packet

#: The kernel's times of files are those of its last tick.
_TICK_S = 0.1
_SHOWN_CHARS = 10


class PlainChanges:
    """Two trees of the project of a plain run.

    Raises NotPossible if no commit was recorded, or it is gone.
    """

    def __init__(self, packet: Packet) -> None:
        commit, since = _start(packet)
        # Not in the packet: only its runner writes there.
        self._folder = tempfile.TemporaryDirectory(prefix="holdfast-diff-")
        self.trees = Trees(self._folder.name)
        project = locate(load.fold(packet).spec.project_dir)
        hidden = (os.path.realpath(packet.home.path),)
        # The agent may have written the user's index: no file counts as unchanged because of it.
        tree = snapshot.take(project, self.trees, hidden=hidden, trusts_index=False)
        if not self.trees.has(commit):
            raise NotPossible(
                f"the commit {commit[:_SHOWN_CHARS]}, from which {packet.task_id} started, is gone"
            )
        self.directory, self.old_tree = project.directory, self.trees.tree_of(commit)
        touched = {
            end
            for change in changes.changed(self.trees, self.old_tree, tree)
            for end in change.ends
            if _is_touched(os.path.join(project.top, end), since)
        }
        self.new_tree, _ = changes.only(self.trees, self.old_tree, tree, touched)
        self.note = (
            f"compared with commit {commit[:_SHOWN_CHARS]}, without files that did not change since the task "
            "started: a plain run has no snapshot, so changes of others are included"
        )


def _start(packet: Packet) -> tuple[str, float]:
    """The commit that was checked out when the first attempt was opened, and when that was."""
    for at, event in journal.read(packet.journal):
        if isinstance(event, ev.AttemptOpened):
            if checked_out.is_commit(event.head):
                return event.head, clock.parse_iso(at) - _TICK_S
            break
    raise NotPossible(
        f"{packet.task_id} has no recorded workspace",
        hint="tasks with a scope or a worktree have one, and plain runs in a git repository with a commit, "
        "once their first stage has started",
    )


def _is_touched(path: str, since: float) -> bool:
    """Whether a path may have changed since then. One that is gone may have been removed since."""
    try:
        found = os.lstat(path)
    except OSError:
        return True
    return max(found.st_mtime, found.st_ctime) >= since
