"""What a person's request changes: the events that carry it out, or why it is refused. Pure.

An effect carries the request's id in the journal, so a runner that was killed between effect and answer does
not apply it twice.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import HoldfastError, RequestRefused
from holdfast.model import events as ev
from holdfast.model.permissions import PROFILES
from holdfast.model.request import REQUESTS, Request, rules
from holdfast.model.status import INTERRUPTED_BY, Cause, Status
from holdfast.model.task import Task
from holdfast.runner.plan import repair
from holdfast.runner.plan.facts import Facts, PendingRequest
from holdfast.runner.plan.moves import ask, moved_event
from holdfast.runner.plan.step import AnswerRequest, EndTakeover, ForgetRequest, Interrupt, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def plan_answer(task: Task, facts: Facts, pending: PendingRequest) -> Step:
    """The next step for the oldest request."""
    name, request = pending.name, pending.request
    request_id = name.removesuffix(".json")
    if task.requests.get(request_id) is not None:
        return ForgetRequest(name=name)  # answered before; only the unlink is missing
    if isinstance(request, HoldfastError):
        more = f" (and {len(pending.junk)} more files like it)" if pending.junk else ""
        return AnswerRequest(name=name, request=None, refusal=f"{request}{more}", junk=pending.junk)
    if request_id in task.requests:
        return AnswerRequest(name=name, request=request)  # applied before; only the answer is missing
    taken = task.open_takeover
    if taken is not None and not pending.is_taken_over and request.verb != "handback":
        return EndTakeover(number=taken.attempt)  # first: what it left running must not meet the next agent
    try:
        return _apply(task, facts, pending, request)
    except RequestRefused as error:
        return AnswerRequest(name=name, request=request, refusal=str(error))


def _apply(task: Task, facts: Facts, pending: PendingRequest, request: Request) -> Step:
    name, handler = pending.name, _EFFECTS.get(request.verb)
    if handler is None:
        raise RequestRefused(f"no such request: {request.verb} (one of {', '.join(REQUESTS)})")
    if request.verb == "interrupt" and not task.stoppable:
        _check_interrupt(task)
        reason = _reason(request, f"{INTERRUPTED_BY}{request.by}")
        step = ask(task, facts, reason, cause=_cause(request), request=request.id)
        if not isinstance(step, Interrupt):
            return step
        return AnswerRequest(name=name, request=request, effect=step.events)
    if pending.is_taken_over and rules(request.verb).waits_for_handback and task.open_takeover is not None:
        raise RequestRefused(_taken_over_text(task.open_takeover))
    effect = handler(task, request)
    if request.verb == "takeover" and not pending.is_claimed:
        raise RequestRefused("the command that asked for it is gone")
    if pending.objection:
        raise RequestRefused(pending.objection)
    if pending.amended:
        effect = tuple(
            event.evolve(amended=pending.amended) if isinstance(event, ev.RunOpened) else event
            for event in effect
        )
    return AnswerRequest(name=name, request=request, effect=effect)


def _stop(task: Task, request: Request) -> tuple[ev.Event, ...]:
    _check_not_ended(task)
    # All of them: after a record that was torn, the same request finds some that are stopped.
    is_second = bool(task.stoppable) and all(each.intent_name == "stop" for each in task.stoppable)
    reason = _reason(request, _stop_reason(task) or f"stopped by {request.by}")
    kills = is_second or request.args.get("now") is True
    intents = _intend(task, request, "stop", reason, kills=kills)
    return intents or (moved_event(task, Status.KILLED, reason, request=request.id),)


def _stop_reason(task: Task) -> str:
    """The reason of the stop that is under way: a second stop without one does not replace it."""
    intents = (execution.intent for execution in task.stoppable)
    return next((each.reason for each in intents if each is not None and each.intent == "stop"), "")


def _interrupt(task: Task, request: Request) -> tuple[ev.Event, ...]:
    _check_interrupt(task)
    return _intend(task, request, "interrupt", _reason(request, f"{INTERRUPTED_BY}{request.by}"))


def _check_interrupt(task: Task) -> None:
    _check_not_ended(task)
    if task.interrupted is not None:
        raise RequestRefused("it is already interrupted")
    if task.status is Status.QUEUED:
        raise RequestRefused("it is queued and has not started")
    if task.status is Status.COMPLETING and task.is_past_work:
        raise RequestRefused("its work is done, and it is completing")
    if any(execution.intent_name == "stop" for execution in task.stoppable):
        raise RequestRefused("it is being stopped")


def _check_not_ended(task: Task) -> None:
    if task.has_ended:
        raise RequestRefused(f"it has already ended: {task.status}")


def _intend(
    task: Task, request: Request, intent: str, reason: str, *, kills: bool = False
) -> tuple[ev.Event, ...]:
    cause = _cause(request)
    intents = [
        ev.StopIntended(attempt=execution.number, intent=intent, reason=reason, cause=cause, kills=kills)
        for execution in task.stoppable
    ]
    # Only the last one has the request: a record that was torn before it is applied again as a whole.
    return (*intents[:-1], intents[-1].evolve(request=request.id)) if intents else ()


def _resume(task: Task, request: Request) -> tuple[ev.Event, ...]:
    if task.interrupted is None and task.waiting is None:
        raise RequestRefused(f"it is {task.status}, not interrupted or waiting")
    if task.interrupted is not None and task.interrupted.approval is not None:
        raise RequestRefused(
            f"it waits for approval of {task.interrupted.approval}; answer with 'holdfast approve' or "
            "'holdfast reject'"
        )
    message = _text(request, "message")
    onward = _continue(task, request, reason=f"resumed by {request.by}", answer=message)
    return (*repair.by_person(task, message=message), onward)


def _continue(task: Task, request: Request, *, reason: str, answer: str | None) -> ev.TaskMoved:
    """Back to work. A queued task goes through the queue again, ahead of the others."""
    is_queued = task.spec.queue is not None and task.interrupted is not None
    new = Status.QUEUED if is_queued else Status.SPAWNING
    return moved_event(task, new, reason, request=request.id, answer=answer)


def _start(task: Task, request: Request) -> tuple[ev.Event, ...]:
    _check_queued(task)
    iteration = request.args.get("iteration")
    number = iteration if isinstance(iteration, int) else 0
    return (
        moved_event(task, Status.SPAWNING, f"started by {request.by}", request=request.id, iteration=number),
    )


def _done(task: Task, request: Request) -> tuple[ev.Event, ...]:
    """An external worker claimed it and did it."""
    _check_queued(task)
    reason = _reason(request, f"done by {request.by}, outside holdfast")
    return (moved_event(task, Status.COMPLETED, reason, request=request.id),)


def _applied(task: Task, request: Request) -> tuple[ev.Event, ...]:
    """A person merged its work into the project: a fact for the records, which changes no state."""
    if not task.has_ended and task.interrupted is None:
        raise RequestRefused(f"it is {task.status}, and its work goes on")
    count = request.args.get("files")
    return (
        ev.WorkApplied(
            how=_text(request, "how") or "merge",
            branch=_text(request, "branch"),
            commit=_text(request, "commit"),
            files=count if isinstance(count, int) else 0,
            applied_at=request.at,
            by=request.by,
            request=request.id,
        ),
    )


def _takeover(task: Task, request: Request) -> tuple[ev.Event, ...]:
    """A person goes on in the agent's session; the command that asks holds its locks."""
    _check_not_ended(task)
    if task.interrupted is None:
        raise RequestRefused(f"it is {task.status}, not interrupted")
    number, stage = request.args.get("attempt"), _text(request, "stage") or ""
    if not isinstance(number, int) or number <= task.last_number or task.stage_spec(stage) is None:
        raise RequestRefused("its attempts or stages have changed meanwhile")
    return (
        ev.TakeoverStarted(
            attempt=number,
            attempt_id=_text(request, "attempt_id") or "",
            stage=stage,
            agent=_text(request, "agent") or "",
            session_id=_text(request, "session_id") or "",
            by=request.by,
            request=request.id,
        ),
    )


