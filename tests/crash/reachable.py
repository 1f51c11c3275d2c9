"""The states that a kill can leave a task in, and every combination of facts that can hold in each of them.

A life is the journal of a task. A kill leaves any beginning of it: a situation. An agent may also have ended
in another way than in this life, a gate may have refused, or a stop may be intended: more situations.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.attempt_table import Reading
from holdfast.model.execution import Execution
from holdfast.model.fold import CRASH_LIMIT, apply
from holdfast.model.process import Exit
from holdfast.model.request import REQUESTS, Request
from holdfast.model.status import Status
from holdfast.model.task import Task
from holdfast.runner.plan.facts import (
    ChoreResult,
    ExecutionFacts,
    Facts,
    Judgement,
    Now,
    PendingRequest,
    PreflightProblem,
    Remembered,
    StartFailure,
    WorkspaceFacts,
)
from holdfast.watch.verdict import Kind, Verdict

Life = tuple[tuple[str, ev.Event], ...]
MONO = 1_000_000.0
LATER = MONO + 0.5


# ── situations ──

OUTCOMES = (
    "success", "failed", "crashed", "lost", "spawn_failed", "unknown_session", "quota", "auth", "max_turns",
)  # fmt: skip
#: Intents of a person or the runner, of a limit, and of what the watch concludes about an agent.
BY_PERSON = ("stop", "interrupt")
BY_LIMIT = ("deadline", "output", "timeout")
BY_WATCH = ("hang", "limit", "input", "session", "linger", "budget")
CHECKS = ("headings", "scope", "gate_broken")


class Situation(NamedTuple):
    """What a journal holds at some moment."""

    name: str
    events: Life

    def fold(self, *more: ev.Event) -> Task:
        """The task after these additional events."""
        task, at = Task(), ""
        for at, event in self.events:
            apply(task, event, at)
        for event in more:
            apply(task, event, at)
        return task

    @property
    def now(self) -> Now:
        """A moment after the last event."""
        return Now(wall=clock.parse_iso(self.events[-1][0]) + 5.0, mono=MONO)

    def but(self, name: str, *last: ev.Event) -> Situation:
        """The same until the last event, and then these."""
        at = self.events[-1][0]
        return Situation(f"{self.name}, {name}", (*self.events[:-1], *((at, event) for event in last)))

    def then(self, name: str, *more: ev.Event) -> Situation:
        """The same, and then these."""
        return self.but(name, self.events[-1][1], *more)


def read_life(path: str) -> Life:
    """The events of a journal, with their times."""
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return tuple((line["at"], ev.decode(line)) for line in lines)


def situations(life: Life) -> Iterator[Situation]:
    """Every beginning of a life, and what could have happened instead of its last event or after it."""
    heard: set[tuple[int, str]] = set()
    for length in range(1, len(life) + 1):
        last = life[length - 1][1]
        if isinstance(last, ev.AgentEvent):
            if (last.attempt, last.type) in heard:
                continue  # one more of a kind that changes nothing for the planner
            heard.add((last.attempt, last.type))
        here = Situation(f"after event {length} ({last.type})", life[:length])
        yield here
        task = here.fold()
        yield from _instead(here, task, last)
        yield from _after(here, task)


def _instead(here: Situation, task: Task, last: ev.Event) -> Iterator[Situation]:
    match last:
        case ev.AttemptEnded():
            execution = task.find(last.attempt)
            assert execution is not None
            outcomes = OUTCOMES if isinstance(execution, Attempt) else OUTCOMES[:4]
            outcomes = ("spawn_failed",) if execution.started is None else outcomes
            for outcome, intent in product(outcomes, ("", *intents_of(execution))):
                stop = ev.StopIntended(attempt=last.attempt, intent=intent, reason="a reason")
                ended = last.evolve(outcome=outcome, exit_signal=9 if outcome == "crashed" else None)
                ended = ended.evolve(exec_errno=2 if outcome == "spawn_failed" else None)
                yield here.but(f"{outcome} {intent}", *([stop] if intent else ()), ended)
        case ev.GateJudged():
            for failed in CHECKS:
                yield here.but(failed, last.evolve(passed=False, failed=failed, reasons=("a reason",)))
        case ev.AttemptSwept():
            yield here.but("unkillable", last.evolve(unkillable=(77,)))
        case _:
            pass


def _after(here: Situation, task: Task) -> Iterator[Situation]:
    for execution in task.open_executions[:1]:
        for intent in intents_of(execution):
            stop = ev.StopIntended(attempt=execution.number, intent=intent, reason="a reason")
            yield here.then(f"{intent} intended", stop)
    hello = ev.RunnerStarted(pid=1, boot_id="boot", start_time=1, version="0")
    yield here.then("crash loop", *[hello] * (CRASH_LIMIT + 1))


def intents_of(execution: Execution) -> tuple[str, ...]:
    """Why it may be stopped. It is judged once its start is journalled, and a chore by its limits alone."""
    if execution.started is None:
        return BY_PERSON
    return (*BY_PERSON, *BY_LIMIT, *(BY_WATCH if isinstance(execution, Attempt) else ()))


# ── facts ──


class FrozenMemory(Remembered):
    """A read-only memory of a runner: the planner is pure."""

    def __init__(self, **known: Any) -> None:
        super().__init__()
        for name, value in {**vars(self), **known}.items():
            kind = {set: frozenset, dict: MappingProxyType}.get(type(value))
            super().__setattr__(name, value if kind is None else kind(value))
        super().__setattr__("_is_frozen", True)

    def __setattr__(self, name: str, value: object) -> None:
        assert "_is_frozen" not in vars(self), f"the planner changes {name}"
        super().__setattr__(name, value)

    def with_interrupt(self, interrupting: object) -> FrozenMemory:
        """The same memory, with an interrupt on its way."""
        known = {name: value for name, value in vars(self).items() if name != "_is_frozen"}
        return FrozenMemory(**{**known, "interrupting": interrupting})


FILES = (None, "which one?")
WORKSPACES = (
    WorkspaceFacts(),
    WorkspaceFacts(is_held=True),
    WorkspaceFacts(writer="other", again_mono=LATER),
)
PREFLIGHTS = ({}, {"preflight_run": 1}, {"preflight_run": 1, "problems": (PreflightProblem(text="no git"),)})
RESULTS = (
    ChoreResult(is_usable=True),
    ChoreResult(is_usable=False, complaint="no room"),
    ChoreResult(is_usable=False),
)


def facts_of(task: Task) -> Iterator[Facts]:
    """Every combination of facts that a runner can gather in this state."""
    yield from _with_requests(task)
    if task.open_executions:
        yield from _of_open_executions(task)
    elif task.chore is not None:
        yield from _of_ended_chore(task.chore)
    elif task.has_undecided:
        yield from _of_ended_attempts(task)
    else:
        yield from _at_rest(task)


def calm(task: Task) -> Facts:
    """The runner has done everything that it remembers, and nothing new happens."""
    numbers = {execution.number for execution in _executions(task)}
    done = FrozenMemory(
        preflight_run=task.run,
        workspace=WorkspaceFacts(is_held=True),
        files_written=numbers,
        leftovers_checked=numbers,
        recorders_dismissed=numbers,
        refusals_announced=numbers,
        is_reported=True,
    )
    return Facts(
        remembered=done,
        executions={each.number: _CALM for each in task.open_executions},
        heartbeat_in_s=5.0,
        chore_result=RESULTS[0] if task.chore is not None else None,
        is_closed=task.has_ended,
        is_taken_over=True,
    )


def _executions(task: Task) -> list[Execution]:
    return [*task.current, *([task.chore] if task.chore is not None else [])]


def _with_requests(task: Task) -> Iterator[Facts]:
    args: dict[str, Any] = {"message": "an answer", "env": {}}
    memory = FrozenMemory()
    for verb, name in product((*REQUESTS, "paint"), ("R", *task.requests)):
        request = Request(id=name, verb=verb, args=args, by="me", at="")
        pending = PendingRequest(name=f"{name}.json", request=request)
        yield Facts(remembered=memory, request=pending)
        if task.open_takeover is not None:
            yield Facts(remembered=memory, request=pending.evolve(is_taken_over=True))
    broken = PendingRequest(name="R.json", request=HoldfastError("not JSON"))
    yield Facts(remembered=memory, request=broken)


# ── facts of open executions ──

_CALM = ExecutionFacts(is_watched=True, read_in_s=5.0, judge_in_s=5.0)
_GONE = ExecutionFacts(is_watched=True, has_ended=True)


def _of_open_executions(task: Task) -> Iterator[Facts]:
    nothing = FrozenMemory()
    # The interrupt file is looked for with the heartbeat.
    for heartbeat_in_s, file in ((5.0, None), (0.0, None), (0.0, "which one?")):
        timer: dict[str, Any] = {"heartbeat_in_s": heartbeat_in_s, "interrupt_file": file}
        for executions in _seen(task.open_executions):
            yield Facts(remembered=nothing, executions=executions, **timer)
    # Only another one of a parallel group can have failed to start.
    for failure in _start_failures(task) if len(task.due) > 1 else ():
        memory = FrozenMemory(start_failure=failure)
        for seen in (_CALM, ExecutionFacts(reading=Reading.STARTING, awaited_s=0.0), _GONE):
            executions = {execution.number: seen for execution in task.open_executions}
            yield Facts(remembered=memory, executions=executions, heartbeat_in_s=5.0)


def _seen(executions: list[Execution]) -> Iterator[dict[int, ExecutionFacts]]:
    """One of them is in any condition; the others are running, or in the same condition."""
    for execution in executions:
        for seen in _conditions(execution):
            yield {each.number: seen if each is execution else _CALM for each in executions}
            if len(executions) > 1:
                yield {each.number: seen for each in executions}


def _conditions(execution: Execution) -> Iterator[ExecutionFacts]:
    yield from _unwatched(execution)
    for has_unread_output in (False, True):
        yield _GONE.evolve(has_unread_output=has_unread_output)
    for is_overdue in (False, True):
        yield ExecutionFacts(is_watched=True, awaited_s=3.0, is_overdue=is_overdue)
    for read_in_s, needs_lock in product((0.0, 5.0), (False, True)):
        seen = _CALM.evolve(read_in_s=read_in_s, needs_session_lock=needs_lock)
        if execution.intent is not None:
            yield from (seen.evolve(signal_in_s=signal_in_s) for signal_in_s in (0.0, 5.0))
        else:
            yield from (seen.evolve(judgement=judgement) for judgement in (None, *_judgements()))


def _unwatched(execution: Execution) -> Iterator[ExecutionFacts]:
    """Its start is not journalled, or another runner journalled it."""
    died = Exit(by="recorder", wait_status=9, exit_code=None, exit_signal=9, at="")
    adopted = (Reading.RUNNING, Reading.ORPHANED, Reading.EXITED)
    for reading in Reading if execution.started is None else adopted:
        seen = ExecutionFacts(reading=reading)
        match reading:
            case Reading.STARTING:
                yield from (seen.evolve(awaited_s=3.0, is_overdue=overdue) for overdue in (False, True))
            case Reading.SPAWN_FAILED | Reading.EXITED:
                yield seen.evolve(exit=died)
            case _:
                yield seen


def _judgements() -> Iterator[Judgement]:
    for kind, is_news in product(Kind, (False, True)):
        verdict = Verdict(kind=kind, because="a reason", look_again_mono=LATER)
        calm_one = Judgement(lived_s=1.0, silent_s=1.0, output_bytes=0, verdict=verdict, is_news=is_news)
        yield calm_one
    yield calm_one.evolve(lived_s=1e6)
    yield calm_one.evolve(output_bytes=10**15)
    yield calm_one.evolve(silent_s=1e6, is_news=False)
    hung = Verdict(kind=Kind.HUNG, because="a reason", look_again_mono=MONO)
    yield calm_one.evolve(verdict=hung, is_news=False, waits_for_input=True, last_line="Continue?")


def _start_failures(task: Task) -> Iterator[StartFailure]:
    stage = task.stage or ""
    for again_mono in (MONO, LATER):
        yield StartFailure(kind="process", stage=stage, reason="a reason", again_mono=again_mono)
    for kind in ("session", "prompt"):
        yield StartFailure(kind=kind, stage=stage, reason="a reason")


# ── facts while nothing is open ──


def _of_ended_chore(chore: Execution) -> Iterator[Facts]:
    sweeps = ({}, {chore.number: LATER})
    for written, sweep, workspace, result in product(
        (set[int](), {chore.number}), sweeps, WORKSPACES, RESULTS
    ):
        memory = FrozenMemory(files_written=written, sweep_due_mono=sweep, workspace=workspace)
        yield Facts(remembered=memory, chore_result=result)


def _of_ended_attempts(task: Task) -> Iterator[Facts]:
    numbers = {attempt.number for attempt in task.current}
    nothing = set[int]()
    logins = {attempt.agent: "a login" for attempt in task.current}
    for checked, written, dismissed, sweep, file in product(
        (nothing, numbers), (nothing, numbers), (nothing, numbers), (0.0, LATER), FILES
    ):
        memory = FrozenMemory(
            leftovers_checked=checked,
            files_written=written,
            recorders_dismissed=dismissed,
            sweep_due_mono=dict.fromkeys(numbers, sweep),
        )
        yield Facts(remembered=memory, interrupt_file=file, logins=logins)


def _at_rest(task: Task) -> Iterator[Facts]:
    match task.status:
        case Status.SPAWNING | Status.RUNNING:
            yield from _before_start(task)
        case Status.COMPLETING:
            yield from _at_gate(task)
        case Status.WAITING:
            for file, left_s, wait_s in product(FILES, (-1.0, 10.0), (10.0, 100.0)):
                yield Facts(remembered=FrozenMemory(), interrupt_file=file, wait_left_s=left_s, wait_s=wait_s)
        case _:
            for file, is_closed, is_reported in product(FILES, (False, True), (False, True)):
                memory = FrozenMemory(is_reported=is_reported)
                yield Facts(remembered=memory, interrupt_file=file, is_closed=is_closed and task.has_ended)
            if task.open_takeover is not None:
                yield Facts(remembered=FrozenMemory(), is_taken_over=True)


def _before_start(task: Task) -> Iterator[Facts]:
    failures = (None, *_start_failures(task))
    for preflight, workspace, failure in product(PREFLIGHTS, WORKSPACES, failures):
        memory = FrozenMemory(workspace=workspace, start_failure=failure, **preflight)
        for file, has_project, has_repository in product(FILES, (False, True), (False, True)):
            yield Facts(
                remembered=memory,
                interrupt_file=file,
                has_project=has_project,
                has_repository=has_repository,
            )


def _at_gate(task: Task) -> Iterator[Facts]:
    numbers = {attempt.number for attempt in task.current}
    nothing = set[int]()
    failures = (None, *_start_failures(task))
    for dismissed, announced, workspace, failure, file in product(
        (nothing, numbers), (nothing, numbers), WORKSPACES, failures, FILES
    ):
        memory = FrozenMemory(
            recorders_dismissed=dismissed,
            refusals_announced=announced,
            workspace=workspace,
            start_failure=failure,
        )
        yield Facts(remembered=memory, interrupt_file=file)
