"""Asking a task's runner for something, and what is said about it: a sentence for people, or the manifest."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import RequestRefused
from holdfast.model.status import ENDS, Status
from holdfast.packet import load
from holdfast.store.layout import Packet
from holdfast.views.ask import ask
from holdfast.views.cli.show import out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

JSON_HELP = "Print the manifest, as it is when the request was taken."
#: For a slot that is free.
_TURN_S = 1.0
IS_DOWN = "this home is down: queued tasks start after 'holdfast up'"
UNGUARDED = "this home is down: nobody starts another runner if this one dies; 'holdfast up' brings a keeper"
LOST = "its runner is gone and this home is down: 'holdfast up' brings a keeper, which starts another"


def lost(packet: Packet, status: str) -> str:
    """What is said of a task that nobody drives, once."""
    return f"{packet.task_id} is {status}: {LOST}"


def request(packet: Packet, verb: str, args: dict[str, Any]) -> None:
    """Ask for it. Raises RequestRefused with what is possible instead; Unanswered."""
    try:
        ask(packet, verb, args)
    except RequestRefused as error:
        hint = possible(load.read_manifest(packet), verb)
        raise RequestRefused(str(error), hint=hint) from error


def possible(manifest: dict[str, Any], refused: str) -> str:
    """What can be asked of a task in its state, once something else was refused."""
    task_id, status = manifest["task_id"], manifest["status"]
    if status == Status.COMPLETED:
        # A retry goes on with what is not done, and here nothing is left.
        stages: list[dict[str, Any]] = manifest.get("stages") or []
        stage = stages[0]["name"] if len(stages) == 1 else "STAGE"
        return f"'holdfast retry {task_id} --from {stage}' runs it again"
    if status in ENDS:
        if refused == "retry":
            return "'holdfast retry --help' shows what is possible"
        return f"'holdfast retry {task_id}' starts it again"
    if status == Status.QUEUED:
        return f"'holdfast queue ls' shows when it is its turn; 'holdfast queue rm {task_id}' takes it out"
    if status == Status.INTERRUPTED:
        interrupt: dict[str, Any] = manifest.get("interrupt") or {}
        if interrupt.get("approval"):
            return f"'holdfast approve {task_id}' lets it go on, 'holdfast reject {task_id}' ends it"
        return f"'holdfast resume {task_id}' goes on, 'holdfast stop {task_id}' ends it"
    return f"'holdfast logs -f {task_id}' follows it, 'holdfast stop {task_id}' ends it"


def tell(packet: Packet, sentence: str, *, as_json: bool) -> None:
    """One or the other."""
    out.data(load.read_manifest(packet)) if as_json else out.talk(sentence)


def tell_going(packet: Packet, how: str, *, as_json: bool) -> None:
    """The same, of a task that goes to work; one of the queue does so when the home is up."""
    if is_held_back(packet, load.read_manifest(packet)):
        if as_json:
            out.data(load.read_manifest(packet))
        out.talk(IS_DOWN)
        return
    if _waits_for_its_turn(packet):
        how = _turn(packet)
    sentence = f"{packet.task_id} {how}; 'holdfast logs -f {packet.task_id}' follows it"
    tell(packet, sentence, as_json=as_json)
    if os.path.exists(packet.home.down):
        out.talk(UNGUARDED)


def _turn(packet: Packet) -> str:
    """What a task of the queue waits for that goes on: one that has run before stands in front, and keeps to its time."""
    from holdfast.queue import sync
    from holdfast.views.cli.queue import wait_reason

    item, paused = wait_reason.find(packet.home, packet.task_id)
    item = item or sync.item_of(packet, has_run=True)  # no keeper has come to it yet
    waits = wait_reason.why(item, paused) if item is not None else ""
    return f"is queued: {waits}" if waits else "is queued, and goes first"


def _waits_for_its_turn(packet: Packet) -> bool:
    """Whether it is still in the queue after a moment: where a slot is free, its turn comes at once."""
    ends_mono = clock.mono() + _TURN_S
    while load.read_manifest(packet)["status"] == Status.QUEUED:
        if clock.mono() >= ends_mono:
            return True
        clock.sleep(0.02)
    return False


def is_held_back(packet: Packet, manifest: dict[str, Any]) -> bool:
    """Whether it waits for its turn in a home in which no turn comes."""
    return manifest["status"] == Status.QUEUED and os.path.exists(packet.home.down)
