"""Upkeep of a home, every few minutes: remove what killed commands left, and update the task index."""

from __future__ import annotations

import os

from holdfast import clock, ids
from holdfast.errors import HoldfastError
from holdfast.keeper.log import log
from holdfast.store.directories import remove_tree
from holdfast.store.layout import GONE_PREFIX, NEW_PREFIX, Home
from holdfast.store.no_links import is_directory

#: Older staging directories were left by killed commands.
_STALE_STAGING_S = 3600.0


def remove_stale_staging(home: Home) -> None:
    """Remove what commands left that were killed while they created or removed a packet."""
    for name in os.listdir(home.tasks) if is_directory(home.tasks) else ():
        path = os.path.join(home.tasks, name)
        if not _is_ours(name):
            continue
        try:
            age_s = clock.now() - os.lstat(path).st_mtime
        except FileNotFoundError:
            continue
        # A removal needs no grace period: it was final with the rename.
        if age_s > _STALE_STAGING_S or name.startswith(GONE_PREFIX):
            try:
                remove_tree(path)
            except Exception as error:  # logged; one bad directory must not end the keeper
                log(f"cannot remove {path}: {error!r}")


def _is_ours(name: str) -> bool:
    return name.startswith((NEW_PREFIX, GONE_PREFIX)) and ids.is_ulid(name.partition("-")[2])


def write_task_index(home: Home) -> None:
    """Update the file that lists all tasks for programs."""
    from holdfast.pipeline.results import task_index  # used every few minutes

    try:
        task_index.update(home)
    except (OSError, HoldfastError) as error:  # derived: 'holdfast pipeline index' rebuilds it
        log(f"cannot write {home.task_index}: {error!r}")
