"""Printing the result of a request to tasks."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.packet import load
from holdfast.store.layout import Packet
from holdfast.views import restart_state
from holdfast.views.cli.show import out
from holdfast.views.text import home_down

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from holdfast.views.requests import Sent


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
    ends_mono = clock.mono() + (0.0 if values["no_wait"] else restart_state.SLOT_WAIT_S)
    for packet in packets:
        sentence = f"{packet.task_id} {restart_state.as_text(packet, how, ends_mono=ends_mono)}"
        if home_down.holds_back(packet, load.read_manifest(packet)):
            is_held_back = True
        else:
            sentence += f"; 'holdfast logs -f {packet.task_id}' follows it"
        confirm(packet, sentence, as_json=as_json)
    if is_held_back:
        out.talk(home_down.QUEUE_WAITS)
    elif packets and os.path.exists(packets[0].home.down):
        out.talk(home_down.UNGUARDED)
