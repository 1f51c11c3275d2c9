"""The seed: it forks runners cheaply, and nothing depends on it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

import holdfast
from holdfast import seed, seed_client
from holdfast.store.layout import Home
from tests.support import kin, processes
from tests.support.tasks import Task, workspace
from tests.support.tasks import holdfast as run_holdfast
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def alone(home: str) -> Iterator[None]:
    """No keeper: only the tests start a seed."""
    lock = kin.alone(home)
    yield
    os.close(lock)


@pytest.fixture
def seed_pid(home: str) -> Iterator[int]:
    pid = kin.start_seed(home)
    yield pid
    if processes.is_alive(pid):
        kin.kill(pid)


def descriptors(pid: int) -> dict[int, str]:
    folder, found = f"/proc/{pid}/fd", dict[int, str]()
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):  # one that was open for a moment
            found[int(name)] = os.readlink(os.path.join(folder, name))
    return found


# ── what it does ──


@pytest.mark.req("LCH-17", "LCH-19")
def test_runners_are_forked_from_the_seed_and_reaped_by_it(home: str, seed_pid: int) -> None:
    tasks = [Task.shell(kin.WAIT + "exit 0") for _ in range(3)]
    runners = [task.runner_pid() for task in tasks]
    assert {kin.parent(pid) for pid in runners} == {seed_pid}
    # In its own session: signals to the seed's group do not reach it.
    assert all(os.getsid(pid) == pid for pid in runners)
    kin.go()
    for task in tasks:
        task.wait_for("completed")
    eventually(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in runners), what="no zombie is left")
    assert os.listdir(f"/proc/{seed_pid}/task") == [str(seed_pid)]  # one thread


def test_a_seed_with_other_settings_forks_no_runner(
    home: str, seed_pid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would not find the record of the task."""
    monkeypatch.setenv("XDG_CONFIG_HOME", os.path.join(os.path.dirname(home), "elsewhere"))
    task = Task.shell(kin.WAIT + "exit 0")
    assert kin.parent(task.runner_pid()) != seed_pid
    kin.go()
    task.wait_for("completed")


def test_nothing_of_the_seed_leaks_into_runner_recorder_and_agent(home: str, seed_pid: int) -> None:
    task = Task.shell(kin.WAIT + "exit 0")
    agent, runner, recorder = task.agent_pid(), task.runner_pid(), kin.recorder_pid(task)
    own = descriptors(seed_pid)
    assert sorted(own)[:3] == [0, 1, 2]
    assert {own[fd] for fd in (0, 1, 2)} == {"/dev/null"}
    eventually(lambda: set(descriptors(agent)) == {0, 1, 2}, what="the shell has loaded, and has no other")
    attempt = task.attempts()[0]
    # The pipe that reports the exec stays open for a moment.
    held = {"/dev/null", os.path.join(attempt, "lock"), attempt, task.path()}
    eventually(
        lambda: set(descriptors(recorder).values()) == held, what="it holds its lock and its directories"
    )
    inherited = set(own.values()) & set(descriptors(runner).values())
    assert {path for path in inherited if not path.startswith(("/dev/null", "anon_inode"))} == set()
    assert not any("seed" in path for pid in (runner, recorder, agent) for path in descriptors(pid).values())
    # Killed, the seed's lock is free at once, although its runner lives.
    kin.kill(seed_pid)
    again = kin.start_seed(home)
    kin.go()
    task.wait_for("completed")
    kin.kill(again)


def test_a_runner_forked_from_the_seed_loads_no_further_module(home: str) -> None:
    scenario = os.path.join(os.path.dirname(home), "scenario.json")
    steps = [
        {"say": "hello"},
        {"tool": {"command": "true"}},
        {"grandchild": {"s": 60, "ignore_signals": False}},
        {"crash": {"signal": "KILL", "once": True}},
        {"result": "done"},
    ]
    with open(scenario, "w", encoding="utf-8") as file:
        json.dump({"schema": "holdfast.scenario/1", "steps": steps}, file)
    tasks = [
        kin.make("--agent", "scripted", "-o", f"scenario={scenario}", "do it", task_id="scripted"),
        kin.make("--", "sh", "-c", "[ $HOLDFAST_RESUME_COUNT = 1 ] || kill -9 $$", task_id="command"),
        kin.make("--leftovers", "kill", "--", "sh", "-c", "setsid sleep 60 &", task_id="leftovers"),
    ]
    script = """
import json, sys
from holdfast import seed, spawn
seed.prepare()
from holdfast.runner.main import main

class Searched:
    names = []

    def find_spec(self, name, path=None, target=None):
        self.names.append(name)  # also one that does not exist: to look for it costs more than to find it

sys.meta_path.insert(0, Searched())
status = [main([packet]) for packet in sys.argv[1:]]
print(json.dumps([status, Searched.names]))
"""
    argv = [sys.executable, "-c", script, *[task.packet for task in tasks]]
    done = subprocess.run(argv, capture_output=True, timeout=60, check=False)
    assert json.loads(done.stdout) == [[0, 0, 0], []], done.stderr
    assert [task.status() for task in tasks] == ["completed", "completed", "completed"]
    for task in tasks[:1]:
        for item in [i for e in task.events("leftovers.found") for i in e["processes"]]:
            os.kill(item["pid"], signal.SIGKILL)


