"""Recovery that never lets go: keepers, runners and seeds that are killed again and again."""

from __future__ import annotations

import os

import pytest

from holdfast.store.layout import Home
from tests.support import keepers, kin
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually

ROUNDS = 20 if os.environ.get("HOLDFAST_HOSTILE_FULL") else 8


@pytest.fixture(autouse=True)
def with_keeper(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here keepers are wanted."""
    monkeypatch.delenv("HOLDFAST_KEEPER")
    workspace()


def wait_until_it_works(home: str, pid: int) -> None:
    """Until the keeper has gone once through everything that is due."""
    eventually(lambda: keepers.log(home).count("started") and _has_worked(home, pid), what="the keeper works")


def _has_worked(home: str, pid: int) -> bool:
    return keepers.pid(home) == pid and keepers.failures(home) == 0


# ── the keeper ──


def test_a_keeper_that_works_and_is_killed_again_and_again_is_always_back(home: str) -> None:
    """The fifth kill in ten minutes was the last that anybody repaired."""
    task = Task.shell(kin.WAIT, "--stale", "none")
    task.agent_pid()
    old = keepers.wait_for(home)
    for _ in range(ROUNDS):
        wait_until_it_works(home, old)
        assert keepers.kill(home) == old
        old = keepers.wait_for(home, other_than=old, within_s=5)
    kin.go()
    task.wait_for("completed")


def test_a_queue_without_any_runner_survives_many_keepers(home: str) -> None:
    from tests.support.loops import fill, up

    (late,) = fill(late={"command": "true", "not_before": "+1h"})
    up()
    old = keepers.wait_for(home)
    eventually(lambda: keepers.status(home)["seed"], what="a seed lives")
    for _ in range(7):
        wait_until_it_works(home, old)
        assert keepers.kill(home) == old
        old = keepers.wait_for(home, other_than=old, within_s=8)
    assert late.status() == "queued"
    assert os.path.exists(Home(home).queue)
