"""The timeline of a task: spans and marks, without secrets."""

from __future__ import annotations

from holdfast.model import timeline
from holdfast.store.layout import Packet
from holdfast.views.facts.events import EventReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = "holdfast.timeline/1"


def gather(packet: Packet) -> dict[str, Any]:
    """The timeline up to now, and the byte of the journal at which later events begin."""
    reader = EventReader(packet)
    found = timeline.of(reader.new())
    return {
        "schema": SCHEMA,
        "task_id": packet.task_id,
        "journal_bytes": reader.offset,
        **found.to_json(),
    }
