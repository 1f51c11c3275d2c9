"""What queue tasks cost, counted against the budgets of a day: each dollar once, when the keeper sees it.

For every task that it started, the keeper notes what is counted already (`LoopState.charged`), until the task
has ended. So what an interrupted task has used counts at once, and what it uses later, or after a retry,
counts then.
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.keeper import allowance
from holdfast.keeper.loop_state import LoopState
from holdfast.model.status import ENDS
from holdfast.packet import load
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from holdfast.model.task import Task


def begin(state: LoopState, task: Task) -> LoopState:
    """The state after a task was started. One that was interrupted is known already."""
    charged = {task.spec.task_id: _before(task), **state.charged}
    return state.evolve(charged=charged)


def end(home: Home, state: LoopState, task_id: str, *, pool: str) -> LoopState:
    """The state after a claimed task ended: the rest of its cost is counted, and it is forgotten."""
    try:
        task = load.fold(load.wherever(home.packet(task_id)))
    except HoldfastError:
        return _forget(state, task_id)
    return _forget(_add(state, task, pool=pool), task_id)


def update(home: Home, state: LoopState, *, claimed: AbstractSet[str]) -> LoopState:
    """The state with what started tasks have used since. A task whose row another process removed from the
    queue, because it was interrupted, and that has ended since, is forgotten."""
    for task_id, known_usd in state.charged.items():
        packet = load.wherever(home.packet(task_id))
        try:
            manifest = load.read_manifest(packet)
            # The file is cheap to read, but an agent can write it: what it costs is in the journal.
            usage = manifest["usage"]
            is_known = (usage["cost_usd"] or 0.0) <= known_usd and not (
                usage.get("unpriced_calls") and allowance.HOME not in _unknown(state)
            )
            if manifest["status"] not in ENDS and is_known:
                continue
            task = load.fold(packet)
        except (HoldfastError, KeyError, TypeError):
            if not os.path.isdir(packet.path):
                state = _forget(state, task_id)
            continue
        state = _add(state, task, pool=task.spec.queue.pool if task.spec.queue is not None else "default")
        if task.status in ENDS and task_id not in claimed:
            state = _forget(state, task_id)
    return state


def _add(state: LoopState, task: Task, *, pool: str) -> LoopState:
    task_id, total_usd = task.spec.task_id, task.total_usage.cost_usd or 0.0
    if task.spending.unpriced and not {allowance.HOME, pool} <= _unknown(state):
        today = clock.local_day(clock.now())
        state = state.evolve(unpriced={**state.unpriced, allowance.HOME: today, pool: today})
    known_usd = state.charged.get(task_id, _before(task))
    if total_usd <= known_usd:
        return state
    spent, day = allowance.add(
        state.spent, state.spent_day, pool=pool, cost_usd=total_usd - known_usd, now=clock.now()
    )
    return state.evolve(spent=spent, spent_day=day, charged={**state.charged, task_id: total_usd})


def _unknown(state: LoopState) -> frozenset[str]:
    return allowance.unknown_today(state.unpriced, now=clock.now())


def _before(task: Task) -> float:
    """What it had cost before its last retry: that was counted at its end."""
    return task.spending.usage_before_retry.cost_usd or 0.0


def _forget(state: LoopState, task_id: str) -> LoopState:
    return state.evolve(charged={name: usd for name, usd in state.charged.items() if name != task_id})
