"""The home, or all its tasks, are removed while processes of ours are killed: nothing works on unseen."""

from __future__ import annotations

import os
import shutil
import signal

import pytest

from holdfast.store import lock as locks
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
    task = Task.shell(FAMILY, "--base-interval", "0.2s")
    task.wait_for_log("on")
    path = os.path.join(os.path.dirname(workspace()), "child")
    eventually(lambda: os.path.exists(path) and os.path.getsize(path) > 1, 20, "its child is there")
    with open(path, encoding="utf-8") as file:
        child = int(file.read())
    keeper = eventually(lambda: locks.owner(Home(home).keeper_lock), 20, "a keeper is there")
    assert keeper is not None
    members = {
        "agent": task.agent_pid(),
        "child": child,
        "recorder": kin.recorder_pid(task),
        "runner": task.runner_pid(),
    }
    pids = {**members, "keeper": keeper.pid}
    for name in victims:
        os.kill(pids[name], signal.SIGKILL)
    gone = home if what == "home" else os.path.join(home, "tasks")
    eventually(lambda: removed(gone), 20, f"{gone} is removed")

    def left() -> list[str]:
        return [name for name, pid in members.items() if processes.is_alive(pid)]

    eventually(lambda: not left(), WITHIN_S, "agent, child, recorder and runner are gone")
    if what == "home":
        assert not os.path.exists(home)
    else:
        assert holdfast("ls").returncode == 0
        assert holdfast("run", "--", "true").returncode == 0
