"""Dependents of a task that is about to be removed or archived.

If the task was completed, that is noted for them. Otherwise a queue that is rebuilt from the packets would
take the task for lost.
"""

from __future__ import annotations

import os

from holdfast.model.status import Status
from holdfast.queue import sync
from holdfast.store.layout import Home


class Dependents:
    """The queued tasks by dependency, read once."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._of: dict[str, list[str]] | None = None

    def of(self, task_id: str) -> list[str]:
        """The tasks that wait for a task, or are held because of its end."""
        if self._of is None:
            self._of = self._look()
        return self._of.get(task_id, [])

    def note_removal(self, task_id: str) -> None:
        """Call before a packet is removed. Raises StorageError."""
        if sync.status_of(self._home, task_id) != Status.COMPLETED:
            return
        for waiter in self.of(task_id):
            packet = self._home.packet(waiter)
            if os.path.isdir(packet.path):
                sync.note_met(packet, task_id)

    def _look(self) -> dict[str, list[str]]:
        dependents: dict[str, list[str]] = {}
        if os.path.exists(self._home.queue):
            with sync.open_queue(self._home) as queue:
                for item in queue.items():
                    for on_id in item.after:
                        dependents.setdefault(on_id, []).append(item.task_id)
        return dependents
