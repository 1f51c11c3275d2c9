"""The planner by hand: facts and memory of a runner, and the next step of a story."""

from __future__ import annotations

from typing import Any

from holdfast.model import events as ev
from holdfast.model.request import Request
from holdfast.runner.plan.facts import (
    ExecutionFacts,
    Facts,
    Judgement,
    Now,
    PendingRequest,
    PreparedInterrupt,
    Remembered,
)
from holdfast.runner.plan.planner import plan
from holdfast.runner.plan.step import Journal, SaveContext, Step
from holdfast.watch.verdict import Kind, Verdict
from tests.support.story import BEGIN, Story

NOW = Now(wall=BEGIN + 1000.0, mono=1000.0)


def memory(**known: Any) -> Remembered:
    """The memory of a runner: these values, and defaults for the others."""
    made = Remembered()
    for name, value in known.items():
        assert hasattr(made, name), name
        setattr(made, name, value)
    return made


def cleaned(*numbers: int, **known: Any) -> Remembered:
    """The memory of a runner that cleaned up after these executions."""
    done = set(numbers)
    return memory(files_written=done, leftovers_checked=done, recorders_dismissed=done, **known)


def next_step(story: Story, remembered: Remembered | None = None, *, now: Now = NOW, **observed: Any) -> Step:
    """The step that the planner chooses."""
    return plan(story.task, Facts(remembered=remembered or memory(), **observed), now)


# ── facts ──


def alive(**more: Any) -> ExecutionFacts:
    """A watched process that printed nothing new and needs nothing."""
    return ExecutionFacts(**{"is_watched": True, "read_in_s": 5.0, "judge_in_s": 9.0, **more})


def judgement(kind: Kind = Kind.WORKING, **more: Any) -> Judgement:
    """A judgement that is no reason to stop anything, unless `kind` is."""
    verdict = Verdict(kind=kind, because=f"it is {kind}", look_again_mono=NOW.mono + 40.0)
    values = {"lived_s": 1.0, "silent_s": 0.0, "output_bytes": 0, "verdict": verdict, "is_news": False}
    return Judgement(**{**values, **more})


def request(verb: str, **args: Any) -> PendingRequest:
    """A request `R` in the inbox."""
    asked = Request(id="R", verb=verb, args=args, by="me", at="2027-01-01T00:00:00.000Z")
    return PendingRequest(name="R.json", request=asked)


# ── steps ──

#: What a step says that follows from a failure.
FAILURE = {"cause": "failure"}


def moved(old: str, new: str, reason: str, **more: Any) -> ev.TaskMoved:
    """The event of a move."""
    return ev.TaskMoved(old=old, new=new, reason=reason, **more)


def moving(old: str, new: str, reason: str, *, before: tuple[ev.Event, ...] = (), **more: Any) -> Journal:
    """The step that moves the task."""
    return Journal(events=(*before, moved(old, new, reason, **more)))


def asking(question: str, *, reason: str | None = None, **more: Any) -> SaveContext:
    """The first step of an interrupt; it knows everything that the last one records."""
    return SaveContext(interrupt=PreparedInterrupt(question=question, reason=reason or question, **more))
