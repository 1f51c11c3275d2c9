"""The workspace lock of a task, held while a stage of it writes."""

from __future__ import annotations

from holdfast.errors import LockHeld
from holdfast.runner.ledger import Ledger
from holdfast.store.lock import Lock
from holdfast.workspace import lock as workspace_lock


class WorkspaceLock:
    """At most one lock: that of the project directory. (A worktree is the task's own, and needs none.)"""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._lock: Lock | None = None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What a recorder takes over, so that the lock outlives us for as long as the agent writes."""
        return (self._lock.descriptor,) if self._lock is not None else ()

    def take(self) -> bool:
        """Whether we have it now."""
        spec = self.ledger.task.spec
        if self._lock is not None or spec.workspace == "worktree":
            return True
        try:
            self._lock = workspace_lock.acquire(
                self.ledger.packet.home, spec.project_dir, role="runner", within_s=0.0
            )
        except LockHeld:
            return False
        return True

    def release(self) -> None:
        """Let others write."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None
