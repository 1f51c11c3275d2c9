"""Ended tasks: each is counted once and removed from the queue.

Too many failures in a row interrupt the home.
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.failpoints import failpoint
from holdfast.keeper import charges, loop_state, settings
from holdfast.keeper.log import log
from holdfast.model.status import ENDS, Status
from holdfast.packet import load
from holdfast.queue import claim_owner, sync
from holdfast.queue.local import LocalQueue
from holdfast.store import atomic, audit
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def take_out(
    home: Home, queue: LocalQueue, spec: loop_state.LoopSpec, *, started: Mapping[str, int]
) -> Iterator[str]:
    """Count ended tasks and remove them from the queue. Yields each task once it is removed.

    `started`: task → iteration, as far as known.
    """
    for item in queue.claims():
        if claim_owner.is_external(item.claimed_by):
            continue
        task_id, status = item.task_id, sync.status_of(home, item.task_id)
        end = _end_of(home, task_id) if status in ENDS else None
        if end is None:
            continue
        state = loop_state.read_state(home)
        if state.counted != end:  # otherwise a keeper was killed after this line
            state = charges.end(home, state, task_id, pool=item.pool)
            state = loop_state.after_end(state, str(status), now=clock.now()).evolve(counted=end)
            loop_state.write_state(home, state)
        _ask_person(home, spec, state)
        failpoint("dispatch.counted")
        queue.ack(task_id, owner=item.claimed_by, status=str(status))
        log(f"{task_id} ended: {status}")
        audit.append(
            home,
            {
                "operation": "loop.ended",
                "by": "keeper",
                "task_id": task_id,
                "reason": f"{status}; {state.failures} failed in a row",
                "level": "info" if status == Status.COMPLETED else "warn",
                "iteration": started[task_id] if task_id in started else _iteration_of(home, task_id),
            },
        )
        yield task_id


def _end_of(home: Home, task_id: str) -> str | None:
    """An id for this end of a task (it may be retried and end again); None while its marker is missing."""
    try:
        marker = os.stat(load.wherever(home.packet(task_id)).task_done)
    except FileNotFoundError:
        return None
    return f"{task_id} {marker.st_mtime_ns}"


def _iteration_of(home: Home, task_id: str) -> int:
    """The iteration in which another keeper started the task."""
    try:
        return load.fold(load.wherever(home.packet(task_id))).iteration
    except HoldfastError:
        return 0


def _ask_person(home: Home, spec: loop_state.LoopSpec, state: loop_state.LoopState) -> None:
    if not spec.max_failures or state.failures < spec.max_failures:
        return
    if os.path.lexists(home.interrupt_request):
        return
    # The limit, not the count: tasks that run now may fail, too.
    reason = (
        f"the limit of {spec.max_failures} failed tasks in a row is reached (max_failures in your settings); "
        f"nothing is started until 'holdfast queue resume', or until {home.interrupt_request} is removed"
    )
    atomic.write(home.interrupt_request, f"{reason}\n".encode(), durable=True)
    audit.append(
        home,
        {
            "operation": "home.interrupted",
            "by": "keeper",
            "reason": reason,
            "level": "warn",
            "iteration": state.iteration,
        },
    )
    notify(home, "home_interrupt", reason, status="interrupted")


def notify(home: Home, event: str, reason: str, *, status: str = "") -> None:
    """Post a notice about the home."""
    # Rare, and slow to import.
    from holdfast.notify import outbox
    from holdfast.redact import Redactor

    happened = {"event": event, "task_id": "", "status": status, "reason": reason}
    outbox.post(home, settings.read(home).notify, happened, Redactor(dict(os.environ)))
