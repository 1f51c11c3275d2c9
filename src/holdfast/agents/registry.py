"""Adapters by name. A module is imported when its agent is used; third parties plug in by entry point.

[project.entry-points."holdfast.agents"]
my-agent = "my_package:ADAPTER"
"""

from __future__ import annotations

from holdfast import plugins as plug_ins
from holdfast.errors import BadPlugin, UnknownAgent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from holdfast.agents.base import Adapter

#: Built-in agents: name → module with an `ADAPTER`. To add an agent, add a package here. Plug-ins cannot use
#: these names.
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
#: Required methods, besides `name` and `capabilities`.
_METHODS = ("launch", "resume", "reader", "classify")


def adapter(name: str) -> Adapter:
    """The adapter with this name. Raises UnknownAgent with the known names, or BadPlugin."""
    module = BUILT_IN.get(name)
    if module is not None:
        # Like importlib.import_module, but without importing importlib.
        return __import__(module, fromlist=("ADAPTER",)).ADAPTER
    for entry in plug_ins.find(plug_ins.AGENTS, name):
        return _load(entry)
    raise UnknownAgent(f"no agent named {name!r}", hint=_hint(name))


def plugins() -> dict[str, str]:
    """Available third-party agents: name → `module:object`. None of them is imported."""
    return {entry.name: entry.value for entry in plug_ins.find(plug_ins.AGENTS) if entry.name not in BUILT_IN}


def names() -> list[str]:
    """All agents, built-in or not."""
    return sorted({*BUILT_IN, *plugins()})


def _load(entry: EntryPoint) -> Adapter:
    """Import third-party code. Any error becomes one sentence."""
    try:
        adapter = entry.load()
    except (
        Exception,
        SystemExit,
    ) as error:  # shown to the user; a traceback would hide the hint
        raise BadPlugin(
            f"the plug-in {entry.name} ({entry.value}) cannot be loaded: {type(error).__name__}: {error}",
            hint=f"fix or remove its package, or exclude it with HOLDFAST_PLUGINS; for details: 'python -c "
            f'"import '
            f"{entry.module}\"'",
        ) from error
    missing = [part for part in ("name", "capabilities", *_METHODS) if not hasattr(adapter, part)]
    if missing:
        raise BadPlugin(
            f"the plug-in {entry.name} ({entry.value}) is not an adapter: it has no {missing[0]}",
            hint="docs/guides/add-an-agent.md has a complete example",
        )
    if adapter.name != entry.name:
        # The journal has the adapter's name, and later runners look it up again.
        raise BadPlugin(
            f"the plug-in {entry.name} ({entry.value}) calls itself {adapter.name!r}",
            hint="the entry point and the adapter must have the same name",
        )
    return adapter


def _hint(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, names(), n=1)
    known = ", ".join(names())
    return f"did you mean {near[0]!r}? Agents: {known}" if near else f"agents: {known}"