def test_a_runner_that_takes_over_keeps_no_idle_recorder(home: str, seed_pid: int) -> None:
    task = Task.shell(kin.WAIT + "exit 0")
    task.agent_pid()
    task.kill_runner()
    assert seed_client.fork_runner(Home(home).packet(task.id))
    runner = task.runner_pid()
    assert kin.parent(runner) == seed_pid
    with open(f"/proc/{runner}/task/{runner}/children", encoding="ascii") as file:
        assert file.read() == ""
    kin.go()
    task.wait_for("completed")


def test_what_a_runner_had_to_load_is_in_the_seed_for_the_next_one(
    home: str, seed_pid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def has_loaded_msgspec() -> bool:
        with open(f"/proc/{seed_pid}/maps", encoding="utf-8") as file:
            return "msgspec" in file.read()

    assert not has_loaded_msgspec()
    program = os.path.join(os.path.dirname(home), "claude")
    with open(program, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexit 1\n")
    os.chmod(program, 0o700)
    monkeypatch.setenv("PATH", os.path.dirname(home), prepend=os.pathsep)
    task = kin.make("--agent", "claude", "do it", task_id="other")
    assert seed_client.fork_runner(Home(home).packet(task.id))
    eventually(has_loaded_msgspec, what="the seed has loaded the adapter")
    run_holdfast("stop", task.id)


@pytest.mark.req("W-A6")
def test_there_is_one_seed_per_home(home: str, seed_pid: int) -> None:
    second = subprocess.run(
        [sys.executable, "-m", "holdfast.seed"], capture_output=True, timeout=30, check=False
    )
    assert second.returncode == 75
    assert seed_client.ask(Home(home), {"verb": "ping"}) == {"pong": seed_pid}


# ── without it ──


@pytest.mark.req("LCH-17")
def test_a_task_takes_the_same_path_with_and_without_a_seed_however_short_it_is(home: str) -> None:
    def path_of(task: Task) -> list[str]:
        task.wait_for("completed")
        return [event["type"] for event in task.events()]

    cold = path_of(Task.shell("exit 0"))
    pid = kin.start_seed(home)
    warm = path_of(Task.shell("exit 0"))
    slow = Task.shell(kin.WAIT + "exit 0")
    assert kin.parent(slow.runner_pid()) == pid
    kin.go()
    assert cold == warm == path_of(slow)
    assert {"runner.started", "attempt.opened", "attempt.started", "attempt.ended", "stage.done"} <= set(cold)
    kin.kill(pid)


@pytest.mark.req("LCH-17", "LCH-1")
def test_a_killed_seed_is_passed_over_and_its_runners_live_on(home: str, seed_pid: int) -> None:
    first = Task.shell(kin.WAIT + "exit 0")
    runner = first.runner_pid()
    kin.kill(seed_pid)
    assert os.path.exists(os.path.join(home, "seed.sock"))
    second = Task.shell("exit 0")
    second.wait_for("completed")
    assert processes.is_alive(runner)
    kin.go()
    first.wait_for("completed")
    assert len(first.events("runner.started")) == 1


@pytest.mark.req("LCH-17")
def test_a_stopped_seed_is_waited_for_half_a_second_and_the_lock_decides(home: str, seed_pid: int) -> None:
    os.kill(seed_pid, signal.SIGSTOP)
    start_mono = time.monotonic()
    task = Task.shell(kin.WAIT + "exit 0")
    waited_s = time.monotonic() - start_mono
    assert waited_s >= seed_client.PATIENCE_S
    agent, runner = task.agent_pid(), task.runner_pid()
    assert kin.parent(runner) != seed_pid
    # Woken, it forks the runner that was asked for; that one finds the lock held and leaves.
    os.kill(seed_pid, signal.SIGCONT)
    eventually(
        lambda: seed_client.ask(Home(home), {"verb": "ping"}) == {"pong": seed_pid}, what="the seed answers"
    )
    eventually(lambda: not processes.descendants(seed_pid), what="the late runner left")
    assert len(task.events("runner.started")) == 1
    assert (task.agent_pid(), task.runner_pid()) == (agent, runner)
    kin.go()
    task.wait_for("completed")
    assert len(task.events("attempt.opened")) == 1


@pytest.mark.req("LCH-17")
def test_a_seed_killed_while_it_serves_a_client_costs_nothing(home: str) -> None:
    pid = kin.start_seed(home, {"HOLDFAST_FAILPOINT": "seed.accepted=kill@3"})
    done: list[Task] = []
    for _ in range(3):
        done.append(Task.shell("exit 0"))
    for task in done:
        task.wait_for("completed")
        assert len(task.events("runner.started")) == 1
    eventually(lambda: not processes.is_alive(pid), what="the failpoint acted")


def test_clients_that_speak_nonsense_or_leave_do_not_hurt_the_seed(home: str, seed_pid: int) -> None:
    nonsense = [
        b"",
        b"\n",
        b"{",
        b"[]",
        b"5",
        b'{"verb": "fork"}',
        b'{"verb": "fork", "packet": 5}',
        b"\xff\xfe",
    ]
    nonsense += [b"[" * 4000, b'{"verb": "fork", "packet": "../../etc"}', b"x" * 4096]
    folder = os.open(home, os.O_RDONLY)
    try:
        for data in nonsense:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.connect(seed_client.short_path(Home(home), folder))
                client.sendall(data)
    finally:
        os.close(folder)
    eventually(
        lambda: seed_client.ask(Home(home), {"verb": "ping"}) == {"pong": seed_pid}, what="the seed answers"
    )
    task = Task.shell("exit 0")
    task.wait_for("completed")


def test_a_seed_whose_home_is_gone_forks_nothing_elsewhere(home: str, seed_pid: int) -> None:
    assert seed_client.ask(Home(home), {"verb": "fork", "packet": "/nowhere/at/all"}) is not None
    eventually(lambda: not processes.descendants(seed_pid), what="the runner of no task left")
    assert not os.path.exists("/nowhere")


# ── a new version ──


def test_a_seed_of_an_older_version_is_renewed_before_it_forks(home: str, place) -> None:
    library = os.path.join(place.root, "library")
    shutil.copytree(
        os.path.dirname(holdfast.__file__),
        os.path.join(library, "holdfast"),
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    env = {"PYTHONPATH": library}
    pid = kin.start_seed(home, env)
    old = Task.shell(kin.WAIT + "exit 0", env=env)
    assert old.wait_for_event("runner.started")["version"] == holdfast.__version__
    assert kin.parent(old.runner_pid()) == pid

    init = os.path.join(library, "holdfast", "__init__.py")
    with open(init, encoding="utf-8") as file:
        text = file.read()
    with open(init, "w", encoding="utf-8") as file:
        file.write(text.replace(f'"{holdfast.__version__}"', '"99.0"'))
    # The client that brings the news starts its runner itself; it is new anyway.
    first = Task.shell("exit 0", env=env)
    first.wait_for("completed")
    eventually(
        lambda: seed_client.ask(Home(home), {"verb": "ping"}) == {"pong": pid}, what="the seed is back"
    )
    second = Task.shell(kin.WAIT + "exit 0", env=env)
    assert second.wait_for_event("runner.started")["version"] == "99.0"
    assert kin.parent(second.runner_pid()) == pid
    kin.go()
    for task in (old, second):
        task.wait_for("completed")
    # Those too that the old image forked are reaped.
    eventually(lambda: not _children_of(pid), what="no zombie is left")
    kin.kill(pid)


def _children_of(pid: int) -> str:
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return file.read()


def test_the_installed_version_is_read_from_the_file() -> None:
    assert seed.installed_version() == holdfast.__version__


# ── long paths ──


def test_a_home_with_a_long_path_has_a_seed_too(place, clean_env, monkeypatch: pytest.MonkeyPatch) -> None:
    home = os.path.join(place.root, *["a-rather-long-name-of-a-directory"] * 6)
    assert len(home) > 200
    os.makedirs(home, mode=0o700)
    monkeypatch.setenv("HOLDFAST_HOME", home)
    lock = kin.alone(home)
    pid = kin.start_seed(home)
    task = Task.shell(kin.WAIT + "exit 0")
    assert kin.parent(task.runner_pid()) == pid
    kin.go()
    task.wait_for("completed")
    assert run_holdfast("show", task.id, cwd=workspace()).returncode == 0
    kin.kill(pid)
    os.close(lock)


def test_a_runner_inherits_what_every_runner_would_compile() -> None:
    script = (
        "import re\n"
        "from holdfast import recorder, seed\n"
        "from holdfast.redact import Redactor\n"
        "seed.prepare()\n"
        "re._compiler.compile = lambda *_: exit('compiled in every runner')\n"
        "assert recorder._boot_id\n"
        "assert Redactor({'MY_TOKEN': 'abcdefghij'})('say abcdefghij') == 'say ***'\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
