"""Adapters by name. A module is imported when its agent is used; third parties plug in by entry point."""

from __future__ import annotations

import importlib
import os

from holdfast.errors import UnknownAgent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.agents.base import Adapter

#: Built in: name → module with an `ADAPTER`.
BUILT_IN = {
    "claude": "holdfast.agents.claude",
    "codex": "holdfast.agents.codex",
    "command": "holdfast.agents.command",
    "copilot": "holdfast.agents.copilot",
    "gemini": "holdfast.agents.gemini",
    "opencode": "holdfast.agents.opencode",
    "pi": "holdfast.agents.pi",
    "scripted": "holdfast.agents.scripted",
}
ENTRY_POINTS = "holdfast.agents"


def adapter(name: str) -> Adapter:
    """The adapter of this name. Raises UnknownAgent with the names that exist."""
    module = BUILT_IN.get(name)
    if module is not None:
        return importlib.import_module(module).ADAPTER
    found = _plugin(name)
    if found is None:
        raise UnknownAgent(f"no agent is called {name!r}", hint=_hint(name))
    return found


def _plugin(name: str) -> Adapter | None:
    chosen = os.environ.get("HOLDFAST_PLUGINS")
    if chosen is not None and name not in chosen.split(","):
        return None
    # Only when the name is unknown: looking for entry points costs as much as all of a command.
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS, name=name):
        return entry.load()
    return None


def _hint(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, BUILT_IN, n=1)
    known = ", ".join(sorted(BUILT_IN))
    return f"did you mean {near[0]!r}? Known are {known}" if near else f"known are {known}"
