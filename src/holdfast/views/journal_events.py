"""The events in a task's journal, optionally followed until the task has ended."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.model.status import ENDS
from holdfast.packet import load, metrics
from holdfast.store import atomic
from holdfast.store.layout import Packet
from holdfast.views.recovery import KeeperStarter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_PAUSE_S = 0.1
_BLOCK_BYTES = 65536


def read(packet: Packet, *, follow: bool) -> Iterator[dict[str, Any]]:
    """All events; with `follow`, also new ones until the task has ended."""
    offset = 0
    starter = KeeperStarter()
    while True:
        # Check for the end first: what was written before it is then read below.
        status = load.read_manifest(packet)["status"] if follow else ""
        is_over = not follow or (status in ENDS and os.path.exists(packet.task_done))
        end = _size_of_whole_lines(packet.journal)
        if end > offset:
            yield from metrics.lines(packet.journal, start=offset, end=end)
            offset = end
        if is_over:
            return
        starter.poll(packet, status)
        clock.sleep(_PAUSE_S)


def _size_of_whole_lines(path: str) -> int:
    """The size of a journal without a last line that is still being written."""
    try:
        with atomic.stream(path) as file:
            end = file.seek(0, os.SEEK_END)
            while end > 0:
                start = max(0, end - _BLOCK_BYTES)
                file.seek(start)
                newline = file.read(end - start).rfind(b"\n")
                if newline >= 0:
                    return start + newline + 1
                end = start
    except FileNotFoundError:
        return 0
    return 0
