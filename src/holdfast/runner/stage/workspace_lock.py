"""The workspace lock of a task, held while a stage of it writes."""

from __future__ import annotations

from holdfast.errors import CorruptFile, LockHeld, NotFound, StorageError
from holdfast.model.status import ENDS, Status
from holdfast.packet import load
from holdfast.runner.ledger import Ledger
from holdfast.store.lock import Lock
from holdfast.workspace import lock as workspace_lock

#: Here a task is at no work that somebody could come between.
_AT_REST = ENDS | {Status.INTERRUPTED, Status.QUEUED}


class WorkspaceLock:
    """At most one lock: that of the project directory. (A worktree is the task's own, and needs none.)"""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._lock: Lock | None = None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What a recorder takes over, so that the lock outlives us for as long as the agent writes."""
        return (self._lock.descriptor,) if self._lock is not None else ()

    @property
    def writer(self) -> str | None:
        """The task that has it; None where nobody says."""
        return workspace_lock.writer(self.ledger.packet.home, self.ledger.task.spec.project_dir)

    def take(self) -> bool:
        """Whether we have it now."""
        spec, home = self.ledger.task.spec, self.ledger.packet.home
        if self._lock is not None or spec.workspace == "worktree":
            return True
        try:
            lock = workspace_lock.acquire(home, spec.project_dir, role="runner", within_s=0.0)
        except LockHeld:
            return False
        try:
            writer = workspace_lock.writer(home, spec.project_dir)
            if writer is None or writer == spec.task_id or not self._is_at_work(writer):
                workspace_lock.sign(home, spec.project_dir, spec.task_id)
                self._lock = lock
            # Else its runner died, and its agent has ended: what it did will be judged by whoever comes after.
        finally:
            if self._lock is None:
                lock.release()
        return self._lock is not None

    def _is_at_work(self, task_id: str) -> bool:
        try:
            manifest = load.read_manifest(self.ledger.packet.home.packet(task_id))
        except (NotFound, CorruptFile):
            return False
        except StorageError:
            return True  # nobody can tell now: we wait, and ask again
        return manifest["status"] not in _AT_REST

    def close(self) -> None:
        """Let go of it, and say nothing: whoever drives the task next takes it again."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def release(self) -> None:
        """Let others write."""
        if self._lock is not None:
            workspace_lock.sign(self.ledger.packet.home, self.ledger.task.spec.project_dir, None)
            self._lock.release()
            self._lock = None
