"""Todo lists: an agent's progress, if its CLI has such a list.

Each CLI has a tool or an item for it; this module has the common part. A run writes its list only a few
times, so a slow decoder is fine, which also handles half an emoji.
"""

from __future__ import annotations

import json

from holdfast.model import events as ev

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

#: Much longer than what the ingest cuts to after it has masked secrets.
_TEXT_CHARS = 4000
#: Cancelled steps are neither done nor to do.
_GIVEN_UP = frozenset({"cancelled", "deleted"})


def progress(steps: Iterable[tuple[str, str]]) -> ev.AgentProgress:
    """Progress from the state and text of each step. The current step is the one that is `in_progress`."""
    left = [(state, text) for state, text in steps if state not in _GIVEN_UP]
    present = next((text for state, text in left if state == "in_progress" and text), None)
    return ev.AgentProgress(
        steps_completed=sum(state == "completed" for state, _ in left),
        steps_total=len(left),
        current_step=None if present is None else present[:_TEXT_CHARS],
    )


def of_call(arguments: bytes) -> list[ev.AgentEvent]:
    """Progress from the arguments of a call that writes the whole list.

    Never raises: unreadable arguments yield nothing.
    """
    try:
        return of_arguments(json.loads(arguments))
    except (ValueError, RecursionError):
        return []


def of_arguments(arguments: Any) -> list[ev.AgentEvent]:
    """The same, decoded: `{"todos": [{"status", "content"}, …]}`; Gemini uses `description`."""
    try:
        steps = [
            (entry["status"], entry.get("content") or entry["description"]) for entry in arguments["todos"]
        ]
    except (TypeError, KeyError, AttributeError):
        return []
    return [progress(steps)] if all(isinstance(word, str) for step in steps for word in step) else []
