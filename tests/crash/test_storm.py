"""Random SIGKILLs: runner, recorder and agent die at random times, and the task completes anyway."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest

from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.store import lock as locks
from holdfast.store import lock_owner
from holdfast.store.process import is_alive
from holdfast.testing import Scenario as Script
from holdfast.testing import SessionMemory
from tests.conftest import Place
from tests.crash import invariants
from tests.crash.drive import LIMITS, Case, deadline

KILLS = 15
STEPS = 20
WITHIN_S = 60.0


@pytest.mark.req("PKT-21", "LCH-1", "W-A1", "W-A6")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_task_comes_through_a_storm_of_kills(place: Place, clean_env: dict[str, str], seed: int) -> None:
    """Printed with a failure: the seed, and the kills with their times. HOLDFAST_CRASH_FULL=1 adds a seed."""
    if os.environ.get("HOLDFAST_CRASH_FULL"):
        seed += time.time_ns() % 1_000_000
    case = Case(place.root, "storm")
    script = Script().fail_if_running()
    for number in range(1, STEPS + 1):
        script.say(f"line {number}").sleep(0.12)
    case.create(
        scenario=str(script.result("done").write_to(os.path.join(case.root, "script.json"))),
        limits=LIMITS.evolve(max_retries=1000, base_interval_s=0.05, max_interval_s=0.1),
    )
    kills: list[str] = []
    try:
        _weather(case, random.Random(seed), kills)
        invariants.check(case, end=Status.COMPLETED, retries=None, may_be_lost=True)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, kills {kills}: {error}") from error
    finally:
        case.close()
    assert len(kills) >= KILLS // 2, f"seed {seed}: the storm hit only {kills}"
    done = [step for memory in SessionMemory.all(case.state) for step in memory.completed_steps()]
    assert len(set(done)) == 2 * STEPS + 2, "each step of the work was completed"


def _weather(case: Case, dice: random.Random, kills: list[str]) -> None:
    is_over = deadline(WITHIN_S)
    case.start_runner()
    next_mono = time.monotonic() + dice.uniform(0.05, 0.4)
    while not case.has_ended:
        assert not is_over(), f"not at its end within {WITHIN_S:g} s"
        if len(kills) < KILLS and time.monotonic() >= next_mono:
            kills += _strike(case, dice)
            next_mono = time.monotonic() + dice.uniform(0.05, 0.4)
        if case.status is Status.INTERRUPTED and not case.is_live and case.runner is None:
            # Too many runners died in a row: the task waits until it is resumed.
            case.ask("resume")
        case.tend()
        case.pause()


def _strike(case: Case, dice: random.Random) -> list[str]:
    """SIGKILL one of them, sometimes all at once. Returns which."""
    found = {"runner": lock_owner.owner(case.packet.runner_lock)}
    task = load.fold(case.packet)
    if task.attempt is not None and task.attempt.is_open:
        directory = case.packet.attempt(task.attempt.dirname)
        if locks.is_held(directory.lock):
            found["recorder"] = lock_owner.owner(directory.lock)
        found["agent"] = _agent(directory.identity)
    alive = {name: who for name, who in found.items() if who is not None and is_alive(who)}
    if not alive:
        return []
    names = sorted(alive) if dice.random() < 0.15 else [dice.choice(sorted(alive))]
    for name in names:
        os.kill(alive[name].pid, signal.SIGKILL)
    return ["+".join(names)]


def _agent(path: str):
    from holdfast.model.process import ProcessIdentity
    from holdfast.store import atomic

    data = atomic.read_json(path)
    return ProcessIdentity.from_json(data) if data is not None else None
