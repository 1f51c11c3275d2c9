"""The home, or all its tasks, are removed while processes of ours are killed: nothing works on unseen."""

from __future__ import annotations

import os
import shutil
import signal

import pytest

from holdfast.store import lock_owner
from holdfast.store.layout import Home
from tests.support import kin, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

#: An agent with a child in its own session.
FAMILY = "setsid sh -c 'echo $$ > ../child; while :; do sleep 0.2; done' & echo on; " + kin.WAIT
#: A recorder looks every 30 s, a keeper every 15 s, a seed every 60 s.
WITHIN_S = 80


def removed(path: str) -> bool:
    shutil.rmtree(path, ignore_errors=True)  # somebody may just write a file
    return not os.path.exists(path)


def family(task: Task) -> dict[str, int]:
    """The processes of a task whose agent has a child."""
    task.wait_for_log("on")
    path = os.path.join(os.path.dirname(workspace()), "child")
    eventually(lambda: os.path.exists(path) and os.path.getsize(path) > 1, 20, "its child is there")
    with open(path, encoding="utf-8") as file:
        child = int(file.read())
    return {
        "agent": task.agent_pid(),
        "child": child,
        "recorder": kin.recorder_pid(task),
        "runner": task.runner_pid(),
    }


def keeper_of(home: str) -> int:
    keeper = eventually(lambda: lock_owner.owner(Home(home).keeper_lock), 20, "a keeper is there")
    assert keeper is not None
    return keeper.pid


def watches(keeper: int, runner: int) -> bool:
    """Whether the keeper has a pidfd of the runner."""
    folder = f"/proc/{keeper}/fdinfo"
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="ascii") as file:
            if f"Pid:\t{runner}\n" in file.read():
                return True
    return False


def left(members: dict[str, int]) -> list[str]:
    return [name for name, pid in members.items() if processes.is_alive(pid)]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("what", ["home", "tasks"])
@pytest.mark.parametrize(
    "victims",
    [("runner",), ("recorder",), ("keeper",), ("runner", "keeper"), ("recorder", "keeper")],
    ids="+".join,
)
def test_whoever_is_left_ends_the_agent(
    home: str, monkeypatch: pytest.MonkeyPatch, what: str, victims: tuple[str, ...]
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    members = family(Task.shell(FAMILY, "--base-interval", "0.2s"))
    pids = {**members, "keeper": keeper_of(home)}
    for name in victims:
        os.kill(pids[name], signal.SIGKILL)
    gone = home if what == "home" else os.path.join(home, "tasks")
    eventually(lambda: removed(gone), 20, f"{gone} is removed")
    eventually(lambda: not left(members), WITHIN_S, "agent, child, recorder and runner are gone")
    if what == "home":
        assert not os.path.exists(home)
    else:
        assert holdfast("ls").returncode == 0
        assert holdfast("run", "--", "true").returncode == 0


@pytest.mark.timeout(240)
@pytest.mark.parametrize("what", ["home", "tasks", "packet"])
def test_a_keeper_ends_the_agent_of_a_removed_task_if_runner_and_recorder_were_killed(
    home: str, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """No file mentions the agent any more, and no new runner can adopt it."""
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    task = Task.shell(FAMILY)
    members, keeper = family(task), keeper_of(home)
    eventually(lambda: watches(keeper, members["runner"]), 20, "the keeper knows the task")
    os.kill(keeper, signal.SIGSTOP)
    kin.kill(members["runner"], members["recorder"])
    gone = {"home": home, "tasks": os.path.join(home, "tasks"), "packet": task.packet}[what]
    eventually(lambda: removed(gone), 20, f"{gone} is removed")
    assert left(members) == ["agent", "child"]
    os.kill(keeper, signal.SIGCONT)
    eventually(lambda: not left(members), WITHIN_S, "agent and child are gone")
    assert not os.path.exists(task.packet)
    if what == "tasks":
        assert holdfast("run", "--", "true").returncode == 0  # makes it again


def test_the_agent_of_a_task_that_was_moved_with_its_home_works_on(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    task = Task.shell(FAMILY)
    members, keeper = family(task), keeper_of(home)
    eventually(lambda: watches(keeper, members["runner"]), 20, "the keeper knows the task")
    os.kill(keeper, signal.SIGSTOP)
    kin.kill(members["runner"], members["recorder"])
    os.rename(home, f"{home}.moved")
    os.kill(keeper, signal.SIGCONT)
    eventually(lambda: not processes.is_alive(keeper), 60, "the keeper found that its lock is gone")
    assert left(members) == ["agent", "child"]
    os.rename(f"{home}.moved", home)
    task.start_runner()
    task.wait_for_event("runner.started", 2)
    assert left(members) == ["agent", "child"]
    task.stop()
