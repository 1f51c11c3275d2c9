"""Whether a home needs a keeper, by its files alone: for whoever finds none there."""

from __future__ import annotations

import os

from holdfast.model.status import Status
from holdfast.notify import outbox
from holdfast.queue.local import LocalQueue
from holdfast.store.index import Index
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def is_keeper_needed(home: Home) -> bool:
    """What keeps a keeper from leaving as idle needs one. Raises StorageError."""
    if os.path.exists(home.down) or not os.path.isdir(home.tasks):
        return False
    if os.path.exists(home.up) or outbox.names(home):
        return True
    index = Index(home)
    try:
        if any(_needs(row) for row in index.live()):
            return True
    finally:
        index.close()
    if not os.path.exists(home.queue):
        return False
    # A row of a task that has ended is one that a keeper has not counted yet.
    with LocalQueue(home) as queue:
        return bool(queue.items())


def _needs(row: dict[str, Any]) -> bool:
    """A task that waits for a person needs nobody, unless it goes on when its mark is taken away."""
    asked: dict[str, Any] = row.get("interrupt") or {}
    return row["status"] != Status.INTERRUPTED or bool(asked.get("file"))
