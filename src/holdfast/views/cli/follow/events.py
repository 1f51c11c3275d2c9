"""Follow the events of a task until it has ended."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.model.status import ENDS
from holdfast.packet import load
from holdfast.store.layout import Packet
from holdfast.views.facts.events import EventReader
from holdfast.views.recovery import KeeperStarter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_PAUSE_S = 0.1


def read(packet: Packet, *, follow: bool) -> Iterator[dict[str, Any]]:
    """All events; with `follow`, also new ones until the task has ended."""
    reader = EventReader(packet)
    starter = KeeperStarter()
    while True:
        # Check for the end first: what was written before it is then read below.
        status = load.read_manifest(packet)["status"] if follow else ""
        is_over = not follow or (status in ENDS and os.path.exists(packet.task_done))
        yield from reader.new()
        if is_over:
            return
        starter.poll(packet, status)
        clock.sleep(_PAUSE_S)
