"""Steps between the task and people: answers to their requests, interrupts, reports."""

from __future__ import annotations

import os

from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model.request import Request, rules
from holdfast.model.status import Status
from holdfast.runner.perform.context import Context
from holdfast.runner.perform.record import announce, announce_refusal, redacted
from holdfast.runner.plan.step import (
    AnswerRequest,
    EndTakeover,
    ForgetRequest,
    Interrupt,
    PostNotice,
    Report,
    SaveContext,
    WriteInterruptFile,
)
from holdfast.runner.stage import markers
from holdfast.runner.user_files import context as saved_context
from holdfast.runner.user_files import interrupt_files, notices, reports
from holdfast.store import atomic
from holdfast.store.digest import sha256


def answer_request(context: Context, step: AnswerRequest) -> None:
    """Apply a request, record the answer, remove the request; in this order, so none is applied twice."""
    ledger, request = context.ledger, step.request
    if step.refusal is not None or request is None:
        ledger.record(
            ev.RequestRefused(
                request=step.name.removesuffix(".json"),
                verb=request.verb if request is not None else "?",
                by=request.by if request is not None else "?",
                reason=step.refusal or "",
            )
        )
        if request is not None:
            announce_refusal(ledger, request, step.refusal or "")
    else:
        effect = redacted(step.effect, ledger.redact)
        if _is_answer(step):
            interrupt_files.put_aside(ledger.packet, request.id)
        if request.verb == "retry":
            effect = _open_run(context, request, effect)
        answer = ev.RequestApplied(request=request.id, verb=request.verb, by=request.by)
        _record(context, effect, answer)
        if _is_answer(step):
            # A person may have fixed what was missing: look for it again.
            context.remembered.preflight_run, context.remembered.start_failure = 0, None
        if request.verb == "applied":
            failpoint("apply.recorded")
            ledger.show_work_applied()
            reports.write(ledger)
    failpoint("step.answer_request")
    for name in step.junk:
        atomic.remove(os.path.join(ledger.packet.inbox, name))
    _forget(context, step.name)


def _is_answer(step: AnswerRequest) -> bool:
    if step.request is None:
        return False
    hands_back = step.request.verb == "handback" and any(isinstance(e, ev.TaskMoved) for e in step.effect)
    return hands_back or rules(step.request.verb).answers


def end_takeover(context: Context, step: EndTakeover) -> None:
    """Sweep by the marker alone, because the parent is gone. Few processes are left, so this may block."""
    from holdfast.runner.attempt import end_agents
    from holdfast.runner.attempt.sweep import as_list

    ledger, taken = context.ledger, context.ledger.task.open_takeover
    assert taken is not None
    killed = end_agents.end_takeover(ledger.packet, taken)
    ledger.record(
        ev.TakeoverEnded(attempt=step.number, how="lost", killed=tuple(as_list(killed, ledger.redact)))
    )
    failpoint("step.end_takeover")


def _record(context: Context, events: tuple[ev.Event, ...], *more: ev.Event) -> None:
    """Record events. An interrupt is shown and announced with the report, which comes next."""
    ledger, remembered = context.ledger, context.remembered
    interrupts = any(isinstance(event, ev.TaskMoved) and event.new == Status.INTERRUPTED for event in events)
    ledger.record(*events, *more, shown=not interrupts)
    # What was prepared for an interrupt is done, or does not apply any more.
    remembered.interrupting, remembered.is_reported = None, False
    if interrupts:
        remembered.unannounced = events
    else:
        announce(ledger, events)


def _open_run(context: Context, request: Request, effect: tuple[ev.Event, ...]) -> tuple[ev.Event, ...]:
    """Files change too; while the request lies in the inbox, a successor completes this."""
    env = request.args.get("env")
    captured = atomic.encode_json(env)
    context.ledger.record(
        *(
            event.evolve(env_sha256=sha256(captured)) if isinstance(event, ev.RunOpened) else event
            for event in effect
        )
    )
    failpoint("requests.run_opened")
    if isinstance(env, dict):
        atomic.write(context.ledger.packet.env, captured, durable=True)
    markers.reopen(context.ledger)
    context.load_environment()
    return ()


def forget_request(context: Context, step: ForgetRequest) -> None:
    """Remove a request that was applied. The files of an ended task may still have to show it."""
    ledger = context.ledger
    if ledger.task.has_ended and ledger.task.applied is not None:
        ledger.show_work_applied()
        reports.write(ledger)
    _forget(context, step.name)


def _forget(context: Context, name: str) -> None:
    atomic.remove(os.path.join(context.ledger.packet.inbox, name))
    failpoint("step.forget_request")


def save_context(context: Context, step: SaveContext) -> None:
    """Save what a person needs in order to answer."""
    question = context.ledger.redact(step.interrupt.question)
    saved_context.save(context.ledger, question, cause=step.interrupt.cause, approval=step.interrupt.approval)
    failpoint("step.save_context")
    context.remembered.interrupting = step.interrupt.evolve(is_saved=True)


def post_notice(context: Context, step: PostNotice) -> None:
    """Leave a notice for every matching rule."""
    reason = context.ledger.redact(step.reason)
    ledger = context.ledger
    notices.post(ledger, step.event, reason, cause=step.cause, approval=step.approval, asked_by=step.asked_by)
    failpoint("step.post_notice")
    if step.attempt:
        context.remembered.refusals_announced.add(step.attempt)
    elif context.remembered.interrupting is not None:
        context.remembered.interrupting = context.remembered.interrupting.evolve(is_announced=True)


def write_interrupt_file(context: Context, step: WriteInterruptFile) -> None:
    """Write the interrupt file."""
    interrupt_files.write(context.ledger.packet, context.ledger.redact(step.question), approval=step.approval)
    failpoint("step.write_interrupt_file")
    if context.remembered.interrupting is not None:
        context.remembered.interrupting = context.remembered.interrupting.evolve(has_file=True)


def interrupt(context: Context, step: Interrupt) -> None:
    """Record the interrupt."""
    _record(context, redacted(step.events, context.ledger.redact))
    failpoint("step.interrupt")


def report(context: Context, step: Report) -> None:
    """Write the reports, then show and announce the interrupt: its readers open the summary next."""
    reports.write(context.ledger)
    failpoint("step.report")
    context.ledger.show()
    announce(context.ledger, context.remembered.unannounced)
    context.remembered.is_reported, context.remembered.unannounced = True, ()
