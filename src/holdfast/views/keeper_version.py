"""Whether the running keeper has another version than the installed holdfast, as after an upgrade."""

from __future__ import annotations

from holdfast import __version__
from holdfast.store import lock as locks
from holdfast.store import lock_owner
from holdfast.store.layout import Home

#: Tasks have their own runners, so a restart does not affect them.
FIX = "'holdfast down', then 'holdfast up' (tasks keep running)"


def mismatch(home: Home) -> str:
    """A message if the versions differ; empty if they match or no keeper is running."""
    owner = lock_owner.owner(home.keeper_lock) if locks.is_held(home.keeper_lock) else None
    if owner is None:
        return ""
    version = lock_owner.version(home.keeper_lock)
    if version == __version__:
        return ""
    running = f"holdfast {version}" if version else "an older holdfast"
    return f"keeper {owner.pid} runs {running}, but {__version__} is installed"
