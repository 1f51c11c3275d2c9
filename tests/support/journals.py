"""The journal of a packet, opened for writing as a runner does."""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.packet import sealed
from holdfast.store.journal import Journal
from holdfast.store.layout import Packet


def opened(packet: Packet) -> Journal:
    """Its journal, with its seals."""
    return sealed.open_for_runner(packet)[1]


def append(packet: Packet, *events: ev.Event, at: float | None = None) -> None:
    """Add events, as its runner would."""
    journal = opened(packet)
    try:
        journal.append(events, at=at)
    finally:
        journal.close()
