"""The attempt table: what the files of an attempt's directory mean together (docs/contracts/attempt.md)."""

from __future__ import annotations

from holdfast.model.names import Names


class Reading(Names):
    """The state of an attempt, read from its directory."""

    STARTING = "starting"
    RUNNING = "running"
    EXITED = "exited"
    SPAWN_FAILED = "spawn_failed"
    NEVER_STARTED = "never_started"
    #: The recorder died without an exit record: the agent is watched by its identity, its outcome is `lost`.
    ORPHANED = "orphaned"


def read_table(*, lock_held: bool, has_identity: bool, has_exit: bool) -> Reading:
    """The state for lock, identity and exit record. The caller must read the lock before the files."""
    if has_exit:
        return Reading.EXITED if has_identity else Reading.SPAWN_FAILED
    if has_identity:
        return Reading.RUNNING if lock_held else Reading.ORPHANED
    return Reading.STARTING if lock_held else Reading.NEVER_STARTED