def _handback(task: Task, request: Request) -> tuple[ev.Event, ...]:
    """The person's program has ended: the agent goes on, or the task stays interrupted."""
    takeover, args = task.takeover, request.args
    if takeover is None or takeover.started.attempt != args.get("attempt") or task.interrupted is None:
        raise RequestRefused("it is not taken over any more")
    ended = takeover.ended
    if ended is not None and ended.request != request.id:
        raise RequestRefused(f"its takeover has ended already: {ended.how}")
    keeps = args.get("keep") is True or task.interrupted.approval is not None
    count, code, killed = args.get("files"), args.get("exit_code"), args.get("killed")
    end = ev.TakeoverEnded(
        attempt=takeover.started.attempt,
        how="kept" if keeps else "handed_back",
        exit_code=code if isinstance(code, int) else None,
        exit_signal=_text(request, "exit_signal"),
        files=count if isinstance(count, int) else 0,
        diff=_text(request, "diff") or "",
        killed=tuple(killed) if isinstance(killed, list) else (),  # pyright: ignore[reportUnknownArgumentType]
        by=request.by,
        request=request.id,
    )
    if keeps:
        return (end,)
    message = _text(request, "message")
    onward = _continue(task, request, reason=f"handed back by {request.by}", answer=message)
    # A record that was torn after its first event is completed.
    return (*repair.by_person(task, message=message), *(() if ended is not None else (end,)), onward)


