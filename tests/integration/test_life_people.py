"""People: interrupt, answer and stop; and tasks never touch files and processes of others."""

from __future__ import annotations

import os
import signal
import urllib.request

import pytest

from holdfast.agents import registry
from holdfast.testing import Scenario
from tests.support import processes
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually


def number_in(name: str) -> int:
    """The number in a file of the workspace, once it is there."""
    path = os.path.join(workspace(), name)

    def read() -> int:
        with open(path, encoding="utf-8") as file:
            return int(file.read())

    return eventually(read, what=f"{name} is written")


# ── interrupt, answer, stop ──


@pytest.mark.req("RES-4", "RES-5", "SUP-9")
def test_an_interrupted_agent_is_gone_and_its_session_gets_the_answer(home: str) -> None:
    task = Task.play(Scenario().fail_if_running().write("a.txt", "a").hang(once=True).write("b.txt", "b"))
    eventually(lambda: "steps[2]" in task.memory().begun_steps(), what="it hangs")
    pid, runner = task.agent_pid(), task.runner_pid()
    assert task.ask("interrupt", "-m", "which database?").returncode == 0
    manifest = task.wait_for("interrupted")
    assert not processes.is_alive(pid)
    assert manifest["interrupt"]["requested"] is True
    assert manifest["interrupt"]["reason"] == "which database?"
    assert manifest["interrupt"]["timestamp"]
    assert manifest["pid"] is None
    # Written after the manifest and before the runner exits.
    eventually(lambda: task.json("state", "current-session.json")["interrupt"]["reason"] == "which database?")
    # It waits for a person: no process of it is left, and no end is marked.
    eventually(lambda: not processes.is_alive(runner), what="the runner left")
    assert not os.path.exists(task.path("done", "_task.done"))
    assert os.path.exists(task.path("env.json"))
    assert task.ask("wait").returncode == 4
    assert task.ask("resume", "-m", 'use $(the) "test" one\n\nplease').returncode == 0
    manifest = task.wait_for("completed")
    start = task.memory().starts()[1]
    assert start.is_resume
    assert 'use $(the) "test" one\n\nplease' in start.prompt
    assert "which database?" in start.prompt
    assert task.memory().overlaps() == []
    assert [effect["path"] for effect in task.memory().effects()] == ["a.txt", "b.txt"]
    assert (manifest["total_retries"], manifest["interrupt"]) == (0, None)


