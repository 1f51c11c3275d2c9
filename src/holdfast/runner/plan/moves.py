"""Moves of a task, checked against the table, and the steps of an interrupt. Pure."""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.model.status import Status, check_move
from holdfast.model.task import Task
from holdfast.runner.plan.facts import Facts, PreparedInterrupt
from holdfast.runner.plan.step import Interrupt, Journal, PostNotice, SaveContext, Step, WriteInterruptFile


def moved_event(
    task: Task,
    new: Status,
    reason: str,
    *,
    cause: str = "",
    old: Status | None = None,
    wake_at: str | None = None,
    request: str | None = None,
    answer: str | None = None,
    iteration: int = 0,
) -> ev.TaskMoved:
    """The event of a move. `old` is given if the move follows another one in the same record."""
    old = task.status if old is None else old
    check_move(old, new)
    return ev.TaskMoved(
        old=old,
        new=new,
        reason=reason,
        cause=cause,
        wake_at=wake_at,
        request=request,
        answer=answer,
        iteration=iteration,
    )


def move(
    task: Task, new: Status, reason: str, *, cause: str = "", before: tuple[ev.Event, ...] = ()
) -> Journal:
    """Take the task to another state; `before` are events of the same record."""
    return Journal(events=(*before, moved_event(task, new, reason, cause=cause)))


def ask(
    task: Task,
    facts: Facts,
    question: str,
    *,
    reason: str | None = None,
    cause: str = "",
    approval: str | None = None,
    request: str | None = None,
    before: tuple[ev.Event, ...] = (),
) -> Step:
    """Interrupt the task and ask a person."""
    prepared = facts.remembered.interrupting
    # Only a request finds one prepared: its own, or that of another cause, which it replaces.
    if prepared is None or prepared.request != request:
        prepared = PreparedInterrupt(
            question=question,
            reason=reason or question,
            cause=cause,
            approval=approval,
            request=request,
            before=before,
        )
    return plan_interrupt(task, prepared)


def plan_interrupt(task: Task, prepared: PreparedInterrupt) -> Step:
    """Save the context, post the notice, write the interrupt file, then record the move.

    The file comes last before the move: while it is there the task is not resumed by itself. After a kill in
    between, the next runner starts over, so a notice may be posted twice but is never missing.
    """
    if not prepared.is_saved:
        return SaveContext(interrupt=prepared)
    if not prepared.is_announced:
        return PostNotice(
            event=str(Status.INTERRUPTED),
            reason=prepared.question,
            cause=prepared.cause,
            approval=prepared.approval,
            asked_by="person" if prepared.request is not None else task.asker_of(prepared.question),
        )
    if not prepared.has_file:
        return WriteInterruptFile(question=prepared.question, approval=prepared.approval)
    check_move(task.status, Status.INTERRUPTED)
    interrupted = ev.TaskMoved(
        old=task.status,
        new=Status.INTERRUPTED,
        reason=prepared.reason,
        cause=prepared.cause,
        interrupt=prepared.question,
        request=prepared.request,
        approval=prepared.approval,
        marked=True,
    )
    return Interrupt(events=(*prepared.before, interrupted))
