"""Adapters by name. A module is imported when its agent is used; third parties plug in by entry point.

    [project.entry-points."holdfast.agents"]
    my-agent = "my_package:ADAPTER"

HOLDFAST_PLUGINS chooses among them: unset is all, empty is none, `a,b` is these two. (docs/guides/add-an-agent.md)
"""

from __future__ import annotations

import os

from holdfast.errors import BadPlugin, UnknownAgent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from holdfast.agents.base import Adapter

#: Built in: name → module with an `ADAPTER`. A plug-in cannot take one of these names.
BUILT_IN = {
    "claude": "holdfast.agents.claude.adapter",
    "codex": "holdfast.agents.codex.adapter",
    "command": "holdfast.agents.command",
    "copilot": "holdfast.agents.copilot.adapter",
    "gemini": "holdfast.agents.gemini.adapter",
    "opencode": "holdfast.agents.opencode.adapter",
    "pi": "holdfast.agents.pi.adapter",
    "scripted": "holdfast.agents.scripted",
}
ENTRY_POINTS = "holdfast.agents"
#: What the runner calls; `name` and `capabilities` beside it.
_METHODS = ("launch", "resume", "reader", "classify")


def adapter(name: str) -> Adapter:
    """The adapter of this name. Raises UnknownAgent with the names that exist, BadPlugin for one that is none."""
    module = BUILT_IN.get(name)
    if module is not None:
        # As importlib.import_module does it, without loading that.
        return __import__(module, fromlist=("ADAPTER",)).ADAPTER
    # Only when the name is unknown: looking for entry points costs as much as all of a command.
    for entry in _entry_points(name):
        return _load(entry)
    raise UnknownAgent(f"no agent is called {name!r}", hint=_hint(name))


def plugins() -> dict[str, str]:
    """The agents of third parties that may be used here: name → `module:object`. None of them is imported."""
    return {entry.name: entry.value for entry in _entry_points() if entry.name not in BUILT_IN}


def names() -> list[str]:
    """All agents, built in or not."""
    return sorted({*BUILT_IN, *plugins()})


def _entry_points(name: str | None = None) -> list[EntryPoint]:
    chosen = os.environ.get("HOLDFAST_PLUGINS")
    if chosen is not None and not chosen.strip():
        return []
    from importlib.metadata import entry_points

    allowed = None if chosen is None else {word.strip() for word in chosen.split(",")}
    found = entry_points(group=ENTRY_POINTS) if name is None else entry_points(group=ENTRY_POINTS, name=name)
    return [entry for entry in found if allowed is None or entry.name in allowed]


def _load(entry: EntryPoint) -> Adapter:
    """Somebody else's code: whatever it does when it is imported is told in one sentence."""
    try:
        found = entry.load()
    except (
        Exception,
        SystemExit,
    ) as error:  # the person who installed it sees it; a traceback would hide what to do
        raise BadPlugin(
            f"the plug-in {entry.name} ({entry.value}) cannot be loaded: {type(error).__name__}: {error}",
            hint=f"mend or remove its package, or leave it out with HOLDFAST_PLUGINS; 'python -c \"import "
            f"{entry.module}\"' says more",
        ) from error
    missing = [part for part in ("name", "capabilities", *_METHODS) if not hasattr(found, part)]
    if missing:
        raise BadPlugin(
            f"the plug-in {entry.name} ({entry.value}) is no adapter: it has no {missing[0]}",
            hint="docs/guides/add-an-agent.md shows a whole one",
        )
    if found.name != entry.name:
        # What the journal says is looked up again by every runner to come.
        raise BadPlugin(
            f"the plug-in {entry.name} ({entry.value}) calls itself {found.name!r}",
            hint="give the entry point and the adapter one name",
        )
    return found


def _hint(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, names(), n=1)
    known = ", ".join(names())
    return f"did you mean {near[0]!r}? Known are {known}" if near else f"known are {known}"
