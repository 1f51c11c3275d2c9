"""Steps that only write the journal: decided moves and intents."""

from __future__ import annotations

from holdfast import clock
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model.request import Request
from holdfast.model.status import Status
from holdfast.packet import inbox
from holdfast.redact import Redactor
from holdfast.runner.ledger import Ledger
from holdfast.runner.perform.context import Context
from holdfast.runner.plan.step import IntendStop, Journal
from holdfast.runner.user_files import notices
from holdfast.store import audit

#: Moves after which a queued task needs no slot, or wants one.
_FREE_A_SLOT = frozenset({Status.WAITING, Status.INTERRUPTED, Status.QUEUED})
_LEVELS = {
    Status.CRASHED: "warn",
    Status.HUNG: "warn",
    Status.INTERRUPTED: "warn",
    Status.TIMEOUT: "warn",
    Status.FAILED: "error",
    Status.ABANDONED: "error",
}
#: A shorter wait for a limit is not announced.
_LONG_WAIT_S = 60.0
#: Fields of events that may quote a file, a command line or an agent.
_TEXTS = ("reason", "interrupt", "detail", "diff")


def journal(context: Context, step: Journal) -> None:
    """Record what is decided, and announce the moves."""
    events = redacted(step.events, context.ledger.redact)
    context.ledger.record(*events)
    failpoint("step.journal")
    if any(_voids_markers(event) for event in events):
        from holdfast.runner.stage import markers

        markers.drop_void(context.ledger)
    announce(context.ledger, events)


def _voids_markers(event: ev.Event) -> bool:
    """Whether stages that were done are not done any more."""
    is_refusal = isinstance(event, ev.GateJudged) and not event.passed
    return isinstance(event, ev.RepairPlanned) or is_refusal


def intend_stop(context: Context, step: IntendStop) -> None:
    """Record the intent; the signals follow."""
    reason = context.ledger.redact(step.reason)
    context.ledger.record(
        *(
            ev.StopIntended(attempt=number, intent=step.intent, reason=reason, cause=step.cause)
            for number in step.numbers
        )
    )
    failpoint("step.intend_stop")


def redacted(events: tuple[ev.Event, ...], redact: Redactor) -> tuple[ev.Event, ...]:
    """The events without secrets in their texts."""
    return tuple(_redacted(event, redact) for event in events)


def _redacted(event: ev.Event, redact: Redactor) -> ev.Event:
    texts = {name: getattr(event, name) for name in _TEXTS if name in event.all_fields}
    return event.evolve(**{name: redact(text) for name, text in texts.items() if text})


def announce(ledger: Ledger, events: tuple[ev.Event, ...]) -> None:
    """After a move is journalled and shown: tell the keeper about a free slot, and the audit."""
    for event in events:
        if not isinstance(event, ev.TaskMoved):
            continue
        if ledger.task.spec.queue is not None and event.new in _FREE_A_SLOT:
            inbox.ring_keeper(ledger.packet.home)
        _tell_wait(ledger, event)
        audit.append(
            ledger.packet.home,
            {
                "operation": "task.moved",
                "task_id": ledger.packet.task_id,
                "by": "runner",
                "old": event.old,
                "new": event.new,
                "reason": event.reason,
                "level": _LEVELS.get(Status(event.new), "info"),
                **({"iteration": ledger.task.iteration} if ledger.task.iteration else {}),
                **({"answer": ledger.redact(event.answer)} if event.answer else {}),
            },
        )


def announce_refusal(ledger: Ledger, request: Request, reason: str) -> None:
    """Tell the audit, which has the request already, that it was refused."""
    audit.append(
        ledger.packet.home,
        {
            "operation": "request.refused",
            "task_id": ledger.packet.task_id,
            "by": request.by,
            "asker": request.asker,
            "request": request.id,
            "reason": f"{request.verb}: {ledger.redact(reason)}",
        },
    )


def _tell_wait(ledger: Ledger, event: ev.TaskMoved) -> None:
    """A notice if the task waits long for a limit of its agent, so that users know until when."""
    if event.new != Status.WAITING or event.wake_at is None:
        return
    if not ledger.task.is_at_limit:
        return
    if clock.parse_iso(event.wake_at) - clock.now() < _LONG_WAIT_S:
        return
    until = clock.local(event.wake_at, "%Y-%m-%d %H:%M %Z")
    notices.post(ledger, "waiting", f"until {until}; {event.reason}")