@pytest.mark.req("LCH-18", "W-C2", "SUP-16")
def test_an_agent_that_exits_0_when_it_is_stopped_was_stopped(home: str) -> None:
    """The status that a person set is never overwritten by what the dying process reports."""
    task = Task.shell("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
    task.wait_for_log("ready")
    task.stop()
    manifest = task.manifest()
    assert (manifest["status"], manifest["exit_code"]) == ("killed", 0)
    assert manifest["status_reason"].startswith("stopped by")
    assert task.events("attempt.ended")[0]["outcome"] == "stopped"
    assert not os.path.exists(task.path("done", "command_run.done"))
    assert task.ask("wait").returncode == 1
    assert "bye" in task.log().splitlines()


@pytest.mark.req("LCH-18", "W-C2")
def test_an_agent_that_ignores_the_first_signal_is_killed_by_the_next(home: str) -> None:
    task = Task.play(Scenario().on_signal("TERM", "ignore").say("one").hang(), "--stop-pause", "0.3s")
    task.wait_for_event("agent.text")
    task.stop()
    ended = task.events("attempt.ended")[0]
    assert (ended["outcome"], ended["exit_signal"]) == ("stopped", signal.SIGKILL)


@pytest.mark.req("LCH-18", "SUP-9", "OUT-7")
def test_a_stop_leaves_no_process(home: str) -> None:
    """Not even an orphaned grandchild in its own session, which ignores TERM and lacks our marker."""
    scenario = (
        Scenario()
        .grandchild(60, pid_file="plain.pid", ignore_signals=True)
        .grandchild(60, pid_file="orphan.pid", ignore_signals=True, orphan=True)
        .grandchild(60, pid_file="stripped.pid", ignore_signals=True, orphan=True, strip_env=True)
        .hang()
    )
    task = Task.play(scenario)
    pids = [task.agent_pid(), *(number_in(f"{name}.pid") for name in ("plain", "orphan", "stripped"))]
    task.stop()
    assert [pid for pid in pids if processes.is_alive(pid)] == []
    swept = task.events("attempt.swept")[0]
    assert swept["proof"] == "none left"
    assert {entry["pid"] for entry in swept["killed"]} >= set(pids[1:])
    # Ended is ended: a second stop changes nothing.
    before = task.read("manifest.json")
    again = task.ask("stop")
    assert again.returncode == 0
    assert "already ended" in again.stderr
    assert task.read("manifest.json") == before


@pytest.mark.req("LCH-18", "SUP-9")
def test_the_pause_of_30_s_after_the_first_signal_ends_with_the_process(home: str) -> None:
    """The wait ends as soon as the process has exited."""
    first, last = registry.adapter("command").capabilities.stop
    assert (first.signal, first.pause_s, last.signal) == ("TERM", 30.0, "KILL")
    task = Task.shell("trap 'sleep 0.2; exit 5' TERM; echo ready; while :; do sleep 0.02; done")
    task.wait_for_log("ready")
    task.stop()
    assert task.manifest()["exit_code"] == 5


# ── processes that live on after a success ──


def serving(port: int) -> bool:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
        return answer.read().strip() == b"ok"


@pytest.mark.req("SUP-9")
@pytest.mark.parametrize("policy", ["report", "keep", "kill"])
def test_a_dev_server_of_a_succeeded_agent(home: str, policy: str) -> None:
    scenario = Scenario().server(pid_file="server.pid", port_file="server.port", limit_s=30).say("it is up")
    flags = () if policy == "report" else ("--leftovers", policy)  # `report` is the default
    task = Task.play(scenario, *flags)
    task.wait_for("completed")
    pid, port = number_in("server.pid"), number_in("server.port")
    runner = task.events("runner.started")[0]["pid"]
    eventually(lambda: not processes.is_alive(runner), what="the runner left")
    if policy == "kill":
        assert not processes.is_alive(pid)
        assert pid in [entry["pid"] for entry in task.events("attempt.swept")[0]["killed"]]
        return
    assert processes.is_alive(pid)
    assert serving(port)
    found = task.events("leftovers.found")
    assert [entry["pid"] for event in found for entry in event["processes"]] == (
        [pid] if policy == "report" else []
    )
    if policy == "report":
        assert str(pid) in task.read("outputs", "_summary.md").decode()
    os.kill(pid, signal.SIGKILL)


@pytest.mark.req("SUP-9", "RES-4")
def test_before_a_resume_everything_of_the_old_attempt_is_gone(home: str) -> None:
    """Whatever `leftovers` says: two attempts must not work at the same time."""
    scenario = Scenario().grandchild(60, pid_file="old.pid", once=True).crash("KILL", once=True).say("again")
    task = Task.play(scenario, "--leftovers", "keep")
    task.wait_for("completed")
    assert not processes.is_alive(number_in("old.pid"))


# ── do no harm ──


def test_a_persons_files_are_not_touched(home: str) -> None:
    """A crash, a stop and a retry later every file is as the person left it."""
    folder = workspace()
    mine = os.path.join(folder, "mine.txt")
    with open(mine, "w", encoding="utf-8") as file:
        file.write("before\n")
    task = Task.play(Scenario().write("theirs.txt", "t").crash("KILL", once=True).hang())
    task.wait_for_event("attempt.started", 2)
    with open(mine, "a", encoding="utf-8") as file:
        file.write("while it ran\n")
    seen = os.stat(mine)
    task.stop()
    assert task.ask("retry").returncode == 0
    task.wait_for("running")
    task.stop()
    now = os.stat(mine)
    assert (now.st_ino, now.st_mtime_ns, now.st_mode) == (seen.st_ino, seen.st_mtime_ns, seen.st_mode)
    with open(mine, encoding="utf-8") as file:
        assert file.read() == "before\nwhile it ran\n"
    assert sorted(os.listdir(folder)) == ["mine.txt", "theirs.txt"]


@pytest.mark.req("TST-7")
def test_two_tasks_in_one_directory_resume_their_own_session(home: str) -> None:
    def scenario(name: str) -> Scenario:
        return (
            Scenario()
            .write(f"{name}-1", name)
            .wait_file("go")
            .crash("KILL", once=True)
            .write(f"{name}-2", name)
        )

    one, two = Task.play(scenario("one"), prompt="one"), Task.play(scenario("two"), prompt="two")
    for task in (one, two):
        task.agent_pid()
    with open(os.path.join(workspace(), "go"), "w", encoding="utf-8"):
        pass
    for task, name in ((one, "one"), (two, "two")):
        task.wait_for("completed")
        assert [effect["path"] for effect in task.memory().effects()] == [f"{name}-1", f"{name}-2"]
        assert [start.is_resume for start in task.memory().starts()] == [False, True]
    assert one.manifest()["session_id"] != two.manifest()["session_id"]
