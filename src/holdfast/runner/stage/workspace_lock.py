"""The workspace lock of a task, held while one of its stages writes."""

from __future__ import annotations

from holdfast.errors import CorruptFile, InvalidId, LockHeld, NotFound, StorageError
from holdfast.model.status import ENDS, Status
from holdfast.packet import load, takeover
from holdfast.runner.ledger import Ledger
from holdfast.store.lock import Lock
from holdfast.workspace import lock as workspace_lock

#: In these states a task has no unfinished work in the workspace.
_AT_REST = ENDS | {Status.INTERRUPTED, Status.QUEUED}


class WorkspaceLock:
    """The lock of the project directory. A worktree belongs to one task and needs no lock."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._lock: Lock | None = None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The lock's descriptors.

        The recorder inherits them, so the lock is held as long as the agent writes.
        """
        return self._lock.descriptors if self._lock is not None else ()

    @property
    def writer(self) -> str | None:
        """The task that has the lock; None if unknown."""
        return workspace_lock.writer(self.ledger.packet.home, self.ledger.task.spec.project_dir)

    def take(self) -> bool:
        """Try to take the lock. Returns whether we have it."""
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
            # Else the writer's runner died after its agent ended; its next runner will judge the changes.
        finally:
            if self._lock is None:
                lock.release()
        return self._lock is not None

    def _is_at_work(self, task_id: str) -> bool:
        try:
            packet = self.ledger.packet.home.packet(task_id)
            manifest = load.read_manifest(packet)
        except (NotFound, CorruptFile, InvalidId):
            return False
        except StorageError:
            return True  # unknown: wait and check again
        # A person who has taken it over hands it back after the end of the program, which held the lock.
        return manifest["status"] not in _AT_REST or takeover.is_held(packet, manifest)

    def close(self) -> None:
        """Unlock, but stay the recorded writer: the task's next runner takes the lock again."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def release(self) -> None:
        """Unlock and clear the recorded writer, so that other tasks can write."""
        if self._lock is not None:
            workspace_lock.sign(self.ledger.packet.home, self.ledger.task.spec.project_dir, None)
            self._lock.release()
            self._lock = None
