"""One life of a task that the crash run interrupts, and how it is played."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from holdfast.model.status import Status
from holdfast.model.task import Task
from tests.crash import invariants
from tests.crash.drive import Case, deadline

#: A condition, and an action that is done once when it holds.
Act = tuple[Callable[[Case], bool], Callable[[Case], None]]


class Scenario(NamedTuple):
    """One life."""

    name: str
    begin: Callable[[Case], None]
    acts: tuple[Act, ...]
    end: Status
    #: Retries of a life without a kill; None if a busy machine may add some.
    retries: int | None
    #: Whether runners are executed; in most scenarios they are forked, which is faster.
    executes_runners: bool = False
    #: Whether it starts its first runner itself.
    starts_itself: bool = False
    #: Restarts runners while the task is live.
    tend: Callable[[Case], None] = Case.tend
    #: Ends other processes of the scenario.
    finish: Callable[[Case], None] | None = None
    #: Additional invariants at its end.
    check: Callable[[Case, Task], None] | None = None
    #: Whether the whole crash run kills at each pass of every point, or only at samples of its passes.
    is_short: bool = True
    #: The whole crash run kills only at points whose name starts with one of these.
    only: tuple[str, ...] | str = ""


def play(scenario: Scenario, case: Case, *, patience: float = 1.0) -> None:
    """Live the scenario to its end, restarting the runner whenever it is gone too early."""
    within_s = patience * (25.0 if scenario.is_short else 75.0)
    is_over = deadline(within_s)
    case.executes_runners = scenario.executes_runners
    scenario.begin(case)
    if not scenario.starts_itself:
        case.start_runner()
    acts = list(scenario.acts)
    while acts or not case.has_ended:
        if is_over():
            case.fail(f"{scenario.name}: not at its end within {within_s:g} s, {len(acts)} acts left")
        if acts and acts[0][0](case):
            acts.pop(0)[1](case)
        try:
            invariants.check_now(case)
        except AssertionError as error:
            case.fail(str(error))
        scenario.tend(case)
        case.pause()
    if scenario.finish is not None:
        scenario.finish(case)
    for other in case.others:
        other.kill()
        other.wait(10)
