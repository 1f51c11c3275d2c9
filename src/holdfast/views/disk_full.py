"""A full disk: detect it, and advise how to stop agents while requests cannot be written."""

from __future__ import annotations

import os

from holdfast.errors import DiskFull, HoldfastError
from holdfast.model.process import ProcessIdentity
from holdfast.packet import load
from holdfast.store import atomic, process
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet

#: With less free space, hardly anything can be recorded.
_FULL_BYTES = 256 * 1024


def shortage(home: Home) -> str:
    """A message if the home's disk is full; empty otherwise."""
    try:
        disk = os.statvfs(home.path)
    except OSError:
        return ""
    # Blocks reserved for root count for root only.
    is_root = os.geteuid() == 0
    free_bytes = (disk.f_bfree if is_root else disk.f_bavail) * disk.f_frsize
    free_files = disk.f_ffree if is_root else disk.f_favail
    if free_bytes >= _FULL_BYTES and (free_files or not disk.f_files):
        return ""
    return "full: nothing can be recorded and no request sent until there is room"


def with_kill_hint(error: DiskFull, packets: list[Packet]) -> DiskFull:
    """The error, with a hint how to kill the agents of these tasks without a request."""
    pids = [pid for packet in packets for pid in _agent_pids(packet)]
    if not pids:
        return error
    agent = "the agent" if len(pids) == 1 else "the agents"
    return DiskFull(
        str(error),
        hint=f"{error.hint}. 'kill {' '.join(map(str, pids))}' stops {agent} now; repeat the command when "
        "there is room, or the task continues then",
    )


def _agent_pids(packet: Packet) -> list[int]:
    """Live agents of a task, from files written while there was room."""
    pids: list[int] = []
    for name in load.attempt_names(packet):
        directory = packet.attempt(name)
        try:
            if not locks.is_held(directory.lock):
                continue
            identity = ProcessIdentity.from_json(atomic.read_json(directory.identity) or {})
        except (HoldfastError, TypeError, ValueError):
            continue
        if process.is_alive(identity):
            pids.append(identity.pid)
    return pids
