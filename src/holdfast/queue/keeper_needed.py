"""Whether a home needs a keeper, judged by its files."""

from __future__ import annotations

import os

from holdfast.model.soundness import UNREADABLE
from holdfast.model.status import Status
from holdfast.notify import outbox
from holdfast.queue.local import LocalQueue
from holdfast.store.index import Index
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def is_keeper_needed(home: Home) -> bool:
    """Whether there is anything that keeps a keeper from exiting as idle. Raises StorageError."""
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
    # The row of an ended task remains until a keeper has counted it.
    with LocalQueue(home) as queue:
        return bool(queue.items())


def _needs(row: dict[str, Any]) -> bool:
    """An interrupted task needs a keeper only if removing its interrupt file resumes it."""
    if row["status"] == UNREADABLE:
        return False  # a keeper could do nothing for it
    interrupt: dict[str, Any] = row.get("interrupt") or {}
    return row["status"] != Status.INTERRUPTED or bool(interrupt.get("file"))
