"""What the trial counts: cases, tasks that ended, runs with two ends or two agents at once, leftovers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from holdfast import files
from tests.chaos.world import ENDS

#: The name of a report's property that holds a test's counts.
PROPERTY = "hostile"
#: A damaged journal may be huge.
_MOST_BYTES = 64 * 1024 * 1024


def of_homes(root: str) -> dict[str, int]:
    """The counts of all homes below a test's directory. What cannot be read is not counted."""
    counts = {"tasks": 0, "ends": 0, "overlaps": 0}
    for folder, directories, _ in os.walk(root):
        if "tasks" not in directories or os.path.islink(os.path.join(folder, "tasks")):
            continue
        directories.remove("tasks")
        for name in sorted(os.listdir(os.path.join(folder, "tasks"))):
            events = list(_events(os.path.join(folder, "tasks", name, "events.jsonl")))
            if events:
                counts["tasks"] += 1
                counts["ends"] += any(_is_end(event) for event in events)
                counts["overlaps"] += _overlaps(events)
    return counts


def _events(path: str) -> Iterator[dict]:
    try:
        data = files.read(path, _MOST_BYTES)
    except OSError:
        return
    for line in data.splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield event


def _is_end(event: dict) -> bool:
    return event.get("type") == "task.moved" and str(event.get("new")) in ENDS


def _overlaps(events: list[dict]) -> int:
    """Second ends of one run, and attempts that were opened while one of the same stage was open."""
    overlaps = 0
    has_ended = False
    open_stages: dict[str, int] = {}
    for event in events:
        match event.get("type"):
            case "run.opened":
                has_ended = False
            case "task.moved" if _is_end(event):
                overlaps += has_ended
                has_ended = True
            case "attempt.opened":
                stage = str(event.get("stage"))
                overlaps += stage in open_stages
                open_stages[stage] = event.get("attempt", 0)
            case "attempt.ended" | "attempt.void":
                number = event.get("attempt")
                open_stages = {stage: other for stage, other in open_stages.items() if other != number}
            case _:
                pass
    return overlaps
