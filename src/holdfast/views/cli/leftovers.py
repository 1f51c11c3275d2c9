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


def found(packet: Packet) -> list[str]:
    """`PID COMMAND` of each, in the last run; those that are gone by now say so."""
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
    lines = [_line(each) for each in processes[:_NAMED]]
    return [*lines, f"and {len(processes) - _NAMED} more"] if len(processes) > _NAMED else lines


def _processes(line: bytes) -> list[dict[str, Any]]:
    try:
        event = json.loads(line)
    except ValueError:  # torn: the journal's reader says so, not we
        return []
    return event["processes"] if event.get("type") == "leftovers.found" else []


def _line(each: dict[str, Any]) -> str:
    # What was redacted or cut cannot be compared in full; the number of a process is soon another's.
    now = process.command_line(each["pid"])
    is_there = now.partition(" ")[0] == each["command"].partition(" ")[0] and now != ""
    return f"{each['pid']} {each['command']}{'' if is_there else ' (gone)'}"
