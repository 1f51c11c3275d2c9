"""The state of a task that was just told to go on: in the queue, it may wait for a slot or a limit."""

from __future__ import annotations

from holdfast import clock
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.store.layout import Packet
from holdfast.views.text import home_down

#: How long to wait for a free slot before reporting that the task is queued.
SLOT_WAIT_S = 1.0
#: The state of a task that goes on as soon as a slot is free.
_FIRST = "is queued, first in line"


def as_text(packet: Packet, how: str, *, ends_mono: float) -> str:
    """`how`, if it runs by then; else what it waits for, and until when."""
    if home_down.holds_back(packet, load.read_manifest(packet)):
        return _FIRST
    return _queue_state(packet) if _is_still_queued(packet, ends_mono) else how


def _queue_state(packet: Packet) -> str:
    """What a queued task waits for. One that has run before goes first, but not before its `not_before`."""
    from holdfast.queue import sync
    from holdfast.views.text import queue_reason

    item, paused = queue_reason.find_item(packet.home, packet.task_id)
    item = item or sync.item_of(packet, has_run=True)  # the keeper has not added it yet
    waits = queue_reason.of_item(packet.home, item, paused) if item is not None else ""
    return f"is queued: {waits}" if waits else _FIRST


def _is_still_queued(packet: Packet, ends_mono: float) -> bool:
    """Whether it is still queued after a moment: with a free slot it starts at once."""
    while load.read_manifest(packet)["status"] == Status.QUEUED:
        if clock.mono() >= ends_mono:
            return True
        clock.sleep(0.02)
    return False
