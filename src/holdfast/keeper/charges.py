"""What queue tasks cost, counted against the budgets of a day: each dollar once, when the keeper sees it.

For every task that it started, the keeper notes what is counted already (`LoopState.charged`, and
`unpriced_calls` for calls without a price), until the task has ended. So what an interrupted task has used
counts at once, and what it uses later, or after a retry, counts then.
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.keeper import allowance
from holdfast.keeper.loop_state import LoopState
from holdfast.model.status import ENDS
from holdfast.packet import load
from holdfast.store.index_rows import stamp_of
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from holdfast.model.task import Task


def begin(state: LoopState, task: Task) -> LoopState:
    """The state after a task was started. One that was interrupted is known already."""
    task_id = task.spec.task_id
    if task_id in state.charged:
        return state
    return state.evolve(
        charged={**state.charged, task_id: _before(task)},
        unpriced_calls={**state.unpriced_calls, task_id: len(task.spending.unpriced)},
    )


def end(home: Home, state: LoopState, task_id: str, *, pool: str) -> LoopState:
    """The state after a claimed task ended: the rest of its cost is counted, and it is forgotten."""
    try:
        task = load.fold(load.wherever(home.packet(task_id)))
    except HoldfastError:
        return _forget(state, task_id)
    return _forget(_add(state, task, pool=pool), task_id)


def update(
    home: Home, state: LoopState, *, claimed: AbstractSet[str], seen: dict[str, str] | None = None
) -> LoopState:
    """The state with what started tasks have used since. A task whose row another process removed from the
    queue, because it was interrupted, and that has ended since, is forgotten.

    `seen`: stamps of manifests whose content is counted, from call to call. Most tasks rest, and there may be
    hundreds.
    """
    seen, now = {} if seen is None else seen, clock.now()
    for task_id in state.charged:
        # Before it is read: what comes later changes it.
        stamp = stamp_of(home.manifest_of(task_id), now)
        if not stamp or seen.get(task_id) != stamp:
            state, is_at_rest = _updated(home, state, task_id, claimed=claimed)
            seen[task_id] = stamp if is_at_rest else ""
    for task_id in seen.keys() - state.charged.keys():
        del seen[task_id]
    return state


def _updated(
    home: Home, state: LoopState, task_id: str, *, claimed: AbstractSet[str]
) -> tuple[LoopState, bool]:
    """The state with what one task has used since, and whether that is all until its manifest changes."""
    packet = load.wherever(home.packet(task_id))
    try:
        manifest = load.read_manifest(packet)
        # The file is cheap to read, but an agent can write it: what it costs is in the journal.
        usage = manifest["usage"]
        is_known = (
            (usage["cost_usd"] or 0.0) <= state.charged[task_id]
            and (usage.get("unpriced_calls") or 0) == state.unpriced_calls.get(task_id, 0)
        )  # fmt: skip
        if manifest["status"] not in ENDS and is_known:
            return state, True
        task = load.fold(packet)
    except (HoldfastError, KeyError, TypeError):
        return (state if os.path.isdir(packet.path) else _forget(state, task_id)), False
    state = _add(state, task, pool=task.spec.queue.pool if task.spec.queue is not None else "default")
    if task.status in ENDS:
        return (state if task_id in claimed else _forget(state, task_id)), False
    return state, True


def _add(state: LoopState, task: Task, *, pool: str) -> LoopState:
    """The state with what a task has cost since; a new call without a price marks its pool."""
    task_id, now = task.spec.task_id, clock.now()
    calls, known_calls = len(task.spending.unpriced), state.unpriced_calls.get(task_id, 0)
    if calls != known_calls:
        state = state.evolve(unpriced_calls={**state.unpriced_calls, task_id: calls})
    if calls > known_calls:
        today = clock.local_day(now)
        state = state.evolve(unpriced={**state.unpriced, allowance.HOME: today, pool: today})
    total_usd, known_usd = task.total_usage.cost_usd or 0.0, state.charged.get(task_id, _before(task))
    if total_usd <= known_usd:
        return state
    spent, day = allowance.add(
        state.spent, state.spent_day, pool=pool, cost_usd=total_usd - known_usd, now=now
    )
    return state.evolve(spent=spent, spent_day=day, charged={**state.charged, task_id: total_usd})


def _before(task: Task) -> float:
    """What it had cost before its last retry: that was counted at its end."""
    return task.spending.usage_before_retry.cost_usd or 0.0


def _forget(state: LoopState, task_id: str) -> LoopState:
    return state.evolve(
        charged={name: usd for name, usd in state.charged.items() if name != task_id},
        unpriced_calls={name: calls for name, calls in state.unpriced_calls.items() if name != task_id},
    )
