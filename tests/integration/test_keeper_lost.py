"""A keeper that is killed while only the queue needs it is always restarted."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from holdfast.store.layout import Home
from tests.support import keepers, kin, loops, processes
from tests.support.loops import fill, task, up, working
from tests.support.tasks import holdfast, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("with_keeper")


def seed_of(home: str) -> int:
    return eventually(lambda: (keepers.status(home)["seed"] or {"pid": 0})["pid"], what="a seed lives")


@pytest.mark.req("QUE-4")
def test_a_keeper_killed_while_a_short_task_runs_is_back_for_the_next_one(home: str) -> None:
    tasks = fill(first=working(0.5), second=working())
    up()
    loops.wait_for_begin("first")
    seed_of(home)
    killed = keepers.kill(home)
    for each in tasks:
        each.wait_for("completed", within_s=20)
    assert keepers.wait_for(home, other_than=killed)
    assert loops.order() == ["first", "second"]


def test_a_keeper_killed_while_nothing_runs_is_back_for_a_task_of_later(home: str) -> None:
    done = holdfast("submit", "--not-before", "+4s", "--id", "late", "--", "true", cwd=workspace())
    assert done.returncode == 0, done.stderr
    seed_of(home)
    keepers.kill(home)
    task("late").wait_for("completed", within_s=25)


def test_the_pause_between_starts_is_sat_out_by_the_seed(home: str) -> None:
    fill(it={"command": "true", "not_before": "+1s"})
    up()
    seed_of(home)
    # Three deaths in a row: the next start has to wait, longer than any runner lives here.
    now = time.time()
    with open(Home(home).keeper_starts, "w", encoding="utf-8") as file:
        file.write(f'{{"schema": "holdfast.keeper-starts/1", "starts": [{now - 2}, {now - 1}, {now}]}}')
    killed = keepers.kill(home)
    assert keepers.wait_for(home, other_than=killed, within_s=25)
    task("it").wait_for("completed", within_s=20)


def test_after_keeper_and_seed_are_killed_the_last_runner_restarts_the_keeper(home: str) -> None:
    tasks = fill(first=kin.WAIT, second=working())
    up("--slots", "1")
    task("first").wait_for("running")
    kin.kill(seed_of(home), keepers.wait_for(home))
    kin.go()
    for each in tasks:
        each.wait_for("completed", within_s=25)


def test_keeper_seed_and_runner_killed_it_is_said_and_a_waiting_command_brings_them_back(home: str) -> None:
    done = holdfast("submit", "--not-before", "+2s", "--id", "late", "--", "true", cwd=workspace())
    assert done.returncode == 0, done.stderr
    kin.kill(seed_of(home), keepers.wait_for(home))
    # Not at once: a keeper that was just started may not have its lock yet.
    attention = eventually(lambda: keepers.status(home)["attention"], what="somebody has to look")
    assert attention == ["1 task is queued but no keeper is running: 'holdfast up' starts it"]
    assert "1 task is queued" in holdfast("doctor").stdout
    assert holdfast("wait", "late", "--timeout", "30s").returncode == 0


def test_a_seed_that_is_not_needed_exits_and_starts_nothing(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_KEEPER_IDLE", "0.2s")
    done = holdfast("submit", "--id", "it", "--", "true", cwd=workspace())
    assert done.returncode == 0, done.stderr
    seed = seed_of(home)
    task("it").wait_for("completed")
    eventually(lambda: keepers.pid(home) == 0, 15, "an idle keeper leaves")
    # It exited normally, so the start does not count as a failed one.
    assert keepers.status(home)["keeper_starts"] == []
    keepers.stays(lambda: keepers.pid(home) == 0, 3.0, "nothing needs a keeper")
    kin.kill(seed)


# ── the seed rests ──


def test_a_seed_whose_keeper_died_in_a_home_that_is_down_rests(home: str) -> None:
    done = holdfast("submit", "--not-before", "+1h", "--id", "late", "--", "true", cwd=workspace())
    assert done.returncode == 0, done.stderr
    seed, keeper = seed_of(home), keepers.wait_for(home)

    def is_watching() -> bool:
        folder = f"/proc/{seed}/fd"
        return any("pidfd" in os.readlink(os.path.join(folder, name)) for name in os.listdir(folder))

    eventually(is_watching, what="the seed watches the keeper")
    with open(Home(home).down, "w", encoding="utf-8"):
        pass
    kin.kill(keeper)
    spent_s = processes.cpu_s(seed)
    keepers.stays(lambda: processes.cpu_s(seed) - spent_s < 0.3, 1.5, "it waits")
    kin.kill(seed)


def test_a_fork_that_is_slow_to_answer_is_waited_for_and_one_that_died_is_no_answer(home: str) -> None:
    script = """
import os, select, signal, sys
from holdfast import seed_keeper_watch
from holdfast.store.layout import Home
seed_keeper_watch.FIRST_LOOK_S = seed_keeper_watch.LOOK_S = 0.0
watch = seed_keeper_watch.KeeperWatch(Home(sys.argv[1]))
watch.look()
seed_keeper_watch.LOOK_S = 5.0
(answer,) = watch.descriptors
assert watch.look() > 1.0, "it spins"
with open(f"/proc/self/task/{os.getpid()}/children") as file:
    os.kill(int(file.read()), signal.SIGKILL)
assert select.select([answer], (), (), 10)[0]
watch.look()
assert watch.is_needed, "nobody said that it is not"
"""
    os.mkfifo(Home(home).keeper_log)  # the fork blocks until it has a reader
    # Not through a pipe: a leftover fork would keep it open.
    with open(os.path.join(workspace(), "said"), "w+", encoding="utf-8") as said:
        done = subprocess.run([sys.executable, "-c", script, home], stderr=said, timeout=30, check=False)
        said.seek(0)
        assert done.returncode == 0, said.read()
