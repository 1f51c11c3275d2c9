"""Moves are checked against the table, and an interrupt takes four steps in a fixed order."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import InvalidMove
from holdfast.model import events as ev
from holdfast.model.status import MOVES, Status
from holdfast.runner.plan import moves
from holdfast.runner.plan.facts import Facts, PreparedInterrupt
from holdfast.runner.plan.step import Interrupt, Journal, PostNotice, SaveContext, Step, WriteInterruptFile
from tests.support.planning import asking, memory, moved
from tests.support.story import Story

DROPPED = ev.ChoreFailed(stage="a_run", attempt=1, kind="gate", reason="r", counts=False)


def in_state(status: Status) -> Story:
    return Story(status=str(status))


@pytest.mark.req("PKT-13")
@pytest.mark.parametrize("old", Status)
def test_a_move_is_made_only_if_the_table_has_it(old: Status) -> None:
    task = in_state(old).task
    for new in MOVES[old]:
        assert moves.move(task, new, "why") == Journal(events=(moved(old, new, "why"),))
    for new in set(Status) - MOVES[old]:
        with pytest.raises(InvalidMove, match=f"from {old} to {new}"):
            moves.move(task, new, "why")


def test_the_events_before_a_move_are_in_the_same_record() -> None:
    step = moves.move(in_state(Status.RUNNING).task, Status.KILLED, "why", before=(DROPPED,))
    assert step == Journal(events=(DROPPED, moved("running", "killed", "why")))


def test_a_move_after_another_one_in_the_same_record_is_checked_from_there() -> None:
    task = in_state(Status.RUNNING).task
    assert moves.moved_event(task, Status.SPAWNING, "why", old=Status.CRASHED) == moved(
        "crashed", "spawning", "why"
    )
    with pytest.raises(InvalidMove):
        moves.moved_event(task, Status.SPAWNING, "why", old=Status.COMPLETED)


# ── interrupts ──


def steps_of_interrupt(story: Story, question: str, **more: Any) -> list[Step]:
    """Ask again after every step, with what the performer remembers of it."""
    steps: list[Step] = []
    remembered = memory()
    while not steps or not isinstance(steps[-1], Interrupt):
        step = moves.ask(story.task, Facts(remembered=remembered), question, **more)
        steps.append(step)
        prepared = remembered.interrupting
        match step:
            case SaveContext():
                remembered.interrupting = step.interrupt.evolve(is_saved=True)
            case PostNotice():
                assert prepared is not None
                remembered.interrupting = prepared.evolve(is_announced=True)
            case WriteInterruptFile():
                assert prepared is not None
                remembered.interrupting = prepared.evolve(has_file=True)
            case _:
                assert isinstance(step, Interrupt)
    return steps


@pytest.mark.req("INT-3", "INT-4")
def test_an_interrupt_saves_the_context_posts_the_notice_leaves_the_file_and_is_recorded() -> None:
    steps = steps_of_interrupt(in_state(Status.RUNNING), "which one?")
    assert steps == [
        asking("which one?"),
        PostNotice(event="interrupted", reason="which one?"),
        WriteInterruptFile(question="which one?"),
        Interrupt(
            events=(moved("running", "interrupted", "which one?", interrupt="which one?", marked=True),)
        ),
    ]


def test_an_interrupt_keeps_its_reason_its_approval_its_request_and_the_events_before_it() -> None:
    *_, last = steps_of_interrupt(
        in_state(Status.SPAWNING),
        "may it?",
        reason="impl is next",
        approval="impl",
        request="R",
        before=(DROPPED,),
    )
    interrupted = moved(
        "spawning",
        "interrupted",
        "impl is next",
        interrupt="may it?",
        approval="impl",
        request="R",
        marked=True,
    )
    assert last == Interrupt(events=(DROPPED, interrupted))


@pytest.mark.parametrize("prepared", range(3))
def test_another_question_starts_over(prepared: int) -> None:
    done = dict.fromkeys(("is_saved", "is_announced", "has_file")[: prepared + 1], True)
    old = PreparedInterrupt(question="old?", reason="old?", **done)
    facts = Facts(remembered=memory(interrupting=old))
    step = moves.ask(in_state(Status.RUNNING).task, facts, "new?", request="R")
    assert step == asking("new?", request="R")
    # Also if it happens to ask the same.
    step = moves.ask(in_state(Status.RUNNING).task, facts, "old?", request="R")
    assert step == asking("old?", request="R")


@pytest.mark.parametrize("status", [Status.QUEUED, Status.COMPLETED, Status.INTERRUPTED])
def test_a_state_that_cannot_be_interrupted_refuses_the_record(status: Status) -> None:
    prepared = PreparedInterrupt(question="q", reason="q", is_saved=True, is_announced=True, has_file=True)
    with pytest.raises(InvalidMove):
        moves.plan_interrupt(in_state(status).task, prepared)
