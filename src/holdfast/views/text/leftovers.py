"""Processes that a successful agent left running, from the journal."""

from __future__ import annotations

import json

from holdfast import files
from holdfast.store import process
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: How many are listed by name.
_LISTED = 5


def as_lines(packet: Packet) -> list[str]:
    """`PID COMMAND` of each process of the last run, with ` (gone)` if it has ended since."""
    processes = _of_last_run(packet)
    lines = [
        f"{each['pid']} {each['command']}{'' if _is_alive(each) else ' (gone)'}"
        for each in processes[:_LISTED]
    ]
    return [*lines, f"and {len(processes) - _LISTED} more"] if len(processes) > _LISTED else lines


def still_running(packet: Packet) -> dict[int, str]:
    """Those that are still alive: pid → command."""
    return {each["pid"]: each["command"] for each in _of_last_run(packet) if _is_alive(each)}


def _of_last_run(packet: Packet) -> list[dict[str, Any]]:
    processes: list[dict[str, Any]] = []
    try:
        with files.stream(packet.journal) as file:
            # Searched as text before parsing: few journals have such an event.
            for line in files.lines(file):
                if b'"run.opened"' in line:
                    processes = []
                elif b'"leftovers.found"' in line:
                    processes += _processes(line)
    except OSError:
        return []
    return processes


def _processes(line: bytes) -> list[dict[str, Any]]:
    try:
        event: dict[str, Any] = json.loads(line)
        listed: list[dict[str, Any]] = event["processes"] if event["type"] == "leftovers.found" else []
        # Another program may have added the line: its words would become a command to type.
        return [each for each in listed if type(each["pid"]) is int and type(each["command"]) is str]
    except (ValueError, LookupError, TypeError, RecursionError):  # a torn line
        return []


def _is_alive(each: dict[str, Any]) -> bool:
    # Only the program is compared, since arguments may be redacted or cut. Pids are reused.
    now = process.command_line(each["pid"])
    return now.partition(" ")[0] == each["command"].partition(" ")[0] and now != ""
