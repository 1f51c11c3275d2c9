"""Keepers and seeds that are alive but do nothing: stopped by a signal, or hung."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from holdfast.store import lock as locks
from holdfast.store import lock_owner, process
from holdfast.store.layout import Home
from holdfast.store.pulse import Pulse
from tests.support import keepers, kin
from tests.support.loops import up
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

#: Longer than two checks of any watcher.
WITHIN_S = 40.0


pytestmark = pytest.mark.usefixtures("with_keeper")


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: kin.state(pid) == "T", what=f"{pid} is stopped")


def runs(pid: int) -> bool:
    return kin.state(pid) not in ("", "T", "t")


def seed_pid(home: str) -> int:
    lock = Home(home).seed_lock
    owner = eventually(lambda: lock_owner.owner(lock) if locks.is_held(lock) else None, what="a seed lives")
    return owner.pid if owner is not None else 0


# ── the keeper ──


def test_the_seed_wakes_a_stopped_keeper(home: str) -> None:
    """Once, nothing woke it before the next 'down'."""
    up()
    keeper = keepers.wait_for(home)
    seed_pid(home)
    # The seed has found the keeper, and watches it.
    eventually(lambda: keepers.failures(home) == 0, what="the keeper works")
    stop(keeper)
    eventually(lambda: runs(keeper), WITHIN_S, "the keeper is woken")
    assert keepers.pid(home) == keeper


def test_a_runner_wakes_a_stopped_keeper(home: str) -> None:
    with os.fdopen(kin.alone(home, "seed.lock")):
        task = Task.shell(kin.WAIT, "--base-interval", "2s", "--stale", "none")
        keeper = keepers.wait_for(home)
        task.agent_pid()
        stop(keeper)
        eventually(lambda: runs(keeper), WITHIN_S, "the keeper is woken", journal=task.packet)
        kin.go()
        task.wait_for("completed")


@pytest.mark.parametrize("words", [("up",), ("submit", "--", "true"), ("run", "-d", "--", "true")])
def test_a_command_wakes_a_stopped_keeper(home: str, words: tuple[str, ...]) -> None:
    with os.fdopen(kin.alone(home, "seed.lock")):
        up()
        keeper = keepers.wait_for(home)
        stop(keeper)
        done = holdfast(*words, cwd=workspace())
        assert done.returncode == 0, done.stderr
        eventually(lambda: runs(keeper), what="the keeper is woken")


def test_status_and_doctor_name_a_stopped_keeper(home: str) -> None:
    with os.fdopen(kin.alone(home, "seed.lock")):
        up()
        keeper = keepers.wait_for(home)
        stop(keeper)
        line = f"the keeper (process {keeper}) is stopped by a signal: 'holdfast up' wakes it"
        assert line in keepers.status(home)["attention"]
        findings = json.loads(holdfast("doctor", "--json").stdout)["findings"]
        (found,) = [each for each in findings if each["check"] == "keeper"]
        assert found["level"] == "warn"
        assert found["said"] == f"process {keeper} is stopped by a signal"
        os.kill(keeper, signal.SIGCONT)


def test_a_keeper_that_is_stopped_again_and_again_is_replaced(home: str) -> None:
    up()
    keeper = keepers.wait_for(home)
    seed_pid(home)

    def other() -> int:
        if kin.state(keeper) not in ("", "T"):
            os.kill(keeper, signal.SIGSTOP)
        found = keepers.pid(home)
        return found if found != keeper else 0

    eventually(other, 2 * WITHIN_S, "another keeper lives")  # after four looks
    with open(Home(home).audit, encoding="utf-8") as file:
        (line,) = [line for line in map(json.loads, file) if line["operation"] == "keeper.killed"]
    assert line["reason"] == f"process {keeper}: stopped by a signal, SIGCONT did not help"


def test_a_keeper_in_the_foreground_that_a_person_stopped_is_left_alone(home: str) -> None:
    """Ctrl-Z: the shell has it as a stopped job."""
    argv = [sys.executable, "-m", "holdfast", "up", "--foreground"]
    loop = subprocess.Popen(argv, cwd=workspace(), stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: keepers.pid(home) == loop.pid, what="the loop runs")
        seed_pid(home)
        stop(loop.pid)
        keepers.stays(lambda: kin.state(loop.pid) == "T", 17, "it is stopped")  # the seed looks every 15 s
        done = holdfast("submit", "--", "true", cwd=workspace())
        assert done.returncode == 0, done.stderr
        assert kin.state(loop.pid) == "T"
    finally:
        loop.terminate()
        os.kill(loop.pid, signal.SIGCONT)
        loop.wait(timeout=30)


HANGING = """
import os, sys, time
from holdfast.store import lock as locks
lock = locks.acquire(sys.argv[1], role="keeper")
print("held", flush=True)
while True:
    time.sleep(0.1)
    if len(sys.argv) > 2:
        os.utime(lock.descriptor)
