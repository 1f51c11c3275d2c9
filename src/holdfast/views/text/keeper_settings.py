"""Whether the running keeper has other settings than this command: then it does not know tasks made here."""

from __future__ import annotations

from holdfast import paths
from holdfast.store import lock as locks
from holdfast.store import lock_owner, process
from holdfast.store.layout import Home

#: A unit that was installed before may not set the variable.
FIX = (
    "'holdfast down', then 'holdfast up' with this XDG_CONFIG_HOME ('holdfast service install' before, if a "
    "unit starts it)"
)


def mismatch(home: Home) -> str:
    """A message if they differ; empty if they match, or no keeper is running."""
    owner = lock_owner.owner(home.keeper_lock) if locks.is_held(home.keeper_lock) else None
    if owner is None or not process.is_alive(owner):
        return ""  # just after a start, the file may still be that of its predecessor
    theirs = lock_owner.trust_dir(home.keeper_lock)
    if theirs is None or paths.is_trust_dir(theirs):
        return ""
    theirs = "".join(char if char.isprintable() else " " for char in theirs)  # an agent can write the file
    return (
        f"the keeper has other settings ({theirs}, not {paths.trust_dir()}): it neither runs nor restarts "
        "tasks that are created with these"
    )


def warning(home: Home) -> str:
    """The same with what to do; empty as well."""
    found = mismatch(home)
    return f"{found}; {FIX}" if found else ""
