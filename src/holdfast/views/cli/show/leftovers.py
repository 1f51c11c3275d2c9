"""Processes that outlived a successful agent, as the journal tells."""

from __future__ import annotations

import json

from holdfast.store import process
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: So many are named.
_NAMED = 5


def as_lines(packet: Packet) -> list[str]:
    """`PID COMMAND` of each, in the last run; those that are gone by now say so."""
    processes = _of_last_run(packet)
    lines = [
        f"{each['pid']} {each['command']}{'' if _is_there(each) else ' (gone)'}"
        for each in processes[:_NAMED]
    ]
    return [*lines, f"and {len(processes) - _NAMED} more"] if len(processes) > _NAMED else lines


def still_running(packet: Packet) -> dict[int, str]:
    """Those that are still there: pid → command."""
    return {each["pid"]: each["command"] for each in _of_last_run(packet) if _is_there(each)}


def _of_last_run(packet: Packet) -> list[dict[str, Any]]:
    processes: list[dict[str, Any]] = []
    try:
        with open(packet.journal, "rb") as file:
            # Looked for as text: most journals have none, and most of their lines are something else.
            for line in file:
                if b'"run.opened"' in line:
                    processes = []
                elif b'"leftovers.found"' in line:
                    processes += _processes(line)
    except OSError:
        return []
    return processes


def _processes(line: bytes) -> list[dict[str, Any]]:
    try:
        event = json.loads(line)
    except ValueError:  # torn: the journal's reader says so, not we
        return []
    return event["processes"] if event.get("type") == "leftovers.found" else []


def _is_there(each: dict[str, Any]) -> bool:
    # What was redacted or cut cannot be compared in full; the number of a process is soon another's.
    now = process.command_line(each["pid"])
    return now.partition(" ")[0] == each["command"].partition(" ")[0] and now != ""
