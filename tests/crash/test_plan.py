"""The planner in every state that a kill can leave, with every combination of facts that can hold there.

The lives are those of the crash scenarios, recorded by record_lives.py. Nothing is started here.
"""

from __future__ import annotations

import os
import typing
from functools import cache
from itertools import chain
from typing import Any

import pytest

from holdfast.model import events as ev
from holdfast.model.record import Record
from holdfast.model.status import PARKED, Status, check_move
from holdfast.runner.plan.facts import Facts
from holdfast.runner.plan.planner import plan
from holdfast.runner.plan.step import (
    AnswerRequest,
    EndTask,
    ForgetRequest,
    IntendStop,
    Interrupt,
    Journal,
    Leave,
    OpenAttempts,
    OpenChore,
    PostNotice,
    Report,
    SaveContext,
    Step,
    WriteInterruptFile,
)
from tests.crash.reachable import FrozenMemory, Situation, calm, facts_of, read_life, situations
from tests.crash.record_lives import LIVES, path_of
from tests.crash.scenarios import SCENARIOS
from tests.crash.simulated import SimulatedRunner

STEPS: frozenset[type[Record]] = frozenset(typing.get_args(Step))
AFTER_END = (Leave, EndTask, AnswerRequest, ForgetRequest, Report)
#: A pipeline of four stages needs fewer from its start to its end.
MOST_STEPS = 250
NAMES = [scenario.name for scenario in SCENARIOS]
#: These lives have every kind of step; the rest is looked at if one is missing.
VARIED = ("takeover_lost", "approval", "packet")
VARIED_FIRST = [*VARIED, *(name for name in NAMES if name not in VARIED)]


def test_every_scenario_is_recorded() -> None:
    """Record them with `python -m tests.crash.record_lives`."""
    assert sorted(os.listdir(LIVES)) == sorted(f"{name}.jsonl" for name in NAMES)


@pytest.mark.req("PKT-13", "PKT-21")
@pytest.mark.parametrize("name", NAMES)
def test_the_planner_knows_a_legal_step_in_every_situation(name: str) -> None:
    assert steps_in(name) <= STEPS


def test_every_step_is_chosen_in_some_situation() -> None:
    """The test above checks all choices; this one stops when each kind of step was chosen."""
    missing = set(STEPS)
    for situation in chain.from_iterable(situations(read_life(path_of(name))) for name in VARIED_FIRST):
        missing -= Walk(situation).choose()
        if not missing:
            break
    assert missing == set()


@pytest.mark.req("PKT-21")
@pytest.mark.parametrize("name", NAMES)
def test_a_runner_that_follows_the_planner_comes_to_rest_from_every_situation(name: str) -> None:
    """It never loops: it waits for a person or the queue, or ends the task."""
    for situation in situations(read_life(path_of(name))):
        runner = SimulatedRunner(situation)
        taken: list[Step] = []
        while not taken or not isinstance(taken[-1], Leave):
            assert len(taken) < MOST_STEPS, f"{situation.name}: {taken[-5:]}"
            taken.append(runner.take_step())
        assert runner.task.has_ended or runner.task.status in PARKED


@cache
def steps_in(name: str) -> frozenset[type[Any]]:
    """Plan in every situation of a scenario's life. Returns the kinds of steps that were chosen."""
    chosen: set[type[Any]] = set()
    for situation in situations(read_life(path_of(name))):
        chosen |= Walk(situation).check()
    return frozenset(chosen)


class Walk:
    """One situation, and the planner's choice for all facts that can hold in it."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.task, self.now = situation.fold(), situation.now
        self.chosen: set[type[Any]] = set()
        #: Records that were checked: many facts lead to the same one.
        self._checked: set[str] = set()

    def check(self) -> set[type[Any]]:
        before = contents(self.task)
        for facts in facts_of(self.task):
            self._check_choice(facts)
        assert contents(self.task) == before, f"the planner changes the task {self.situation.name}"
        return self.chosen

    def choose(self) -> set[type[Any]]:
        """The same without a look at what the choices lead to."""
        for facts in facts_of(self.task):
            step = self._choose(facts)
            if isinstance(step, SaveContext):
                self._events_of_interrupt(step, facts)
        return self.chosen

    def _check_choice(self, facts: Facts) -> None:
        try:
            step = self._choose(facts)
            events = self._events_of(step, facts)
            if events:
                self._check_record(events)
        except Exception as error:
            error.add_note(f"{self.situation.name}\n{facts}")
            raise

    def _choose(self, facts: Facts) -> Step:
        """The step, which is the same if it is planned again."""
        task, now = self.task, self.now
        step = plan(task, facts, now)
        assert plan(task, facts, now) == step
        assert type(step) in STEPS
        if task.open_executions:
            assert not isinstance(step, OpenAttempts | OpenChore)
        if task.has_ended:
            assert isinstance(step, AFTER_END)
        self.chosen.add(type(step))
        return step

    def _events_of(self, step: Step, facts: Facts) -> tuple[ev.Event, ...]:
        """What the step journals, as far as the planner knows it."""
        match step:
            case Journal() | Interrupt():
                return step.events
            case AnswerRequest():
                return step.effect
            case IntendStop():
                assert step.numbers
                return tuple(
                    ev.StopIntended(attempt=number, intent=step.intent, reason=step.reason)
                    for number in step.numbers
                )
            case SaveContext():
                return self._events_of_interrupt(step, facts)
            case _:
                return ()

    def _events_of_interrupt(self, step: SaveContext, facts: Facts) -> tuple[ev.Event, ...]:
        """Take the four steps of an interrupt."""
        prepared = step.interrupt
        assert isinstance(facts.remembered, FrozenMemory)
        for done, kind in (
            ("is_saved", PostNotice),
            ("is_announced", WriteInterruptFile),
            ("has_file", Interrupt | AnswerRequest),
        ):
            prepared = prepared.evolve(**{done: True})
            following = self._choose(facts.evolve(remembered=facts.remembered.with_interrupt(prepared)))
            assert isinstance(following, kind)
        assert isinstance(following, Interrupt | AnswerRequest)
        return following.events if isinstance(following, Interrupt) else following.effect

    def _check_record(self, events: tuple[ev.Event, ...]) -> None:
        key = repr(events)
        if key in self._checked:
            return
        self._checked.add(key)
        status = self.task.status
        for event in events:
            if isinstance(event, ev.TaskMoved):
                assert event.old == status
                check_move(status, Status(event.new))
                status = Status(event.new)
            elif isinstance(event, ev.StopIntended | ev.AttemptVoid):
                assert self.task.find(event.attempt) is not None
        # A kill may tear the record after any of its events: the rest folds, and there is a step after it.
        for length in range(1, len(events) + 1):
            after = self.situation.fold(*events[:length])
            assert type(plan(after, calm(after), self.now)) in STEPS
        if any(isinstance(event, ev.TaskMoved) for event in events):
            assert after.status is status


def contents(value: Any) -> Any:
    """Everything in a task, to compare it with later."""
    if isinstance(value, Record | str | int | float | None):
        return value
    if isinstance(value, dict):
        return {name: contents(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [contents(inner) for inner in value]
    return {name: contents(inner) for name, inner in vars(value).items()}
