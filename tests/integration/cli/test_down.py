"""holdfast down: stops the keeper; tasks keep running unless --now. (More in test_keeper.)"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import jsonschema
import pytest

from contracts import schema
from holdfast.errors import Unanswered
from holdfast.store import lock as locks
from holdfast.store import lock_owner
from holdfast.store.layout import Home
from holdfast.views.cli.commands import down
from tests.support import kin, processes
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def test_it_leaves_a_durable_flag_and_can_be_given_twice(home: str) -> None:
    for _ in range(2):
        done = holdfast("down")
        assert (done.returncode, done.stdout) == (0, "")
    with open(os.path.join(home, "down"), encoding="utf-8") as file:
        jsonschema.validate(json.load(file), schema.schemas()["down"])
    assert "down" in holdfast("status").stdout


def test_now_interrupts_what_runs_and_says_how_to_go_on() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    Task.shell("true", "--id", "ended").wait_for("completed")
    done = holdfast("down", "--now")
    assert (done.returncode, done.stdout) == (0, "")
    assert "interrupted it; 'holdfast resume it' continues it" in done.stderr
    assert "ended" not in done.stderr
    assert "is stopped. 'holdfast up'" in done.stderr
    # There is no question: it can just be resumed.
    for verb in ("show", "attach"):
        done = task.ask(verb)
        assert "ANSWER" not in done.stdout + done.stderr
        assert "question" not in done.stdout
        assert "needs a person" not in done.stderr
        assert "holdfast resume it" in done.stdout + done.stderr
    assert "it was interrupted by 'holdfast down --now'; 'holdfast resume it' to go on" in " ".join(
        holdfast("status").stdout.split()
    )
    task.stop()


def test_now_with_nothing_at_work_says_that_the_keeper_is_stopped(home: str) -> None:
    done = holdfast("down", "--now")
    assert (done.returncode, done.stdout) == (0, "")
    assert f"the keeper of {home} is stopped" in done.stderr


def test_commands_in_a_home_that_is_down_say_that_nothing_restarts_the_runner(home: str) -> None:
    task = Task.shell(f"test $HOLDFAST_RESUME_COUNT -gt 0 || {kin.WAIT.rstrip('; ')}", "--id", "it")
    task.agent_pid()
    holdfast("down", "--now")
    for verb, state in (("resume", "completed"), ("retry", "completed")):
        words = ("--from", task.manifest()["stage"]) if verb == "retry" else ()
        done = task.ask(verb, *words)
        assert done.returncode == 0, done.stderr
        assert "this home is down: if the runner dies, nothing starts another" in done.stderr
        task.wait_for(state)
    assert os.path.exists(os.path.join(home, "down"))


def test_a_task_without_a_runner_in_a_home_that_is_down_is_not_waited_for_in_vain() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    holdfast("down")
    os.kill(task.runner_pid(), signal.SIGKILL)
    eventually(lambda: not locks.is_held(task.path("runner.lock")), what="the runner is gone")
    short = task.ask("wait", "--timeout", "0.2s")
    assert short.returncode == 6
    assert "its runner is gone and this home is down: 'holdfast up'" in short.stderr
    assert "keeps running" not in short.stderr
    done = task.ask("wait")
    assert (done.returncode, done.stdout) == (4, "it running\n")
    assert "its runner is gone and this home is down: 'holdfast up'" in done.stderr
    shown = task.ask("show").stdout
    assert "This home is down" in shown
    assert "next      holdfast up" in shown
    task.stop()


@pytest.fixture
def lost(home: str) -> Task:
    """A running task whose runner was killed after `down`."""
    task = Task.shell(f"echo at work; {kin.WAIT}", "--id", "it")
    task.wait_for_log("at work")
    lose(task)
    return task


def lose(task: Task) -> None:
    holdfast("down")
    os.kill(task.runner_pid(), signal.SIGKILL)
    eventually(lambda: not locks.is_held(task.path("runner.lock")), what="the runner is gone")


def test_lists_say_that_a_runner_is_gone_and_what_to_do(lost: Task) -> None:
    listed = holdfast("ls", env={"COLUMNS": "80"})
    assert "[no runner] at work" in listed.stdout
    assert "it has no runner, and this home is down: 'holdfast up'" in " ".join(listed.stderr.split())
    (row,) = json.loads(holdfast("ls", "--json").stdout)
    assert row["runner_gone"] is True
    jsonschema.validate(row, schema.schemas()["short-manifest"])
    shown = json.loads(lost.ask("show", "--json").stdout)
    assert shown["runner_gone"] is True
    jsonschema.validate(shown, schema.schemas()["manifest"])
    status = json.loads(holdfast("status", "--json").stdout)
    assert status["runners_gone"] == ["it"]
    lost.stop()
    (row,) = json.loads(holdfast("ls", "--json").stdout)
    assert row["runner_gone"] is False
    assert "[no runner]" not in holdfast("ls").stdout


def test_a_task_that_is_driven_has_its_runner(home: str) -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    # Also at first, while its runner is starting.
    assert json.loads(holdfast("ls", "--json").stdout)[0]["runner_gone"] is False
    task.agent_pid()
    assert json.loads(task.ask("show", "--json").stdout)["runner_gone"] is False
    task.stop()


def test_attach_ends_if_the_task_has_no_runner_and_says_what_to_do(lost: Task) -> None:
    done = lost.ask("attach", "--no-tmux")
    assert (done.returncode, done.stdout) == (4, "at work\n")
    assert "its runner is gone and this home is down: 'holdfast up'" in " ".join(done.stderr.split())
    assert "exit code" not in done.stderr
    lost.stop()


def test_run_ends_if_the_task_has_no_runner_and_says_what_to_do(home: str) -> None:
    argv = [sys.executable, "-m", "holdfast", "run", "--id", "it", "--", "sh", "-c", f"echo on; {kin.WAIT}"]
    with subprocess.Popen(argv, cwd=workspace(), stderr=subprocess.PIPE, text=True) as running:
        task = Task(os.path.join(home, "tasks", "it"))
        eventually(lambda: os.path.exists(task.packet), what="it is made")
        task.wait_for_log("on")
        lose(task)
        _, stderr = running.communicate(timeout=20)
    assert running.returncode == 4
    assert "it is running: its runner is gone and this home is down: 'holdfast up'" in " ".join(
        stderr.split()
    )
    task.stop()


def test_followed_logs_say_that_the_task_has_no_runner_and_continue(lost: Task) -> None:
    argv = [sys.executable, "-m", "holdfast", "logs", "-f", "it"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as following:
        assert following.stderr is not None
        line = following.stderr.readline()
        assert "its runner is gone and this home is down: 'holdfast up'" in line
        assert following.poll() is None
        lost.stop()
        _, more = following.communicate(timeout=20)
    assert (following.returncode, more.strip()) == (0, "")


def test_now_returns_when_what_it_says_is_true(home: str) -> None:
    # Exiting takes a moment; nothing may be reported before that.
    task = Task.shell(f"trap 'sleep 0.7; exit 1' TERM; echo on; {kin.WAIT}", "--id", "slow")
    task.wait_for_log("on")
    agent = task.agent_pid()
    done = holdfast("down", "--now")
    assert task.status() == "interrupted"
    assert not processes.is_alive(agent)
    assert not locks.is_held(task.path("runner.lock"))
    assert (done.returncode, "interrupted slow" in done.stderr) == (0, True)
    task.stop()


def test_a_task_that_takes_too_long_is_named_and_the_request_stays_pending(
    home: str, capsys: pytest.CaptureFixture[str]
) -> None:
    task = Task.shell(f"trap '' TERM; echo on; {kin.WAIT}", "--id", "deaf", "--stop-pause", "5s")
    task.wait_for_log("on")
    assert down.interrupt_all(Home(home), within_s=0.5) == Unanswered.exit_status
    stderr = capsys.readouterr().err
    assert "interrupted deaf" not in stderr
    assert "still interrupting deaf" in stderr
    task.wait_for("interrupted")
    task.stop()


def test_a_wrong_word_is_refused_with_the_one_that_was_meant() -> None:
    assert holdfast("down", "later").returncode == 2
    wrong = holdfast("down", "--nw")
    assert (wrong.returncode, "--now" in wrong.stderr) == (2, True)


@pytest.mark.parametrize("role", ["keeper", "seed"])
def test_a_keeper_or_seed_whose_lock_file_was_removed_is_ended(
    home: str, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It still holds the anchor of its lock."""
    monkeypatch.delenv("HOLDFAST_KEEPER")
    assert holdfast("up").returncode == 0
    lock = Home(home).keeper_lock if role == "keeper" else Home(home).seed_lock
    owner = eventually(lambda: lock_owner.owner(lock), 20, f"the {role} is there")
    # Stopped, or it would notice and exit.
    os.kill(owner.pid, signal.SIGSTOP)
    os.unlink(lock)
    done = holdfast("down")
    assert done.returncode == 0, done.stderr
    eventually(lambda: not processes.is_alive(owner.pid), 20, f"the {role} is gone")
