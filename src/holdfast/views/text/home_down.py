"""Messages about a home that is down, or whose keepers die: nothing starts queued tasks or replaces dead
runners."""

from __future__ import annotations

import os

from holdfast.model.status import Status
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

QUEUE_WAITS = "this home is down: queued tasks start after 'holdfast up' (or the next 'run')"
UNGUARDED = (
    "this home is down: if the runner dies, nothing starts another; 'holdfast up' starts a keeper, which does"
)
RUNNER_LOST = "its runner is gone and this home is down: 'holdfast up' starts a keeper, which starts another"


def runner_lost(packet: Packet, status: str) -> str:
    """The message about a task that has lost its runner, and gets no other."""
    why = RUNNER_LOST if os.path.exists(packet.home.down) else _nothing_lives(packet)
    return f"{packet.task_id} is {status}: {why}"


def _nothing_lives(packet: Packet) -> str:
    """Its home is not down, but nothing lives in it. The last words of its runner or keeper tell why."""
    from holdfast.views.text import log_tail  # rarely needed

    logs = (packet.runner_log, packet.home.keeper_log)
    said = next((line.strip() for path in logs for line in log_tail.last_lines(path, 1)), "")
    return (
        f"its runners and the keepers of this home die{f' ({said})' if said else ''}; 'holdfast doctor' and "
        f"{packet.home.keeper_log} say more, and 'holdfast up' starts another keeper"
    )


def holds_back(packet: Packet, manifest: dict[str, Any]) -> bool:
    """Whether the task is queued in a home that is down."""
    return manifest["status"] == Status.QUEUED and os.path.exists(packet.home.down)
