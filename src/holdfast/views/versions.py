"""Whether the keeper that lives is of the holdfast that is installed: an upgrade replaces files, not processes."""

from __future__ import annotations

from holdfast import __version__
from holdfast.store import lock as locks
from holdfast.store.layout import Home

#: Tasks have runners of their own and notice nothing of it.
CURE = "'holdfast down', then 'holdfast up' (tasks go on meanwhile)"


def difference(home: Home) -> str:
    """In words; empty where there is none, and where no keeper lives."""
    owner = locks.owner(home.keeper_lock) if locks.is_held(home.keeper_lock) else None
    if owner is None:
        return ""
    version = locks.version(home.keeper_lock)
    if version == __version__:
        return ""
    of = f"holdfast {version}" if version else "an older holdfast"
    return f"keeper {owner.pid} is of {of}, installed is {__version__}"
