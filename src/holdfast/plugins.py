"""Plug-ins: parts of other packages, found by their entry points. HOLDFAST_PLUGINS selects them: unset means
all, empty means none, `a,b` means these two (docs/guides/add-an-agent.md).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: Groups of entry points, one for each kind of plug-in.
AGENTS, CHECKS, NOTIFIERS = "holdfast.agents", "holdfast.gates", "holdfast.notifiers"


def find(group: str, name: str | None = None) -> list[EntryPoint]:
    """The plug-ins of a group, or those with this name. None is imported.

    Ask only for names that are not built in: reading entry points takes as long as a whole command.
    """
    chosen = os.environ.get("HOLDFAST_PLUGINS")
    if chosen is not None and not chosen.strip():
        return []
    from importlib.metadata import entry_points

    allowed = None if chosen is None else {word.strip() for word in chosen.split(",")}
    found = entry_points(group=group) if name is None else entry_points(group=group, name=name)
    return [entry for entry in found if allowed is None or entry.name in allowed]
