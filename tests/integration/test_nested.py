"""An agent may run holdfast itself: no sweep ends what it started there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from holdfast.testing import Scenario
from tests.support import kin, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


@pytest.fixture(params=["same home", "another home"])
def inner_home(request: pytest.FixtureRequest, home: str, place) -> Iterator[str]:
    """The home of the agent's own task. No keeper, so that no process starts or ends without_asking."""
    path = home if request.param == "same home" else os.path.join(place.root, "inner")
    os.makedirs(path, mode=0o700, exist_ok=True)
    locks = [kin.alone(folder) for folder in {home, path}]
    yield path
    for lock in locks:
        os.close(lock)


def start_inner(inner_home: str, *, foreground: bool = False) -> str:
    """Shell: run the inner task, with a tool that has no marker."""
    script = "setsid env -i sleep 300 & echo $! > inner-tool; echo $$ > inner-agent; " + kin.WAIT + "exit 0"
    detach = "" if foreground else "-d"
    command = f"{sys.executable} -m holdfast run {detach} --id inner --leftovers kill -- sh -c"
    return f"HOLDFAST_HOME={inner_home} {command} '{script}'"


def family(inner_home: str) -> tuple[Task, dict[str, int]]:
    """The inner task and its processes, once all are there."""
    inner = Task(os.path.join(inner_home, "tasks", "inner"))
    eventually(lambda: os.path.exists(inner.packet), what="the inner task is made")
    found = {
        "agent": inner.agent_pid(),
        "tool": kin.pid_in("inner-tool"),
        "runner": inner.runner_pid(),
        "recorder": kin.recorder_pid(inner),
    }
    return inner, found


def assert_inner_lives_and_ends_well(inner: Task, members: dict[str, int]) -> None:
    assert {name: processes.is_alive(pid) for name, pid in members.items()} == dict.fromkeys(members, True)
    kin.go()
    manifest = inner.wait_for("completed")
    assert (manifest["exit_code"], manifest["attempt"]) == (0, 1)
    assert len(inner.events("runner.started")) == 1


@pytest.mark.req("LCH-1")
def test_a_nested_task_survives_the_outer_tasks_end(inner_home: str) -> None:
    outer = Task.shell(start_inner(inner_home) + "; exit 0")
    outer.wait_for("completed")
    inner, members = family(inner_home)
    assert_inner_lives_and_ends_well(inner, members)
    reported = [item["pid"] for e in outer.events("leftovers.found") for item in e["processes"]]
    assert set(reported).isdisjoint(members.values())


@pytest.mark.req("LCH-1")
def test_a_nested_task_survives_the_outer_tasks_stop_and_is_reported_as_spared(inner_home: str) -> None:
    outer = Task.shell(start_inner(inner_home) + "; sleep 300")
    inner, members = family(inner_home)
    agent = outer.agent_pid()
    outer.stop()
    assert not processes.is_alive(agent)
    swept = outer.events("attempt.swept")[0]
    assert swept["proof"] == "none left"
    assert members["runner"] in [item["pid"] for item in swept["spared"]]
    assert not {item["pid"] for item in swept["killed"]} & set(members.values())
    assert_inner_lives_and_ends_well(inner, members)


@pytest.mark.req("LCH-1")
def test_a_nested_task_survives_the_crash_and_the_resume_of_the_outer_agent(inner_home: str) -> None:
    script = "[ $HOLDFAST_RESUME_COUNT = 0 ] || exit 0; " + start_inner(inner_home) + "; "
    outer = Task.shell(script + "while [ ! -s inner-agent ]; do sleep 0.01; done; kill -9 $$")
    outer.wait_for("completed")
    inner, members = family(inner_home)
    assert outer.manifest()["total_retries"] == 1
    assert_inner_lives_and_ends_well(inner, members)


