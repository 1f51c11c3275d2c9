"""Recovery of keepers, runners and seeds that are killed again and again."""

from __future__ import annotations

import itertools
import os
import selectors
import time

import pytest

from holdfast import clock, seed_client
from holdfast.keeper.restart_seed import SeedRestarter
from holdfast.packet import inbox
from holdfast.store import lock as locks
from holdfast.store import lock_owner
from holdfast.store.layout import Home
from tests.support import keepers, kin, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

ROUNDS = 20 if os.environ.get("HOLDFAST_HOSTILE_FULL") else 8


pytestmark = pytest.mark.usefixtures("with_keeper")


def wait_until_it_works(home: str, pid: int) -> None:
    """Wait until the keeper has done one full round."""
    eventually(lambda: keepers.log(home).count("started") and _has_worked(home, pid), what="the keeper works")


def _has_worked(home: str, pid: int) -> bool:
    return keepers.pid(home) == pid and keepers.failures(home) == 0


# ── the keeper ──


def test_a_keeper_that_works_and_is_killed_again_and_again_is_always_back(home: str) -> None:
    """Once, the fifth kill within ten minutes was final."""
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


# ── the runner and the seed in a warm home ──


def warm_up(home: str) -> None:
    """Wait until keeper and seed live and have finished their start."""
    from tests.support.loops import up

    up()
    wait_until_it_works(home, keepers.wait_for(home))
    eventually(lambda: seed_client.ask(Home(home), {"verb": "ping"}), what="the seed answers")


@pytest.mark.parametrize("age_s", [0.3, 1.0, 3.0])
def test_the_runner_of_a_young_task_is_watched(home: str, age_s: float) -> None:
    """When only the keeper's scan noticed its death, replacing it took 5 to 12 s."""
    warm_up(home)
    task = Task.shell(kin.WAIT)
    runner = task.runner_pid()
    start_mono = time.monotonic()
    eventually(lambda: time.monotonic() - start_mono >= age_s, what="it is old enough")
    killed_mono = time.monotonic()
    kin.kill(runner)
    eventually(lambda: task.runner_pid() != runner, within_s=5, what="a new runner lives")
    took_s = time.monotonic() - killed_mono
    assert took_s < 1.0
    kin.go()
    assert task.wait_for("completed")["attempt"] == 1


def test_a_seed_that_is_killed_is_replaced_at_once_again_and_again(home: str) -> None:
    """When only the keeper's scan noticed it, this took 8 to 15 s."""
    warm_up(home)
    old = seed_of(home)
    for number in range(3):
        killed_mono = time.monotonic()
        kin.kill(old)
        new = eventually(lambda killed=old: other_seed(home, killed), 15, "a new seed lives")
        took_s = time.monotonic() - killed_mono
        # The second starts after a pause: a seed that cannot live must not use a whole core.
        assert took_s < (1.0 if not number else 6.0)
        old = new
    assert keepers.log(home).count("started") == 1


def test_a_seed_that_is_killed_before_the_keeper_has_seen_it_is_replaced_at_once(home: str) -> None:
    """The keeper took it for one that is still starting, for 2 s."""
    with selectors.DefaultSelector() as selector:
        seed = SeedRestarter(Home(home), selector)
        seed.step()
        old = eventually(lambda: seed_of(home), what="a seed lives")
        killed_mono = time.monotonic()
        kin.kill(old)
        eventually(lambda: (seed.step(), other_seed(home, old))[1], 15, "a new seed lives")
        took_s = time.monotonic() - killed_mono
        seed.on_death()
    kin.kill(seed_of(home))
    assert took_s < 1.5


def other_seed(home: str, old: int) -> int:
    found = seed_of(home)
    return found if found != old else 0


def seed_of(home: str) -> int:
    lock = Home(home).seed_lock
    owner = lock_owner.owner(lock) if locks.is_held(lock) else None
    # A new seed holds the lock for a moment before it has signed it: the text is still the old one's.
    return owner.pid if owner is not None and processes.is_alive(owner.pid) else 0


