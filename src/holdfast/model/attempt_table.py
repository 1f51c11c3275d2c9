"""The attempt table: what the files of an attempt's directory mean together (docs/contracts/attempt.md)."""

from __future__ import annotations

from enum import StrEnum


class Reading(StrEnum):
    """What a runner finds in an attempt's directory."""

    STARTING = "starting"
    RUNNING = "running"
    EXITED = "exited"
    SPAWN_FAILED = "spawn_failed"
    NEVER_STARTED = "never_started"
    #: Recorder gone without a record: the agent is watched by its identity, its end is `lost`.
    ORPHANED = "orphaned"


def read_table(*, lock_held: bool, has_identity: bool, has_exit: bool) -> Reading:
    """The six rows of the table: what lock, identity and exit record mean together. Read the lock before the files."""
    if has_exit:
        return Reading.EXITED if has_identity else Reading.SPAWN_FAILED
    if has_identity:
        return Reading.RUNNING if lock_held else Reading.ORPHANED
    return Reading.STARTING if lock_held else Reading.NEVER_STARTED
