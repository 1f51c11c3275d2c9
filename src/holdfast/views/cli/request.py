"""Sending a request to a task's runner, and printing the result."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import RequestRefused
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.store.layout import Packet
from holdfast.views.cli.show import home_down, out
from holdfast.views.requests import send_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

JSON_HELP = "Print the manifest as of when the request was accepted."
#: How long to wait for a free slot before reporting that the task is queued.
_SLOT_WAIT_S = 1.0


def send(packet: Packet, verb: str, args: dict[str, Any]) -> None:
    """Send a request. Raises RequestRefused, with a hint on what to do instead; Unanswered."""
    try:
        send_request(packet, verb, args)
    except RequestRefused as error:
        hint = _possible(packet, verb)
        raise RequestRefused(str(error), hint=hint) from error


def _possible(packet: Packet, refused: str) -> str:
    """What to do instead of the refused verb."""
    manifest = load.read_manifest(packet)
    if manifest["status"] == Status.COMPLETED:
        # A plain retry continues with what is not done, which is nothing here.
        stages: list[dict[str, Any]] = manifest.get("stages") or []
        stage = stages[0]["name"] if len(stages) == 1 else "STAGE"
        return f"'holdfast retry {packet.task_id} --from {stage}' to run it again"
    from holdfast.model import next_action
    from holdfast.views.text import next_steps

    steps = next_steps.read(packet, manifest).choices
    return next_action.hint(step for step in steps if step.command.split()[1:2] != [refused])


def confirm(packet: Packet, sentence: str, *, as_json: bool) -> None:
    """Print the manifest, or the sentence."""
    out.data(load.read_manifest(packet)) if as_json else out.talk(sentence)


def confirm_going(packet: Packet, how: str, *, as_json: bool) -> None:
    """The same for a task that goes on: a task of the queue may have to wait for a slot, or for the home."""
    if home_down.holds_back(packet, load.read_manifest(packet)):
        if as_json:
            out.data(load.read_manifest(packet))
        out.talk(home_down.QUEUE_WAITS)
        return
    if _is_still_queued(packet):
        how = _queue_state(packet)
    sentence = f"{packet.task_id} {how}; 'holdfast logs -f {packet.task_id}' follows it"
    confirm(packet, sentence, as_json=as_json)
    if os.path.exists(packet.home.down):
        out.talk(home_down.UNGUARDED)


def _queue_state(packet: Packet) -> str:
    """What a queued task waits for. One that has run before goes first, but not before its `not_before`."""
    from holdfast.queue import sync
    from holdfast.views.text import wait_reason

    item, paused = wait_reason.find_item(packet.home, packet.task_id)
    item = item or sync.item_of(packet, has_run=True)  # the keeper has not added it yet
    waits = wait_reason.reason(item, paused) if item is not None else ""
    return f"is queued: {waits}" if waits else "is queued, first in line"


def _is_still_queued(packet: Packet) -> bool:
    """Whether it is still queued after a moment: with a free slot it starts at once."""
    ends_mono = clock.mono() + _SLOT_WAIT_S
    while load.read_manifest(packet)["status"] == Status.QUEUED:
        if clock.mono() >= ends_mono:
            return True
        clock.sleep(0.02)
    return False
