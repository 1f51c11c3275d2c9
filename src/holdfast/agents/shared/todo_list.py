"""To-do lists: how far an agent has come with its own, where its CLI has one.

Each CLI has a tool for it, or an item; here is what they have in common. A run writes its list a few times, so that a slow
decoder will do, which also bears half an emoji.
"""

from __future__ import annotations

import json

from holdfast.model import events as ev

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

#: Far beyond what the ingest cuts to, after it has masked the secrets.
_TEXT_CHARS = 4000
#: What was given up is neither done nor to do.
_GIVEN_UP = frozenset({"cancelled", "deleted"})


def progress(steps: Iterable[tuple[str, str]]) -> ev.AgentProgress:
    """How far a list is, from the state and the words of each step. The present one is the one that is `in_progress`."""
    left = [(state, text) for state, text in steps if state not in _GIVEN_UP]
    present = next((text for state, text in left if state == "in_progress" and text), None)
    return ev.AgentProgress(
        steps_completed=sum(state == "completed" for state, _ in left),
        steps_total=len(left),
        current_step=None if present is None else present[:_TEXT_CHARS],
    )


def of_call(given: bytes) -> list[ev.AgentEvent]:
    """What a call says that writes the whole list anew, by its arguments. Never raises: one that cannot be read says nothing."""
    try:
        return of_arguments(json.loads(given))
    except (ValueError, RecursionError):
        return []


def of_arguments(given: Any) -> list[ev.AgentEvent]:
    """The same, decoded: `{"todos": [{"status", "content"}, …]}`; with Gemini it is `description`."""
    try:
        steps = [(entry["status"], entry.get("content") or entry["description"]) for entry in given["todos"]]
    except (TypeError, KeyError, AttributeError):
        return []
    return [progress(steps)] if all(isinstance(word, str) for step in steps for word in step) else []
