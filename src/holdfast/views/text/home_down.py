"""Messages about a home that is down: no keeper starts queued tasks or replaces dead runners."""

from __future__ import annotations

import os

from holdfast.model.status import Status
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

QUEUE_WAITS = "this home is down: queued tasks start after 'holdfast up'"
UNGUARDED = (
    "this home is down: if the runner dies, nothing starts another; 'holdfast up' starts a keeper, which does"
)
RUNNER_LOST = "its runner is gone and this home is down: 'holdfast up' starts a keeper, which starts another"


def runner_lost(packet: Packet, status: str) -> str:
    """The message about a task that has lost its runner."""
    return f"{packet.task_id} is {status}: {RUNNER_LOST}"


def holds_back(packet: Packet, manifest: dict[str, Any]) -> bool:
    """Whether the task is queued in a home that is down."""
    return manifest["status"] == Status.QUEUED and os.path.exists(packet.home.down)
