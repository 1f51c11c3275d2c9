"""Chores: kills around them, and requests that arrive while there is no runner."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from holdfast.model.status import Status
from holdfast.testing import SessionMemory
from tests.conftest import Place
from tests.crash import invariants, points
from tests.crash.drive import Case
from tests.crash.scenarios import Scenario, play
from tests.crash.written import stage


def _reviews(case: Case) -> None:
    case.create_written(
        stage(case, "review", name="scripted_review", group="reviews"),
        stage(case, "review", name="scripted_second", group="reviews"),
    )


def _without_repository(case: Case) -> None:
    case.create(command=["true"], workspace="worktree")


@pytest.mark.req("PKT-13")
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("begin", "point"),
    [
        # The gate is journalled, and no process of it was forked.
        (_reviews, "attempt.opened=kill@3"),
        # Its agents have reported, one is judged, and the gate result of the other is not recorded yet.
        (_reviews, "step.record_end=kill@4"),
        # No worktree can be created, and no runner has noticed yet.
        (_without_repository, "step.record_end=kill@1"),
    ],
    ids=("no gate yet", "gate has spoken", "nothing prepared"),
)
def test_a_stop_that_finds_a_chore_and_no_runner_is_the_last_word(
    place: Place, clean_env: dict[str, str], begin: Callable[[Case], None], point: str
) -> None:
    def has_died(case: Case) -> bool:
        return case.fired and case.runner is not None and case.runner.poll() is not None

    def tend(case: Case) -> None:
        if not case.fired or case.requests:
            case.tend()

    stop = (has_died, lambda case: case.ask("stop"))
    case = Case(place.root, "stop", point)
    try:
        play(Scenario("stop", begin, (stop,), Status.KILLED, 0, tend=tend), case)
        invariants.check(case, end=Status.KILLED, retries=0)
    finally:
        case.close()
    assert case.fired


@pytest.mark.req("PKT-13")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("point", [name for name in points.names() if name.startswith("recorder.")])
def test_a_gate_whose_processes_are_killed_is_asked_again(
    place: Place, clean_env: dict[str, str], point: str
) -> None:
    """After the first kill, the gate's recorder is the next runner's first one: the second kill hits it."""
    case = Case(place.root, "gate", "step.write_files=kill@1")

    def has_died(case: Case) -> bool:
        return case.fired and case.runner is not None and case.runner.poll() is not None

    def kill_again(case: Case) -> None:
        os.unlink(case.once)
        case.failpoint = case.env["HOLDFAST_FAILPOINT"] = f"{point}=kill@1"

    def begin(case: Case) -> None:
        case.create_written(stage(case, "verify"), acceptance_commands=("true",))

    def tend(case: Case) -> None:
        if not has_died(case) or point in (case.failpoint or ""):
            case.tend()

    try:
        play(Scenario("gate", begin, ((has_died, kill_again),), Status.COMPLETED, 0, tend=tend), case)
        invariants.check(
            case, end=Status.COMPLETED, retries=0, may_be_lost=point == "recorder.before_exit_record"
        )
    finally:
        case.close()
    assert case.fired
    assert sum(len(memory.starts()) for memory in SessionMemory.all(case.state)) == 1
