"""The options of a new task for the queue: priority, pool, dependencies, earliest time."""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import UsageError
from holdfast.model.spec import QueueSpec
from holdfast.packet import load
from holdfast.queue.engine import parse_priority, weights
from holdfast.queue.work_item import parse_time
from holdfast.store.layout import Home
from holdfast.views.create import pools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

#: An earliest time that is longer ago is a mistake; a script may compute one and be slow.
_PAST_S = 60.0


def read(
    home: Home,
    settings: dict[str, Any],
    *,
    priority: str | None,
    pool: str | None,
    after: Sequence[str],
    not_before: str | None,
) -> QueueSpec:
    """From options and the project's settings. Raises UsageError, NotFound."""
    try:
        weight = parse_priority(
            "medium" if priority is None else priority, weights(settings.get("priorities", ()))
        )
    except ValueError as error:
        raise UsageError(f"--priority: {error}", hint="for example --priority high") from error
    try:
        earliest = None if not_before is None else parse_time(not_before, now=clock.now())
    except ValueError as error:
        raise UsageError(
            f"--not-before: {error}", hint="for example --not-before 22:00, or --not-before +2h"
        ) from error
    if earliest is not None and clock.parse_iso(earliest) < clock.now() - _PAST_S:
        raise UsageError(
            f"--not-before: {clock.local(earliest, '%Y-%m-%d %H:%M %Z')} is in the past",
            hint="leave it out to start as soon as there is a slot, or give a later time: --not-before 22:00",
        )
    if pool:
        pools.check_new(pool)
    # A completed task may already be archived.
    ids = tuple(load.find(home, text, archived=True).task_id for text in after)
    return QueueSpec(priority=weight, pool=pool or "default", after=ids, not_before=earliest)
