"""Requests: apply → event → unlink, in the order of their ids.

A request whose effect is journalled carries its id there, so a runner that was killed between effect and unlink does not
apply it twice.
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError, RequestRefused
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model.request import VERBS, Request
from holdfast.model.status import Status
from holdfast.model.task import Task
from holdfast.packet import inbox
from holdfast.runner.ledger import Ledger
from holdfast.runner.people import marks
from holdfast.runner.stage import finish
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def serve(ledger: Ledger) -> bool:
    """Answer every request in the inbox. Returns whether there was any."""
    names = inbox.names(ledger.packet)
    for name in names:
        _answer(ledger, name)
    return bool(names)


def _answer(ledger: Ledger, name: str) -> None:
    request = inbox.read(ledger.packet, name)
    request_id = name.removesuffix(".json")
    if ledger.task.requests.get(request_id) is not None:
        pass  # answered before, and only the unlink was lost
    elif isinstance(request, HoldfastError):
        ledger.record(ev.RequestRefused(request=request_id, verb="?", by="?", reason=str(request)))
    else:
        try:
            # An effect that was journalled without its answer is not applied again.
            effect = () if request_id in ledger.task.requests else _apply(ledger, request)
            answer = ev.RequestApplied(request=request.id, verb=request.verb, by=request.by)
            if request.verb in ("resume", "retry", "approve"):
                marks.put_aside(ledger.packet, request.id)
            if request.verb == "retry":
                # Files have to change too; while the request lies in the inbox, somebody will see to it.
                ledger.record(*effect)
                failpoint("requests.run_opened")
                _reopen(ledger, request)
                effect = ()
            ledger.record(*effect, answer)
        except RequestRefused as error:
            ledger.record(
                ev.RequestRefused(request=request.id, verb=request.verb, by=request.by, reason=str(error))
            )
    failpoint("requests.answered")
    atomic.remove(os.path.join(ledger.packet.inbox, name))
    failpoint("requests.unlinked")


def _apply(ledger: Ledger, request: Request) -> tuple[ev.Event, ...]:
    """The events that carry out a request. Raises RequestRefused."""
    handler = _HANDLERS.get(request.verb)
    if handler is None:
        raise RequestRefused(f"no such request: {request.verb} (there are {', '.join(VERBS)})")
    return handler(ledger, request)


def _stop(ledger: Ledger, request: Request) -> tuple[ev.Event, ...]:
    return _end_by(ledger, request, intent="stop", status=Status.KILLED, default=f"stopped by {request.by}")


def _interrupt(ledger: Ledger, request: Request) -> tuple[ev.Event, ...]:
    if ledger.task.status is Status.INTERRUPTED:
        raise RequestRefused("it is interrupted already")
    if ledger.task.status is Status.QUEUED:
        raise RequestRefused("it is queued and has not started")
    if ledger.task.status is Status.COMPLETING and _is_past_work(ledger.task):
        raise RequestRefused("its work is done, and it is completing")
    if any(attempt.intent_name == "stop" for attempt in ledger.task.present):
        raise RequestRefused("it is being stopped")
    default = f"interrupted by {request.by}"
    return _end_by(ledger, request, intent="interrupt", status=Status.INTERRUPTED, default=default)


def _is_past_work(task: Task) -> bool:
    """No check and no stage is left: only its last files are written."""
    return task.chore is None and task.spec.pipeline is None and task.spec.quality is None


def _end_by(
    ledger: Ledger, request: Request, *, intent: str, status: Status, default: str
) -> tuple[ev.Event, ...]:
    task = ledger.task
    if task.has_ended:
        raise RequestRefused(f"it has ended already: {task.status}")
    reason = ledger.redact(_text(request, "reason") or default)
    if task.present:
        return tuple(
            ev.StopIntended(attempt=attempt.number, intent=intent, reason=reason, request=request.id)
            for attempt in task.present
        )
    interrupt = reason if status is Status.INTERRUPTED else None
    return (ledger.moved(status, reason, request=request.id, interrupt=interrupt),)


def _resume(ledger: Ledger, request: Request) -> tuple[ev.Event, ...]:
    task = ledger.task
    if task.status not in (Status.INTERRUPTED, Status.WAITING):
        raise RequestRefused(f"it is {task.status}, not interrupted or waiting")
    if task.approval is not None:
        raise RequestRefused(
            f"it waits for approval of {task.approval}; 'holdfast approve' or 'holdfast reject' answers"
        )
    answer = _text(request, "message")
    return (_go_on(ledger, request, reason=f"resumed by {request.by}", answer=answer),)


def _go_on(ledger: Ledger, request: Request, *, reason: str, answer: str | None) -> ev.TaskMoved:
    """Back to work; through the queue, where the task came from there: it goes first, once a slot is free."""
    task = ledger.task
    is_queued = task.spec.queue is not None and task.status is Status.INTERRUPTED
    new = Status.QUEUED if is_queued else Status.SPAWNING
    return ledger.moved(new, reason, request=request.id, answer=answer)


def _start(ledger: Ledger, request: Request) -> tuple[ev.Event, ...]:
    if ledger.task.status is not Status.QUEUED:
        raise RequestRefused(f"it is {ledger.task.status}, not queued")
    iteration = request.args.get("iteration")
    return (
        ledger.moved(
            Status.SPAWNING,
            f"started by {request.by}",
            request=request.id,
            iteration=iteration if isinstance(iteration, int) else 0,
        ),
    )


def _done(ledger: Ledger, request: Request) -> tuple[ev.Event, ...]:
    """A worker outside has claimed it and done it."""
    if ledger.task.status is not Status.QUEUED:
        raise RequestRefused(f"it is {ledger.task.status}, not queued")
    reason = ledger.redact(_text(request, "reason") or f"done outside, says {request.by}")
    return (ledger.moved(Status.COMPLETED, reason, request=request.id),)


def _approve(ledger: Ledger, request: Request) -> tuple[ev.Event, ...]:
    stage = _awaited(ledger)
    given = ev.ApprovalGiven(stage=stage, by=request.by, request=request.id)
    reason = f"{stage} approved by {request.by}"
    return (given, _go_on(ledger, request, reason=reason, answer=_text(request, "message")))


def _reject(ledger: Ledger, request: Request) -> tuple[ev.Event, ...]:
    stage, why = _awaited(ledger), _text(request, "message")
    reason = f"{stage} rejected by {request.by}" + (f": {ledger.redact(why)}" if why else "")
    return (ledger.moved(Status.KILLED, reason, request=request.id),)


def _awaited(ledger: Ledger) -> str:
    task = ledger.task
    if task.status is not Status.INTERRUPTED or task.approval is None:
        raise RequestRefused(f"it is {task.status} and waits for no approval")
    return task.approval


def _retry(ledger: Ledger, request: Request) -> tuple[ev.Event, ...]:
    task = ledger.task
    if not task.has_ended:
        raise RequestRefused(f"it has not ended: it is {task.status}")
    from_stage = _text(request, "from")
    names = [stage.name for stage in task.spec.stages]
    if from_stage is not None and from_stage not in names:
        raise RequestRefused(f"it has no stage {from_stage!r}; its stages are {', '.join(names)}")
    if from_stage is None and task.stage is None:
        raise RequestRefused(
            f"all its stages are done; name the one to run again with --from ({', '.join(names)})"
        )
    if not isinstance(request.args.get("env"), dict):
        raise RequestRefused("the request has no environment (env), and the task's own is deleted at its end")
    deadline_s = _deadline(request)
    return (
        ev.RunOpened(
            run=task.run + 1,
            request=request.id,
            from_stage=from_stage,
            deadline_s=deadline_s[0] if deadline_s else None,
            sets_deadline=deadline_s is not None,
            answer=_text(request, "message"),
            is_queued=task.spec.queue is not None,
        ),
    )


def _reopen(ledger: Ledger, request: Request) -> None:
    env = request.args.get("env")
    if isinstance(env, dict):
        atomic.write_json(ledger.packet.env, env, durable=True)
    finish.reopen(ledger)


def _deadline(request: Request) -> tuple[float | None] | None:
    text = _text(request, "deadline")
    if text is None:
        return None
    try:
        return (None if text == "none" else clock.parse_duration(text),)
    except ValueError as error:
        raise RequestRefused(f"deadline: {error}") from error


def _text(request: Request, name: str) -> str | None:
    value: Any = request.args.get(name)
    if value is not None and not isinstance(value, str):
        raise RequestRefused(f"{name} must be text")
    return value


_HANDLERS: dict[str, Callable[[Ledger, Request], tuple[ev.Event, ...]]] = {
    "start": _start,
    "stop": _stop,
    "interrupt": _interrupt,
    "resume": _resume,
    "retry": _retry,
    "approve": _approve,
    "reject": _reject,
    "done": _done,
}