def _taken_over_text(taken: ev.TakeoverStarted) -> str:
    return f"{taken.by or 'a person'} has taken over its session, and hands it back by ending {taken.agent}"


def _check_queued(task: Task) -> None:
    if task.status is not Status.QUEUED:
        raise RequestRefused(f"it is {task.status}, not queued")


def _approve(task: Task, request: Request) -> tuple[ev.Event, ...]:
    stage = _awaiting_approval(task, request)
    given = ev.ApprovalGiven(stage=stage, by=request.by, request=request.id)
    reason = f"{stage} approved by {request.by}"
    return (given, _continue(task, request, reason=reason, answer=_text(request, "message")))


def _reject(task: Task, request: Request) -> tuple[ev.Event, ...]:
    stage, message = _awaiting_approval(task, request), _text(request, "message")
    reason = f"{stage} rejected by {request.by}" + (f": {message}" if message else "")
    return (moved_event(task, Status.KILLED, reason, request=request.id),)


def _awaiting_approval(task: Task, request: Request) -> str:
    if task.interrupted is None or task.interrupted.approval is None:
        raise RequestRefused(f"it is {task.status} and waits for no approval")
    stage, args = task.interrupted.approval, request.args
    # A reply may come late: it must not approve the next stage.
    if args.get("interrupt", task.interrupts) != task.interrupts or args.get("stage", stage) != stage:
        raise RequestRefused(f"the answer is for an earlier question; it waits for approval of {stage}")
    return stage


def _retry(task: Task, request: Request) -> tuple[ev.Event, ...]:
    if not task.has_ended:
        raise RequestRefused(f"it has not ended: it is {task.status}")
    from_stage = _text(request, "from")
    names = [stage.name for stage in task.spec.stages]
    if from_stage is not None and from_stage not in names:
        raise RequestRefused(f"it has no stage {from_stage!r}; its stages are {', '.join(names)}")
    if from_stage is None and task.stage is None and not task.awaits_ci:
        raise RequestRefused(
            f"all its stages are done; name the one to run again with --from ({', '.join(names)})"
        )
    if not isinstance(request.args.get("env"), dict):
        raise RequestRefused("the request has no environment (env), and the task's own is deleted at its end")
    deadline_s, message = _deadline(request), _text(request, "message")
    # Before the run: a record that was torn in between is applied again as a whole.
    return (
        *(repair.by_person(task, message=message) if from_stage is None else ()),
        ev.RunOpened(
            run=task.run + 1,
            request=request.id,
            from_stage=from_stage,
            deadline_s=deadline_s[0] if deadline_s else None,
            sets_deadline=deadline_s is not None,
            permissions=_permissions(request),
            answer=message,
            is_queued=task.spec.queue is not None,
            resets=request.args.get("reset") is True,
        ),
    )


def _deadline(request: Request) -> tuple[float | None] | None:
    text = _text(request, "deadline")
    if text is None:
        return None
    try:
        return (None if text == "none" else clock.parse_duration(text),)
    except ValueError as error:
        raise RequestRefused(f"deadline: {error}") from error


def _permissions(request: Request) -> str | None:
    profile = _text(request, "permissions")
    if profile is not None and profile not in PROFILES:
        raise RequestRefused(f"permissions must be one of {', '.join(PROFILES)}")
    return profile


def _reason(request: Request, default: str) -> str:
    return _text(request, "reason") or default


def _cause(request: Request) -> str:
    """A request can only say that the home goes down."""
    return Cause.DOWN if request.args.get("cause") == Cause.DOWN else ""


def _text(request: Request, name: str) -> str | None:
    value: Any = request.args.get(name)
    if value is not None and not isinstance(value, str):
        raise RequestRefused(f"{name} must be text")
    return value


_EFFECTS: dict[str, Callable[[Task, Request], tuple[ev.Event, ...]]] = {
    "start": _start,
    "stop": _stop,
    "interrupt": _interrupt,
    "resume": _resume,
    "retry": _retry,
    "approve": _approve,
    "reject": _reject,
    "done": _done,
    "applied": _applied,
    "takeover": _takeover,
    "handback": _handback,
}