@pytest.mark.parametrize(
    "junk", [b"\n", b"+../../etc\n", b"+\xff\xfe\n", b"+" + b"a" * 3000, b"+nobody\n!!+\n"]
)
def test_a_bell_with_junk_in_it_is_a_ring(home: str, junk: bytes) -> None:
    warm_up(home)
    pid = keepers.pid(home)
    task = kin.make("--", "sh", "-c", "exit 0")  # without a runner: only a scan finds it
    bell = os.open(Home(home).keeper_bell, os.O_WRONLY | os.O_NONBLOCK)
    os.write(bell, junk)
    os.close(bell)
    inbox.ring_keeper(Home(home))
    task.wait_for("completed")
    assert keepers.pid(home) == pid


# ── all at once ──


def test_runner_keeper_and_seed_killed_at_once_come_back_by_another_runner(home: str) -> None:
    """No command is needed: the runner of another task starts a keeper, which starts the rest."""
    warm_up(home)
    lost, other = Task.shell(kin.WAIT), Task.shell(kin.WAIT)
    lost.agent_pid()
    other.agent_pid()
    for number in range(3):
        keeper, seed, runner = keepers.wait_for(home), eventually(lambda: seed_of(home)), lost.runner_pid()
        wait_until_it_works(home, keeper)
        killed_mono = time.monotonic()
        kin.kill(keeper, seed, runner)
        keepers.wait_for(home, other_than=keeper, within_s=20)
        eventually(lambda old=runner: lost.runner_pid() != old, 20, "a new runner lives", journal=lost.packet)
        took_s = time.monotonic() - killed_mono
        assert took_s < 15, number
    kin.go()
    for task in (lost, other):
        assert task.wait_for("completed")["attempt"] == 1


# ── a runner that dies in its first milliseconds ──


def up_with(failpoint: str, *, once: bool = False) -> None:
    """A keeper, and a seed, whose runners die at a point; with `once`, only the first one."""
    env = {"HOLDFAST_FAILPOINT": f"{failpoint}=kill"}
    if once:
        env["HOLDFAST_FAILPOINT_ONCE"] = os.path.join(workspace(), "died")
    done = holdfast("up", env=env)
    assert done.returncode == 0, done.stderr
    home = os.environ["HOLDFAST_HOME"]
    wait_until_it_works(home, keepers.wait_for(home))
    eventually(lambda: seed_client.ask(Home(home), {"verb": "ping"}), what="the seed answers")


@pytest.mark.parametrize("failpoint", ["runner.locked", "runner.started"])
def test_a_runner_that_dies_at_once_is_replaced_at_once(home: str, failpoint: str) -> None:
    """The keeper did not know it, and found it only at its next scan, up to 15 s later."""
    up_with(failpoint, once=True)
    start_mono = time.monotonic()
    task = Task.shell(kin.WAIT)
    died_mono = eventually(
        lambda: os.path.exists(os.path.join(workspace(), "died")) and time.monotonic(), what="a runner died"
    )
    task.runner_pid()
    assert time.monotonic() - max(died_mono, start_mono) < 3
    kin.go()
    assert task.wait_for("completed")["attempt"] == 1


def test_the_pause_between_two_runners_that_die_grows(home: str) -> None:
    up_with("runner.started")
    task = Task.shell("exit 0")
    task.wait_for_event("runner.started", 6, within_s=60)
    times = [clock.parse_iso(event["at"]) for event in task.events("runner.started")[:6]]
    pauses = [after - before for before, after in itertools.pairwise(times)]
    # The first is replaced at once, the others after 0.2, 0.4, 0.8 and 1.6 s. (A busy machine records a start
    # late, so a single pause may look shorter.)
    assert sum(pauses[1:]) >= 2.8, pauses
    assert pauses[4] > pauses[2], pauses
    task.wait_for("interrupted", within_s=60)


@pytest.mark.parametrize("failpoint", ["runner.locked", "runner.started"])
def test_a_task_whose_runners_die_before_they_can_park_it_is_parked(home: str, failpoint: str) -> None:
    """Before a runner has recorded its start, and before it has planned anything."""
    up_with(failpoint)
    task = Task.shell("exit 0")
    manifest = task.wait_for("interrupted", within_s=90)
    assert "runners in a row died" in manifest["interrupt"]["reason"]
    assert keepers.status(home)["attention"]
    count = len(task.events("runner.started"))
    keepers.stays(lambda: len(task.events("runner.started")) == count, 2, "no runner is started any more")
    # Without the failpoint, the task continues.
    assert holdfast("down").returncode == 0
    assert holdfast("up").returncode == 0
    assert task.ask("resume").returncode == 0
    assert task.wait_for("completed")["attempt"] == 1
