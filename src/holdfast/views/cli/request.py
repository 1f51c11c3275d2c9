"""Printing the result of a request to tasks."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.store.layout import Packet
from holdfast.views.cli.show import out
from holdfast.views.text import home_down

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from holdfast.views.requests import Sent

#: How long to wait for a free slot before reporting that the task is queued.
_SLOT_WAIT_S = 1.0
#: The state of a task that goes on as soon as a slot is free.
_FIRST = "is queued, first in line"


def complain(sent: Sent) -> int:
    """Print the errors. Returns the exit status of the first; 0 if there is none."""
    statuses = [out.complain(error) for _, error in sent.failed]
    return statuses[0] if statuses else 0


def confirm(packet: Packet, sentence: str, *, as_json: bool) -> None:
    """Print the manifest, or the sentence."""
    out.data(load.read_manifest(load.wherever(packet))) if as_json else out.talk(sentence)


def confirm_going(packets: Sequence[Packet], how: str, values: dict[str, Any]) -> None:
    """The same for tasks that go on: one of the queue may have to wait for a slot, or for the home."""
    is_held_back, as_json = False, values["json"]
    ends_mono = clock.mono() + (0.0 if values["no_wait"] else _SLOT_WAIT_S)
    for packet in packets:
        if home_down.holds_back(packet, load.read_manifest(packet)):
            is_held_back = True
            confirm(packet, f"{packet.task_id} {_FIRST}", as_json=as_json)
            continue
        state = _queue_state(packet) if _is_still_queued(packet, ends_mono) else how
        sentence = f"{packet.task_id} {state}; 'holdfast logs -f {packet.task_id}' follows it"
        confirm(packet, sentence, as_json=as_json)
    if is_held_back:
        out.talk(home_down.QUEUE_WAITS)
    elif packets and os.path.exists(packets[0].home.down):
        out.talk(home_down.UNGUARDED)


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
