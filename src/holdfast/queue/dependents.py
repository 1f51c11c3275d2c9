"""Dependents of a task that is about to be removed or archived.

If the task was completed, that is noted for them. Otherwise a queue that is rebuilt from the packets would
take the task for lost.
"""

from __future__ import annotations

import os

from holdfast.errors import NotPossible, StorageError
from holdfast.model.status import Status
from holdfast.queue import sync
from holdfast.queue.engine import Item
from holdfast.store.layout import Home


class Dependents:
    """The queued tasks by dependency, read once."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._of: dict[str, list[Item]] | None = None

    def of(self, task_id: str) -> list[Item]:
        """The tasks that were queued to start after a task."""
        if self._of is None:
            self._of = self._look()
        return self._of.get(task_id, [])

    def note_removal(self, task_id: str) -> None:
        """Call before a packet is removed. Raises StorageError."""
        if sync.status_of(self._home, task_id) != Status.COMPLETED:
            return
        for waiter in self.of(task_id):
            packet = self._home.packet(waiter.task_id)
            if os.path.isdir(packet.path):
                sync.note_met(packet, task_id)

    def check_unneeded(self, task_id: str, verb: str, *, anyway: str = "") -> None:
        """Raises NotPossible if other tasks need this one to be completed: once it is put away, it cannot be
        retried. `anyway`: how to do it nevertheless."""
        # Not those that a person lets run without it.
        waiting = [item.task_id for item in self.of(task_id) if task_id in item.waits_for]
        if waiting and sync.status_of(self._home, task_id) != Status.COMPLETED:
            one = waiting[0]
            need = f"and {len(waiting) - 1} more need" if len(waiting) > 1 else "needs"
            raise NotPossible(
                f"cannot {verb} {task_id}: {one} {need} it to be completed",
                hint=f"'holdfast retry {task_id}' runs it again; 'holdfast queue retry {one}' lets {one} "
                f"run without it; 'holdfast stop {one}' ends {one}{anyway}",
            )

    def note_removed(self, task_id: str) -> list[Item]:
        """Call after a packet was removed: tasks that are held because of it say so at once. Returns them."""
        try:
            if not self.of(task_id):
                return []
            with sync.open_queue(self._home) as queue:
                return [item for item in queue.items() if item.state == "held" and task_id in item.waits_for]
        except StorageError:
            return []  # it is removed all the same, and the keeper updates the queue

    def _look(self) -> dict[str, list[Item]]:
        dependents: dict[str, list[Item]] = {}
        if os.path.exists(self._home.queue):
            with sync.open_queue(self._home) as queue:
                for item in queue.items():
                    for on_id in item.after:
                        dependents.setdefault(on_id, []).append(item)
        return dependents
