"""The keeper: restarts what died, is restarted when it dies, and its death affects no task."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from holdfast.model.spec import Limits, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import environment, inbox
from holdfast.packet.create import create
from holdfast.runner_process import start_runner_for_keeper
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet
from tests.support import keepers, kin, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.terminal import Terminal
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("with_keeper")


def up(**env: str) -> None:
    done = holdfast("up", env=env)
    assert done.returncode == 0, done.stderr


def write_starts(home: str, *ago_s: float) -> None:
    """As if the keeper had been started this many seconds ago."""
    starts = [time.time() - ago for ago in ago_s]
    with open(Home(home).keeper_starts, "w", encoding="utf-8") as file:
        json.dump({"schema": "holdfast.keeper-starts/1", "starts": starts}, file)


def starts(home: str) -> list[float]:
    with open(Home(home).keeper_starts, encoding="utf-8") as file:
        return json.load(file)["starts"]


# ── it brings back runners ──


@pytest.mark.req("LCH-1", "LCH-19")
def test_a_runner_that_was_killed_is_back_and_has_the_same_agent(home: str) -> None:
    task = Task.shell(kin.WAIT)
    keepers.wait_for(home)
    agent, runner = task.agent_pid(), task.runner_pid()
    task.kill_runner()
    task.wait_for_event("runner.started", 2)
    eventually(lambda: task.runner_pid() != runner)
    assert task.manifest()["pid"] == agent
    assert processes.is_alive(agent)
    kin.go()
    manifest = task.wait_for("completed")
    assert (manifest["attempt"], manifest["total_retries"]) == (1, 0)


def test_a_task_whose_maker_was_killed_gets_its_runner(home: str) -> None:
    task = kin.make("--", "sh", "-c", "exit 0")
    assert task.status() == "spawning"
    up()
    task.wait_for("completed")


def test_a_request_for_a_task_without_a_runner_gets_one(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.setenv("HOLDFAST_KEEPER", "off")
        task = Task.shell("test $HOLDFAST_RESUME_COUNT = 1 || " + kin.WAIT.rstrip("; "))
        task.agent_pid()
        task.ask("interrupt")
        task.wait_for("interrupted")
        eventually(lambda: not locks.is_held(task.path("runner.lock")))
    inbox.drop(Packet(task.packet), "resume", {}, by="a test")
    up()
    task.wait_for("completed")


@pytest.mark.req("SUP-12")
def test_a_task_on_which_runners_die_is_parked(home: str) -> None:
    task = kin.make("--", "sh", "-c", "exit 0")
    up(HOLDFAST_FAILPOINT="attempt.made=kill")
    manifest = task.wait_for("interrupted", within_s=40)
    assert "runners in a row died on this task without progress" in manifest["interrupt"]["reason"]
    eventually(lambda: not locks.is_held(task.path("runner.lock")))
    count = len(task.events("runner.started"))
    assert count == 6
    assert any(task.id in line and "waits for a person" in line for line in keepers.status(home)["attention"])
    keepers.stays(lambda: len(task.events("runner.started")) == count, 1.5, "no runner is started any more")


def test_a_runner_that_is_stopped_is_woken_and_shown(home: str) -> None:
    task = Task.shell(kin.WAIT)
    keepers.wait_for(home)
    task.agent_pid()
    runner = task.runner_pid()
    os.kill(runner, signal.SIGSTOP)
    done = task.ask("stop")
    assert (done.returncode, "the request is still pending" in done.stderr) == (6, True)
    assert any("has not answered a request" in line for line in keepers.status(home)["attention"])

    def looked_after() -> bool:
        inbox.ring_keeper(Home(home))  # otherwise it checks every 15 s
        return task.status() == "killed"

    eventually(looked_after, 30, "the keeper wakes the runner", journal=task.packet)
    task.wait_for("killed")


# ── one per home ──


def test_a_second_keeper_exits_75(home: str) -> None:
    up()
    argv = [sys.executable, "-m", "holdfast.keeper"]
    second = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert second.returncode == 75
    assert f"is held by process {keepers.pid(home)}" in second.stderr


def test_up_twice_is_one_keeper(home: str) -> None:
    up()
    first = keepers.pid(home)
    up()
    assert keepers.pid(home) == first
    assert keepers.all_pids(home) == [first]


def test_a_keeper_leaves_when_its_home_is_gone(home: str) -> None:
    up()
    pid = keepers.pid(home)
    os.rename(home, home + "-moved")
    # Wake it. If it has already left, its bell has no reader, and a plain open would block.
    inbox.ring_keeper(Home(home + "-moved"))
    eventually(lambda: not processes.is_alive(pid), what="the keeper leaves")
    os.rename(home + "-moved", home)


# ── it is brought back ──


@pytest.mark.req("LCH-19")
def test_a_keeper_that_was_killed_is_started_again_by_a_runner(home: str) -> None:
    task = Task.shell(kin.WAIT, "--base-interval", "0.5s", "--stale", "none")
    first = keepers.wait_for(home)
    agent = task.agent_pid()
    write_starts(home, 100)
    assert keepers.kill(home) == first
    second = keepers.wait_for(home, other_than=first)
    assert processes.is_alive(agent)
    assert len(starts(home)) == 2
    keepers.stays(lambda: keepers.all_pids(home) == [second], 0.5, "there is one keeper")
    kin.go()
    assert task.wait_for("completed")["attempt"] == 1


def test_no_keeper_is_started_while_the_home_is_down(home: str) -> None:
    task = Task.shell(kin.WAIT, "--base-interval", "0.1s", "--stale", "none")
    keepers.wait_for(home)
    task.agent_pid()
    assert holdfast("down").returncode == 0
    assert keepers.pid(home) == 0
    keepers.stays(lambda: keepers.log(home).count("started") == 1, 2.5, "no keeper is started")
    assert keepers.pid(home) == 0
    kin.go()
    task.wait_for("completed")


def test_keepers_that_cannot_live_are_shown_and_started_all_the_same(home: str) -> None:
    task = Task.shell(kin.WAIT, "--base-interval", "0.1s", "--stale", "none")
    keepers.wait_for(home)
    task.agent_pid()
    eventually(lambda: keepers.failures(home) == 0, what="the keeper has worked")
    # Five died before they had worked, the last of them just now: the next start must wait.
    write_starts(home, 500, 400, 300, 200, 1)
    first = keepers.kill(home)
    keepers.stays(lambda: keepers.pid(home) == 0, 2.5, "it is too early")
    shown = keepers.status(home)
    assert shown["keeper"] is None
    assert len(shown["keeper_starts"]) == 5
    assert any("5 keepers in a row died before they had worked" in line for line in shown["attention"])
    assert "not running, after 5 failed starts" in holdfast("doctor").stdout
    # A minute later: there is no last start, and one that works ends the count.
    write_starts(home, 560, 460, 360, 260, 61)
    keepers.wait_for(home, other_than=first)
    eventually(lambda: keepers.failures(home) == 0, what="the keeper has worked")
    assert len(starts(home)) == 6
    kin.go()
    task.wait_for("completed")


def test_the_start_by_a_person_begins_a_new_count(home: str) -> None:
    write_starts(home, 500, 400, 300, 200, 1)
    up()
    assert keepers.pid(home)
    assert len(starts(home)) == 1


def test_the_pause_between_starts_is_on_disk(home: str) -> None:
    task = Task.shell(kin.WAIT, "--base-interval", "0.1s", "--stale", "none")
    keepers.wait_for(home)
    task.agent_pid()
    write_starts(home, 30, 20, 10, 1)
    keepers.kill(home)
    # 16 s after the fourth: too early, whichever runner checks.
    keepers.stays(lambda: keepers.pid(home) == 0 and len(starts(home)) == 4, 2.5, "it is too early")
    kin.go()
    task.wait_for("completed")


def test_no_keeper_is_started_if_it_is_disabled(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_KEEPER", "off")
    task = Task.shell("sleep 1.5", "--base-interval", "0.1s", "--stale", "none")
    task.wait_for("completed")
    assert not os.path.exists(Home(home).keeper_log)


@pytest.mark.leaves_processes
def test_with_a_hundred_live_tasks_one_new_keeper_and_no_task_is_touched(home: str) -> None:
    up()
    packets = [sleeper(Home(home), f"task-{number:03}") for number in range(100)]
    for packet in packets:
        start_runner_for_keeper(packet)
    tasks = [Task(packet.path) for packet in packets]
    before = {}
    for task in tasks:
        manifest = task.wait_for("running", within_s=60)
        before[task.id] = (manifest["pid"], manifest["runner"]["pid"])
    write_starts(home, 100)
    first = keepers.kill(home)
    start_mono = time.monotonic()
    second = keepers.wait_for(home, other_than=first, within_s=10)
    # A runner looks at once when it watches the keeper, and at the latest a second after its start.
    assert time.monotonic() - start_mono < 2.0
    keepers.stays(lambda: keepers.pid(home) == second, 1.0, "one keeper")
    assert keepers.all_pids(home) == [second]
    assert len(starts(home)) == 2
    after = {task.id: (task.manifest()["pid"], task.manifest()["runner"]["pid"]) for task in tasks}
    assert after == before
    assert all(processes.is_alive(pid) for pids in after.values() for pid in pids)


def sleeper(home: Home, task_id: str) -> Packet:
    """A live task, made without a command: a hundred commands would take longer than the test."""
    spec = TaskSpec(
        task_id=task_id,
        task_name=task_id,
        goal="sleep",
        agent="command",
        command=["sleep", "600"],
        project_dir=workspace(),
        stages=(StageSpec(name="command_run", agent="command"),),
        limits=Limits(),
    )
    captured = environment.capture(dict(os.environ), ("HOLDFAST_TEST_ID",))
    return create(home, spec, prompt=None, env=captured, status=Status.SPAWNING)


# ── up and down ──


def test_down_leaves_running_tasks_to_finish(home: str) -> None:
    task = Task.shell(kin.WAIT)
    keepers.wait_for(home)
    agent, runner = task.agent_pid(), task.runner_pid()
    assert holdfast("down").returncode == 0
    assert keepers.pid(home) == 0
    assert not locks.is_held(Home(home).seed_lock)
    assert keepers.status(home)["down"] is True
    assert processes.is_alive(agent)
    assert processes.is_alive(runner)
    kin.go()
    task.wait_for("completed")


def test_down_now_interrupts_them_and_resume_goes_on(home: str) -> None:
    task = Task.shell("test $HOLDFAST_RESUME_COUNT = 1 || " + kin.WAIT.rstrip("; "))
    waiting = kin.make("--", "true", task_id="never-started")
    keepers.wait_for(home)
    agent = task.agent_pid()
    done = holdfast("down", "--now")
    assert done.returncode == 0, done.stderr
    manifest = task.wait_for("interrupted")
    assert manifest["interrupt"]["reason"] == "holdfast down --now"
    assert not processes.is_alive(agent)
    task.ask_patiently("resume")
    task.wait_for("completed", within_s=60)
    waiting.wait_for("interrupted", "completed", within_s=60)


def test_up_after_down_takes_up_what_lives(home: str) -> None:
    task = Task.shell(kin.WAIT)
    keepers.wait_for(home)
    agent = task.agent_pid()
    holdfast("down")
    task.kill_runner()
    up()
    assert not os.path.exists(Home(home).down)
    task.wait_for_event("runner.started", 2)
    assert task.manifest()["pid"] == agent
    kin.go()
    task.wait_for("completed")


def test_a_run_that_is_refused_leaves_a_home_down(home: str) -> None:
    Task.start("--id", "a", "--", "true").wait_for("completed")
    holdfast("down")
    done = holdfast("run", "--id", "a", "--", "true", cwd=workspace())
    assert done.returncode == 2
    assert os.path.exists(Home(home).down)
    assert keepers.pid(home) == 0


def test_run_lifts_down(home: str) -> None:
    assert holdfast("down").returncode == 0
    Task.shell("true").wait_for("completed")
    assert not os.path.exists(Home(home).down)
    keepers.wait_for(home)


# ── its own life ──


def test_a_keeper_that_run_started_leaves_when_idle_and_one_of_up_stays(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_KEEPER_IDLE", "0.3s")
    Task.shell("true").wait_for("completed")
    eventually(
        lambda: "exited: idle" in keepers.log(home), what="the keeper leaves", journal=keepers.log_of(home)
    )
    eventually(lambda: not locks.is_held(Home(home).keeper_lock))
    up()
    pid = keepers.pid(home)
    keepers.stays(lambda: keepers.pid(home) == pid, 1.0, "the keeper stays")


def test_up_makes_a_keeper_stay_that_run_started(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_KEEPER_IDLE", "1s")
    task = Task.shell(kin.WAIT)
    pid = keepers.wait_for(home)
    up()
    kin.go()
    task.wait_for("completed")
    keepers.stays(lambda: keepers.pid(home) == pid, 2.5, "the keeper stays")
    holdfast("down")
    assert not os.path.exists(Home(home).up)


def test_a_keeper_started_with_an_empty_environment_runs_tasks_as_they_were_asked_for(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = os.path.join(workspace(), "tools")
    os.mkdir(tools)
    with open(os.path.join(tools, "my-tool"), "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\necho "tool: $MINE, $TZ, $HOME, $(umask)"\n')
    os.chmod(os.path.join(tools, "my-tool"), 0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("MINE", "a value")
    monkeypatch.setenv("TZ", "Antarctica/Troll")
    umask = os.umask(0o027)
    try:
        task = kin.make("--env", "MINE", "--", "my-tool")
    finally:
        os.umask(umask)
    bare = {"HOLDFAST_HOME": home, "HOLDFAST_TEST_ID": os.environ["HOLDFAST_TEST_ID"]}
    bare["HOME"] = os.environ["HOME"]  # that of the account has no record of the task
    argv = [sys.executable, "-m", "holdfast", "up"]
    done = subprocess.run(argv, env=bare, cwd="/", capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    task.wait_for("completed")
    assert task.log() == f"tool: a value, Antarctica/Troll, {os.environ['HOME']}, 0027\n"


@pytest.mark.req("LCH-1", "LCH-19")
def test_a_logout_touches_nothing(home: str) -> None:
    terminal = Terminal("run", "--id", "it", "--", "sh", "-c", kin.WAIT, cwd=workspace())
    terminal.read_until("running")
    task = Task(os.path.join(home, "tasks", "it"))
    agent, runner, keeper = task.agent_pid(), task.runner_pid(), keepers.wait_for(home)
    recorder = kin.recorder_pid(task)
    ours = [agent, runner, keeper, recorder]
    # What a login shell's exit does: SIGHUP to every process of the session, then the terminal is gone.
    session = [p.pid for p in processes.descendants() if session_of(p.pid) == terminal.pid]
    assert terminal.pid in session
    assert not set(session) & set(ours)
    for pid in session:
        try:
            os.kill(pid, signal.SIGHUP)
        except ProcessLookupError:
            continue
    terminal.hang_up()
    assert terminal.status == -signal.SIGHUP
    keepers.stays(lambda: all(processes.is_alive(pid) for pid in ours), 0.5, "they live on")
    kin.go()
    assert task.wait_for("completed")["attempt"] == 1


def session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def test_status_reports_a_task_without_runner_and_wait_restarts_the_keeper(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        without.setenv("HOLDFAST_KEEPER", "off")
        task = Task.shell(kin.WAIT)
        agent = task.agent_pid()
        task.kill_runner()
    assert [line for line in keepers.status(home)["attention"] if "has no runner" in line]
    kin.go()
    done = holdfast("wait", task.id, "--timeout", "30s")
    assert done.returncode == 0, done.stderr
    assert task.manifest()["attempt"] == 1
    assert not processes.is_alive(agent)