@pytest.mark.req("LCH-1")
def test_a_nested_task_that_was_followed_in_the_foreground_survives_its_follower(inner_home: str) -> None:
    outer = Task.shell(start_inner(inner_home, foreground=True))
    inner, members = family(inner_home)
    outer.agent_pid()
    outer.stop()
    assert_inner_lives_and_ends_well(inner, members)


@pytest.mark.req("LCH-1")
def test_killing_the_outer_runner_and_recorder_leaves_the_nested_task_alone(inner_home: str) -> None:
    outer = Task.shell(start_inner(inner_home) + "; [ $HOLDFAST_RESUME_COUNT = 1 ] || sleep 300")
    inner, members = family(inner_home)
    kin.kill(outer.agent_pid(), outer.runner_pid(), kin.recorder_pid(outer))
    outer.start_runner()
    # The second inner task has the first one's id, and is refused; the outer agent continues.
    outer.wait_for("completed")
    assert_inner_lives_and_ends_well(inner, members)


@pytest.mark.req("LCH-1")
def test_a_seed_that_an_agent_started_survives_the_stop_and_its_runners_too(home: str) -> None:
    lock = kin.alone(home)
    script = "from holdfast import spawn; from holdfast.store.layout import Home; import os; "
    script += "print(spawn.execute('holdfast.seed', [], Home(os.environ['HOLDFAST_HOME']), role='seed'))"
    outer = Task.shell(f'{sys.executable} -c "{script}" > seed-pid; ' + start_inner(home) + "; sleep 300")
    seed = kin.pid_in("seed-pid")
    inner, members = family(home)
    outer.stop()
    assert processes.is_alive(seed)
    assert_inner_lives_and_ends_well(inner, members)
    kin.kill(seed)
    os.close(lock)


@pytest.mark.req("LCH-1")
def test_the_scripted_agent_runs_holdfast_itself(home: str) -> None:
    lock = kin.alone(home)
    inner_argv = ["run", "-d", "--id", "inner", "--", "sh", "-c", kin.WAIT + "exit 0"]
    outer = Task.play(Scenario().holdfast(inner_argv).hang())
    inner = Task(os.path.join(home, "tasks", "inner"))
    eventually(lambda: os.path.exists(inner.packet), what="the inner task is made")
    agent = inner.agent_pid()
    outer.stop()
    assert processes.is_alive(agent)
    kin.go()
    inner.wait_for("completed")
    os.close(lock)


@pytest.mark.req("LCH-1", "LCH-5")
def test_an_agent_gets_the_variables_of_its_task_and_no_role(home: str) -> None:
    lock = kin.alone(home)
    task = Task.shell("env > seen; exit 0")
    task.wait_for("completed")
    with open(os.path.join(workspace(), "seen"), encoding="utf-8") as file:
        seen = dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line)
    assert seen["HOLDFAST_TASK"] == task.id
    assert seen["HOLDFAST_PACKET"] == task.packet
    assert seen["TASK_TMPDIR"] == task.path("scratch")
    assert seen["HOLDFAST_ATTEMPT"] == task.attempts()[0]
    assert "HOLDFAST_ROLE" not in seen
    os.close(lock)


@pytest.mark.req("LCH-1")
def test_a_nested_task_can_be_stopped_from_the_outer_agent_and_only_it_ends(home: str) -> None:
    lock = kin.alone(home)
    program = f"{sys.executable} -m holdfast"
    stop = f"{program} stop inner && {program} wait inner; echo $? > status"
    ready = "while [ ! -s inner-agent ]; do sleep 0.01; done; "
    outer = Task.shell(start_inner(home) + "; " + ready + stop + "; exit 0")
    outer.wait_for("completed")
    inner = Task(os.path.join(home, "tasks", "inner"))
    assert inner.status() == "killed"
    assert kin.pid_in("status") == 1
    assert not processes.is_alive(kin.pid_in("inner-tool"))
    assert holdfast("show", "inner").returncode == 0
    assert outer.manifest()["exit_code"] == 0
    os.close(lock)
