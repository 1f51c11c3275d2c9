"""Tasks that can be archived or pruned: those that have ended."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.retention import Candidate
from holdfast.packet import archive, load
from holdfast.store.layout import Home, Packet


def ended(home: Home) -> list[Packet]:
    """Packets in `tasks/` whose task has ended."""
    packets: list[Packet] = []
    for task_id in load.task_ids(home):
        packet = home.packet(task_id)
        try:
            archive.check_ended(packet)
        except HoldfastError:
            continue
        packets.append(packet)
    return packets


def archived(home: Home) -> list[Packet]:
    """Packets in `archive/`."""
    return [home.archived(task_id) for task_id in load.archived_ids(home)]


def ended_at(packet: Packet) -> float:
    """When a task ended, in Unix time; if the manifest is unreadable, when the packet last changed."""
    try:
        return clock.parse_iso(load.read_manifest(packet)["finished_at"])
    except (HoldfastError, KeyError, ValueError, AttributeError, TypeError):
        try:
            return os.stat(packet.path).st_mtime
        except OSError:
            return clock.now()


def candidate(packet: Packet, *, is_archived: bool) -> Candidate:
    """A packet as input for `model.retention.choose`."""
    return Candidate(
        task_id=packet.task_id,
        ended=ended_at(packet),
        size_bytes=archive.size_bytes(packet.path),
        is_archived=is_archived,
    )
