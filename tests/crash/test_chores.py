"""A request that comes while nobody is there, between a chore and what follows from it."""

from __future__ import annotations

import pytest

from holdfast.model.status import Status
from tests.conftest import Place
from tests.crash import invariants
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
        # Its agents have spoken, one of them is judged, and the gate of the other has not been taken in.
        (_reviews, "watching.ended=kill@4"),
        # There can be no worktree, and nobody has said so yet.
        (_without_repository, "watching.ended=kill@1"),
    ],
    ids=("no gate yet", "gate has spoken", "nothing prepared"),
)
def test_a_stop_that_finds_a_chore_and_no_runner_is_the_last_word(
    place: Place, clean_env: dict[str, str], begin, point: str
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
