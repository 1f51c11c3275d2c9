"""The tasks of items: created in the queue, looked at, and sent back."""

from __future__ import annotations

import os

from holdfast.errors import HoldfastError, NotPossible
from holdfast.failpoints import failpoint
from holdfast.fanout.decide import Child
from holdfast.model import events as ev
from holdfast.model import permissions
from holdfast.model.fan_out import LABEL
from holdfast.model.record import Record
from holdfast.model.soundness import UNREADABLE
from holdfast.model.spec import TaskSpec, short_name
from holdfast.model.status import ENDS, Status
from holdfast.model.usage import Usage
from holdfast.packet import create, environment, inbox, load, sealed
from holdfast.queue import sync
from holdfast.redact import Redactor
from holdfast.runner_process import start_runner
from holdfast.store import admitted, audit, index, journal
from holdfast.workspace import task_worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.fan_out import Row
    from holdfast.model.spec import Limits
    from holdfast.store.layout import Home, Packet


class ItemTask(Record):
    """A task that the fan-out creates."""

    shared: TaskSpec
    title: str
    prompt: str
    #: Its part of the budgets.
    part: float


def packet_of(parent: Packet, row: Row) -> Packet:
    """The packet of an item's task, whether it exists or not."""
    return parent.home.packet(row.task)


def read_child(parent: Packet, row: Row) -> Child | None:
    """The task of an item; None if it does not exist. One that was removed or archived has ended.

    Raises NotPossible if no command has made it.
    """
    packet = packet_of(parent, row)
    if not os.path.isdir(packet.path):
        return Child(status=Status.KILLED, is_settled=True, is_gone=True) if row.made else None
    if not admitted.is_admitted(packet):
        # The agent of another item may have planted it, as if it had ended.
        raise _another(packet)
    try:
        manifest = load.read_manifest(packet)
        if manifest["status"] not in ENDS:
            return Child(status=manifest["status"])
        is_settled = load.is_settled(packet, manifest) and not inbox.names(packet)
        task = sealed.fold_admitted(packet) if is_settled else None
    except HoldfastError:
        return Child(status=UNREADABLE)
    if task is None or not task.has_ended:
        return Child(status=manifest["status"])
    return Child(status=task.status, is_settled=True, run=task.run, reason=task.reason)


def create_task(parent: Packet, task_id: str, item_task: ItemTask) -> None:
    """Create a task of the fan-out in the queue. Safe to run again after a kill.

    Raises NotPossible if another task has its id, or if it was archived.
    """
    home, packet = parent.home, parent.home.packet(task_id)
    if load.wherever(packet).path != packet.path:
        raise NotPossible(f"its task is archived: 'holdfast archive --restore {task_id}' brings it back")
    if not os.path.isdir(packet.path):
        env = _environment(parent)
        title = Redactor(env.get("env", {}), item_task.shared.env)(item_task.title)
        child = item_task.shared.evolve(
            task_id=task_id,
            task_name=short_name(title),
            goal=title,
            labels={**item_task.shared.labels, LABEL: parent.task_id},
            parent=parent.task_id,
            base=task_worktree.branch_of(parent),
            limits=_part(item_task.shared.limits, item_task.part),
        )
        create.create(
            home, child, prompt=item_task.prompt.encode("utf-8", "replace"), env=env, status=Status.QUEUED
        )
        failpoint("fanout.created")
    elif load.fold(packet).spec.parent != parent.task_id:
        raise _another(packet)
    enqueue(home)


def _another(packet: Packet) -> NotPossible:
    hint = f"'holdfast rm --force {packet.task_id}', or use another --id"
    return NotPossible(f"there is another task {packet.task_id}, which is not of this fan-out", hint=hint)


def reader_of(shared: TaskSpec) -> TaskSpec:
    """The same task, but it may change nothing."""
    stages = tuple(
        stage.evolve(writes=False, permissions=permissions.READ if stage.permissions else "")
        for stage in shared.stages
    )
    return shared.evolve(stages=stages, quality=None)