"""


def hang(home: str, *words: str) -> subprocess.Popen[bytes]:
    """A process with the keeper's lock and without (or with) a heartbeat."""
    argv = [sys.executable, "-c", HANGING, Home(home).keeper_lock, *words]
    hung = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert hung.stdout is not None
    with hung.stdout:
        assert hung.stdout.readline() == b"held\n"
    return hung


def pulse_of(home: str, pid: int, **settings: float) -> Pulse:
    owner = process.identify(pid)
    assert owner is not None
    return Pulse(Home(home), Home(home).keeper_lock, owner, look_s=0.05, **settings)


def test_a_keeper_without_a_heartbeat_is_killed(home: str) -> None:
    hung = hang(home)
    pulse = pulse_of(home, hung.pid, hung_s=1.0)
    start_mono = time.monotonic()
    eventually(lambda: (pulse.check(), hung.poll())[1] is not None, what="it is killed")
    assert hung.returncode == -signal.SIGKILL
    assert time.monotonic() - start_mono > 0.9


def test_a_keeper_with_a_heartbeat_lives(home: str) -> None:
    works = hang(home, "beats")
    pulse = pulse_of(home, works.pid, hung_s=1.0)
    keepers.stays(lambda: (pulse.check(), works.poll())[1] is None, 3, "it lives")
    works.kill()
    works.wait(timeout=10)


def test_a_watcher_that_was_stopped_itself_judges_anew(home: str) -> None:
    """As after a suspended container: hours have passed, and neither process could run."""
    hung = hang(home)
    pulse = pulse_of(home, hung.pid, hung_s=5.0, longest_look_s=1.0)
    pulse.check()
    pulse.looked_mono -= 10_000.0
    pulse.check()
    assert hung.poll() is None
    hung.kill()
    hung.wait(timeout=10)


def test_a_process_that_does_not_have_the_lock_is_never_killed(home: str) -> None:
    """Whatever an agent wrote into keeper.lock."""
    with os.fdopen(kin.alone(home)):
        other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        pulse = pulse_of(home, other.pid, hung_s=0.5)
        keepers.stays(lambda: (pulse.check(), other.poll())[1] is None, 2, "it lives")
        stop(other.pid)
        keepers.stays(lambda: (pulse.check(), other.poll())[1] is None, 2, "it lives")
        other.kill()
        other.wait(timeout=10)


# ── the seed ──


def test_a_stopped_seed_delays_run_by_half_a_second_and_is_woken(home: str) -> None:
    up()
    keepers.wait_for(home)
    seed = seed_pid(home)
    eventually(lambda: os.path.exists(Home(home).seed_socket), what="the seed listens")
    stop(seed)
    start_mono = time.monotonic()
    task = Task.shell("exit 0")
    assert time.monotonic() - start_mono < 5
    task.wait_for("completed")
    eventually(lambda: runs(seed), WITHIN_S, "the seed is woken")
    # The request that it received while it was stopped starts no second agent.
    assert len(task.attempts()) == 1
    assert not holdfast("run", "--", "true", cwd=workspace()).returncode


def test_a_loop_takes_over_from_a_stopped_keeper(home: str) -> None:
    with os.fdopen(kin.alone(home, "seed.lock")):
        up()
        keeper = keepers.wait_for(home)
        stop(keeper)
        argv = [sys.executable, "-m", "holdfast", "up", "--foreground"]
        loop = subprocess.Popen(argv, cwd=workspace(), stderr=subprocess.DEVNULL)
        try:
            eventually(lambda: keepers.pid(home) == loop.pid, what="the loop runs")
        finally:
            loop.terminate()
            loop.wait(timeout=30)
