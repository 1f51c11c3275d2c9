"""A disk without room: whether it is so, and what a person can do meanwhile. Nothing can be asked of a runner then."""

from __future__ import annotations

import os

from holdfast.errors import DiskFull, HoldfastError
from holdfast.model.process import ProcessIdentity
from holdfast.packet import load
from holdfast.store import atomic, process
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet

#: With less, hardly anything is recorded any more.
_FULL_BYTES = 256 * 1024


def trouble(home: Home) -> str:
    """What the disk of the home lacks, in words; empty where there is room."""
    try:
        found = os.statvfs(home.path)
    except OSError:
        return ""
    # What is set apart for root is room for root.
    is_root = os.geteuid() == 0
    free_bytes = (found.f_bfree if is_root else found.f_bavail) * found.f_frsize
    free_files = found.f_ffree if is_root else found.f_favail
    if free_bytes >= _FULL_BYTES and (free_files or not found.f_files):
        return ""
    return "full: nothing more can be recorded, or asked of a task, until there is room"


def with_advice(error: DiskFull, packets: list[Packet]) -> DiskFull:
    """The error, and how the agents of these tasks can be ended all the same."""
    pids = [pid for packet in packets for pid in _agents(packet)]
    if not pids:
        return error
    agent = "the agent" if len(pids) == 1 else "the agents"
    return DiskFull(
        str(error),
        hint=f"{error.hint}. 'kill {' '.join(map(str, pids))}' ends {agent} now; ask again when there is room, "
        "or the task goes on then",
    )


def _agents(packet: Packet) -> list[int]:
    """The living agents of a task, by the files that were written when there was room."""
    found: list[int] = []
    for name in load.attempt_names(packet):
        directory = packet.attempt(name)
        try:
            if not locks.is_held(directory.lock):
                continue
            identity = ProcessIdentity.from_json(atomic.read_json(directory.identity) or {})
        except (HoldfastError, TypeError, ValueError):
            continue
        if process.is_alive(identity):
            found.append(identity.pid)
    return found
