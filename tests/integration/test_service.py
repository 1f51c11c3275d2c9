"""The keeper as a service: installed, restarted and removed by a stand-in that kills exactly as systemd
does."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from holdfast.store import lock as locks
from holdfast.store import lock_owner
from tests.support import kin, processes, systemd
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

SCRIPT = "while [ ! -e go ]; do sleep 0.05; done; echo done"


@pytest.fixture
def state(home: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """systemctl and loginctl in PATH; returns where they remember things."""
    root = os.path.dirname(home)
    folder = os.path.join(root, "bin")
    os.mkdir(folder)
    found = os.path.join(root, "systemd")
    systemd.put_into(folder, found)
    monkeypatch.setenv("PATH", folder, prepend=":")
    monkeypatch.delenv("HOLDFAST_KEEPER")
    return found


def keeper(home: str) -> int:
    """The pid of the living keeper."""
    lock = os.path.join(home, "keeper.lock")

    def living() -> int:
        owner = lock_owner.owner(lock) if locks.is_held(lock) else None
        return owner.pid if owner is not None and processes.is_alive(owner.pid) else 0

    return eventually(living, what="a keeper lives")


def unit(state: str) -> systemd.Unit:
    with open(os.path.join(os.environ["HOLDFAST_HOME"], "service.json"), encoding="utf-8") as file:
        return systemd.Unit(state, json.load(file)["unit"])


def install() -> None:
    done = holdfast("service", "install")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("installed ")


def let_go() -> None:
    with open(os.path.join(workspace(), "go"), "w", encoding="utf-8"):
        pass


def test_a_restart_of_the_unit_leaves_agent_and_runner_alone(home: str, state: str) -> None:
    install()
    first = keeper(home)
    assert first == unit(state).main_pid
    task = Task.shell(SCRIPT)
    agent, runner = task.agent_pid(), task.runner_pid()
    subprocess.run(
        ["systemctl", "--user", "restart", os.path.basename(unit(state).path)], check=True, timeout=30
    )
    second = keeper(home)
    assert second != first
    assert second == unit(state).main_pid
    assert processes.is_alive(agent)
    assert processes.is_alive(runner)
    # The new keeper guards it: a runner that dies now is brought back, and adopts the same agent.
    task.kill_runner()
    eventually(lambda: task.runner_pid() != runner, what="a new runner")
    assert processes.is_alive(agent)
    let_go()
    task.wait_for("completed")
    assert task.manifest()["attempt"] == 1


def test_a_runner_starts_a_dead_keeper_through_the_unit(home: str, state: str) -> None:
    install()
    task = Task.shell(SCRIPT, "--base-interval", "1s")
    task.agent_pid()
    first = keeper(home)
    os.kill(first, signal.SIGKILL)
    second = eventually(lambda: (pid := keeper(home)) != first and pid, within_s=20, what="a new keeper")
    assert second == unit(state).main_pid
    let_go()
    task.wait_for("completed")


def test_runner_keeper_and_seed_killed_at_once_come_back_by_the_unit(home: str, state: str) -> None:
    """No runner is alive: systemd sees that its main process failed, and starts it again."""
    install()
    assert unit(state).settings()["Restart"] == ["on-failure"]
    task = Task.shell(SCRIPT)
    agent, runner, first = task.agent_pid(), task.runner_pid(), keeper(home)
    lock = os.path.join(home, "seed.lock")
    seed = eventually(lambda: lock_owner.owner(lock) if locks.is_held(lock) else None, what="a seed lives")
    assert seed is not None
    kin.kill(runner, first, seed.pid)
    # As systemd does after RestartSec.
    subprocess.run(
        ["systemctl", "--user", "start", os.path.basename(unit(state).path)], check=True, timeout=30
    )
    eventually(lambda: task.runner_pid() != runner, 20, "a new runner lives", journal=task.packet)
    assert keeper(home) == unit(state).main_pid != first
    assert processes.is_alive(agent)
    let_go()
    assert task.wait_for("completed")["attempt"] == 1


def test_a_keeper_without_the_unit_is_replaced_by_the_units(home: str, state: str) -> None:
    assert holdfast("up").returncode == 0
    first = keeper(home)
    install()
    assert keeper(home) == unit(state).main_pid != first


def test_the_units_keeper_runs_a_task_with_the_environment_of_the_shell(
    home: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install()
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    task = Task.shell('echo "$TZ|$HOME|$PATH" > got')
    task.wait_for("completed")
    with open(os.path.join(workspace(), "got"), encoding="utf-8") as file:
        assert file.read() == f"Asia/Tokyo|{os.environ['HOME']}|{os.environ['PATH']}\n"


def test_status_shows_the_unit_and_remove_undoes_everything(home: str, state: str) -> None:
    task = Task.shell(SCRIPT)
    agent = task.agent_pid()
    install()
    facts = json.loads(holdfast("service", "status", "--json").stdout)
    assert facts["schema"] == "holdfast.service-status/1"
    assert facts["state"] == "active"
    assert facts["enabled"] == "enabled"
    assert facts["lingers"] is True
    assert "active" in holdfast("service", "status").stdout
    path = unit(state).path
    assert os.path.exists(path)

    done = holdfast("service", "remove")
    assert done.returncode == 0, done.stderr
    assert not os.path.exists(path)
    assert not os.path.exists(os.path.join(home, "service.json"))
    assert sorted(os.listdir(state)) == [
        "calls.jsonl",
        f"{os.path.basename(path)}.pid",
    ]  # neither enabled nor lingering
    assert holdfast("service", "status").returncode == 3
    assert processes.is_alive(agent)
    let_go()
    task.wait_for("completed")


def test_a_copied_home_neither_starts_nor_removes_the_originals_unit(home: str, state: str) -> None:
    install()
    first = keeper(home)
    copy = home + "-copy"
    subprocess.run(["cp", "-a", home, copy], check=True, timeout=30)
    away = {"HOLDFAST_HOME": copy}
    assert holdfast("up", env=away).returncode == 0
    eventually(lambda: keeper(copy) != first, 10, "the lock of the copy names a keeper of its own")
    done = holdfast("service", "remove", env=away)
    assert done.returncode == 0, done.stderr
    assert not os.path.exists(os.path.join(copy, "service.json"))
    assert (keeper(home), unit(state).main_pid) == (first, first)
    assert os.path.exists(unit(state).path)
    assert holdfast("down", env=away).returncode == 0


def test_installing_twice_is_the_same_as_once(home: str, state: str) -> None:
    install()
    install()
    assert keeper(home) == unit(state).main_pid
    assert holdfast("service", "remove").returncode == 0
    assert "linger" not in os.listdir(state)


def test_who_lingered_before_lingers_afterwards(home: str, state: str) -> None:
    with open(os.path.join(state, "linger"), "w", encoding="utf-8"):
        pass
    install()
    assert holdfast("service", "remove").returncode == 0
    assert "linger" in os.listdir(state)


def test_down_stops_the_units_keeper_for_good(home: str, state: str) -> None:
    install()
    pid = keeper(home)
    assert holdfast("down").returncode == 0
    assert not processes.is_alive(pid)
    assert not unit(state).is_active()
    assert holdfast("up").returncode == 0
    assert keeper(home) == unit(state).main_pid