def _part(limits: Limits, part: float) -> Limits:
    """Limits with a part of the budgets."""
    usd, tokens = limits.budget_usd, limits.budget_tokens
    return limits.evolve(
        budget_usd=None if usd is None else usd * part,
        budget_tokens=None if tokens is None else max(1, int(tokens * part)),
    )


def enqueue(home: Home) -> None:
    """Add new packets to the queue, and wake its keeper. (The runner of the parent starts a lost one.)"""
    sync.open_queue(home).close()
    inbox.ring_keeper(home)


def send_back(parent: Packet, row: Row) -> str:
    """Let the agent of an item continue, with what is wrong with its work. Returns the id of the request."""
    packet = packet_of(parent, row)
    task = load.fold(packet)
    args: dict[str, Any] = {"env": _environment(parent), "message": row.message}
    args["from"] = task.spec.stages[-1].name
    if grant := granted(_first_limits(packet), task.total_usage):
        args["set"] = [f"{field}={amount}" for field, amount in grant.items()]
    request = inbox.drop(packet, "retry", args, by=f"the fan-out {parent.task_id}")
    failpoint("fanout.sent_back")
    entry = {"operation": "request.retry", "task_id": packet.task_id, "by": request.by}
    audit.append(packet.home, {**entry, "asker": request.asker, "request": request.id})
    wake(packet)
    return request.id


def refusal(packet: Packet, request_id: str) -> str:
    """Why a request was refused; empty if it was not."""
    answer = load.fold(packet).requests.get(request_id)
    return answer.reason if isinstance(answer, ev.RequestRefused) else ""


def granted(limits: Limits, used: Usage) -> dict[str, str]:
    """The budgets of work that goes back: what is left. If nothing is left, a person has retried the fan-out,
    and that grants the whole part again, as the retry of any task does."""
    rest = left_of(limits, used)
    return left_of(limits, Usage(cost_usd=0.0)) if _is_spent(rest) else rest


def left_of(limits: Limits, used: Usage) -> dict[str, str]:
    """What is left of the budgets of a task. A `retry` would grant them anew."""
    rest: dict[str, str] = {}
    if limits.budget_usd is not None and used.cost_usd is not None:
        rest["budgets.budget_usd"] = f"{max(0.0, limits.budget_usd - used.cost_usd):.6f}"
    tokens = (used.input_tokens or 0) + (used.output_tokens or 0)
    if limits.budget_tokens is not None:
        rest["budgets.budget_tokens"] = str(max(0, limits.budget_tokens - tokens))
    return rest


def is_spent(packet: Packet) -> bool:
    """Whether a task has used up its part of the budgets."""
    return _is_spent(left_of(_first_limits(packet), load.fold(packet).total_usage))


def _is_spent(rest: dict[str, str]) -> bool:
    return any(float(amount) <= 0 for amount in rest.values())


def _first_limits(packet: Packet) -> Limits:
    """The limits with which a task was created; those of a retry are what was left of them."""
    for _, event in journal.read(packet.journal):
        if isinstance(event, ev.TaskCreated):
            return TaskSpec.from_json(event.spec).limits
        break
    return load.fold(packet).spec.limits


def wake(packet: Packet) -> None:
    """Make sure that a runner answers the requests of a task, and that the keeper starts it."""
    if not inbox.ring(packet):
        start_runner(packet)


def relist(packet: Packet) -> None:
    """A task that was sent back has not ended any more: list it, and queue it."""
    index.update(packet.home, load.read_manifest(packet))
    enqueue(packet.home)


def _environment(parent: Packet) -> dict[str, Any]:
    """The environment of the parent, which its tasks get too. Raises CorruptFile if an agent changed it."""
    return environment.read_captured(parent, load.fold(parent).env_sha256)
