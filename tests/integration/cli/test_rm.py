"""holdfast rm: removes ended tasks completely or not at all, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from holdfast.packet import inbox
from holdfast.store.layout import Home
from holdfast.testing import Scenario
from tests.support import keepers, kin, processes
from tests.support.packets import Written
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def names(home: str) -> list[str]:
    return sorted(os.listdir(os.path.join(home, "tasks")))


def test_an_ended_task_is_gone_from_disk_and_index(home: str) -> None:
    for task_id in ("one", "two", "three"):
        Task.shell("true", "--id", task_id).wait_for("completed")
    assert len(json.loads(holdfast("ls", "--json").stdout)) == 3
    done = holdfast("rm", "one", "two")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "removed one\nremoved two\n")
    assert names(home) == ["three"]
    assert holdfast("ls", "-q").stdout == "three\n"
    assert holdfast("show", "one").returncode == 3


@pytest.mark.parametrize("state", ["running", "interrupted", "waiting"])
def test_a_task_that_has_not_ended_is_refused(state: str, home: str) -> None:
    script = "kill -9 $$" if state == "waiting" else kin.WAIT
    task = Task.shell(script, "--id", "it", "--base-interval", "60s")
    if state == "interrupted":
        task.agent_pid()
        task.ask("interrupt")
    task.wait_for(state)
    done = holdfast("rm", "it")
    assert done.returncode == 3
    assert f"it has not ended: it is {state}" in done.stderr
    assert "--force" in done.stderr
    assert names(home) == ["it"]
    task.stop()


def test_force_stops_it_first(home: str) -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    agent, runner = task.agent_pid(), task.runner_pid()
    done = holdfast("rm", "--force", "it")
    assert done.returncode == 0, done.stderr
    assert names(home) == []
    assert not processes.is_alive(agent)
    assert not processes.is_alive(runner)


def test_a_task_whose_last_files_are_being_written_is_refused_and_force_waits_for_them(
    home: str, place
) -> None:
    """The manifest shows the end before `_task.done` exists; until then the runner writes to the packet."""
    env = {"HOLDFAST_FAILPOINT": "last_files.before_task_done=stop"}
    task = Task.shell("true", "--id", "it", env=env)
    runner = task.wait_for_event("runner.started")["pid"]
    eventually(lambda: kin.state(runner) == "T", what="the runner is stopped before the marker")
    assert task.status() == "completed"
    done = holdfast("rm", "it")
    assert (done.returncode, names(home)) == (3, ["it"])
    with subprocess.Popen([sys.executable, "-m", "holdfast", "rm", "--force", "it"]) as removing:
        keepers.stays(
            lambda: removing.poll() is None and names(home) == ["it"], 0.7, "it waits for the marker"
        )
        os.kill(runner, signal.SIGCONT)
        assert removing.wait(20) == 0
    assert names(home) == []
    eventually(lambda: not processes.is_alive(runner), what="the runner is gone")


def test_a_task_whose_runner_died_before_its_last_files_is_refused_until_they_are_written(home: str) -> None:
    """No lock protects it then: the missing `_task.done` is all that says that it is not over."""
    task = kin.make("--", "true", task_id="it")
    assert kin.run_runner(task, {"HOLDFAST_FAILPOINT": "last_files.before_task_done=kill"}) == -signal.SIGKILL
    assert task.status() == "completed"
    done = holdfast("rm", "it")
    assert (done.returncode, names(home)) == (3, ["it"])
    assert "it has not ended" in done.stderr
    assert kin.run_runner(task) == 0
    assert holdfast("rm", "it").returncode == 0
    assert names(home) == []


def test_a_task_that_has_ended_is_not_removed_under_a_runner_that_is_still_there(home: str) -> None:
    task = Task.shell("true", "--id", "it", env={"HOLDFAST_FAILPOINT": "runner.before_release=stop"})
    runner = task.wait_for_event("runner.started")["pid"]
    eventually(lambda: kin.state(runner) == "T", what="the runner is stopped with its lock held")
    assert os.path.exists(task.path("done", "_task.done"))
    done = holdfast("rm", "it")
    assert (done.returncode, names(home)) == (3, ["it"])
    os.kill(runner, signal.SIGCONT)
    eventually(lambda: not processes.is_alive(runner), what="the runner is gone")
    assert holdfast("rm", "it").returncode == 0


@pytest.mark.parametrize("others", [1, 3])
def test_force_removes_a_task_that_another_request_ends_first(home: str, others: int) -> None:
    assert holdfast("submit", "--id", "it", "--", "true").returncode == 0
    packet = Home(home).packet("it")
    for _ in range(others):
        inbox.drop(packet, "stop", {}, by="somebody")
    done = holdfast("rm", "--force", "it")
    assert (done.returncode, done.stderr) == (0, "removed it\n")
    assert names(home) == []


def test_force_removes_a_task_whose_runner_was_never_started(home: str) -> None:
    kin.make("--", "true", task_id="it")
    assert holdfast("rm", "--force", "it").returncode == 0
    assert names(home) == []


def test_one_that_cannot_be_removed_does_not_keep_the_others(home: str) -> None:
    task = Task.shell(kin.WAIT, "--id", "live")
    task.agent_pid()
    Task.shell("true", "--id", "ended").wait_for("completed")
    done = holdfast("rm", "live", "nobody", "ended")
    assert done.returncode == 3
    assert done.stderr.count("error:") == 2
    assert names(home) == ["live"]
    task.stop()


def test_symbolic_links_are_removed_and_never_followed(home: str) -> None:
    outside = os.path.join(workspace(), "precious")
    os.mkdir(outside)
    with open(os.path.join(outside, "file"), "w", encoding="utf-8") as file:
        file.write("x")
    task = Task.shell("true", "--id", "it")
    task.wait_for("completed")
    os.symlink(outside, task.path("outputs", "link"))
    os.symlink(os.path.join(outside, "file"), task.path("file-link"))
    assert holdfast("rm", "it").returncode == 0
    assert os.listdir(outside) == ["file"]

    other = Task.shell("true", "--id", "other")
    other.wait_for("completed")
    moved = os.path.join(workspace(), "moved")
    shutil.move(other.packet, moved)
    os.symlink(moved, other.packet)
    assert holdfast("rm", "other").returncode == 0
    assert names(home) == []
    assert os.path.exists(os.path.join(moved, "manifest.json"))


def test_read_only_directories_are_removed_too(home: str) -> None:
    task = Task.shell('cd "$TASK_TMPDIR" && mkdir -p cache/deep && touch cache/deep/f && chmod -R a-w cache')
    task.wait_for("completed")
    assert task.ask("rm").returncode == 0
    assert names(home) == []


def test_a_task_that_cannot_be_read_can_be_removed(home: str) -> None:
    task = Task.shell("true", "--id", "it")
    task.wait_for("completed")
    for name in ("manifest.json", "events.jsonl"):
        os.truncate(task.path(name), 0)
    assert holdfast("show", "it").returncode == 3
    assert holdfast("rm", "it").returncode == 0
    assert names(home) == []


def test_a_removal_that_was_killed_leaves_nothing_that_counts_and_the_keeper_clears_it_away(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Task.shell("true", "--id", "it")
    task.wait_for("completed")
    gone = os.path.join(home, "tasks", ".gone-01ARZ3NDEKTSV4RRFFQ69G5FAV")
    os.rename(task.packet, gone)  # as a killed command may leave it
    assert holdfast("ls", "-q").stdout == ""
    assert holdfast("show", "it").returncode == 3
    again = Task.shell("true", "--id", "it")  # the id is free
    again.wait_for("completed")
    monkeypatch.delenv("HOLDFAST_KEEPER")
    assert holdfast("up").returncode == 0
    eventually(lambda: not os.path.exists(gone), what="the keeper clears it away")
    assert names(home) == ["it"]


def test_wrong_words_are_2_and_an_unknown_task_is_3() -> None:
    assert holdfast("rm").returncode == 2
    assert holdfast("rm", "nobody").returncode == 3
    assert holdfast("rm", "..").returncode == 2


def test_a_task_that_is_named_twice_is_removed_once() -> None:
    Task.shell("true", "--id", "it").wait_for("completed")
    done = holdfast("rm", "it", "it")
    assert (done.returncode, done.stderr) == (0, "removed it\n")


def test_what_outlived_the_task_is_named_when_its_record_goes() -> None:
    task = Task.play(Scenario().grandchild(pid_file="left").result(), "--id", "it")
    task.wait_for("completed")
    pid = kin.pid_in("left")
    done = holdfast("rm", "it")
    assert (done.returncode, processes.is_alive(pid)) == (0, True)
    assert f"processes it left are still running: {pid} " in done.stderr
    assert f"kill {pid}" in done.stderr
    assert f"still running: {pid} " in holdfast("audit").stdout
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("verb", ["rm", "prune"])
def test_nothing_of_a_removed_task_stays_in_the_home(home: str, verb: str) -> None:
    """Locks of its session and workspace, the scripted agent's memory, its window."""
    Written({"scripted_impl": None}).run()
    Task.shell("true", "--id", "stays").wait_for("completed")
    folders = ("sessions", "workspaces", "scripted-agent")
    assert all(os.listdir(os.path.join(home, folder)) for folder in folders)
    words = ["rm", "it"] if verb == "rm" else ["prune", "--older-than", "0s", "--yes"]
    done = holdfast(*words)
    assert done.returncode == 0, done.stderr
    assert {folder: os.listdir(os.path.join(home, folder)) for folder in folders} == {
        folder: [] for folder in folders
    }


def test_what_another_task_uses_stays(home: str) -> None:
    first = Task.play(Scenario().result(), "--id", "first")
    session = first.wait_for("completed")["session_id"]
    second = Task.play(Scenario().say("one").say("two").hang(), "--id", "second", "--session", session)
    second.wait_for_log("two")
    held = os.listdir(Home(home).sessions)
    assert holdfast("rm", "first").returncode == 0
    assert os.listdir(Home(home).sessions) == held
    assert os.listdir(Home(home).scripted_agent) == [session]
    # Nor is another task's session removed with a task that continued it.
    second.stop()
    assert holdfast("rm", "second").returncode == 0
    assert os.listdir(Home(home).sessions) == []
    assert os.listdir(Home(home).scripted_agent) == [session]


def test_an_id_is_not_shortened() -> None:
    for task_id in ("job", "job-2"):
        Task.start("--id", task_id, "--", "true").wait_for("completed")
    assert holdfast("rm", "job").returncode == 0
    done = holdfast("rm", "job")
    assert done.returncode == 3
    assert "hint: 'rm' needs the full id: 'holdfast rm job-2'" in done.stderr
    assert holdfast("ls", "-q").stdout == "job-2\n"


def test_a_link_among_the_tasks_is_no_task(home: str) -> None:
    elsewhere = os.path.join(workspace(), "elsewhere")
    os.mkdir(elsewhere)
    os.makedirs(os.path.join(home, "tasks"), exist_ok=True)
    os.symlink(elsewhere, os.path.join(home, "tasks", "lnk"))
    assert holdfast("rm", "lnk").returncode == 3
    assert holdfast("ls", "-q").stdout == ""
    assert os.listdir(elsewhere) == []


def test_a_session_that_another_task_goes_on_with_stays(home: str) -> None:
    first = Task.play(Scenario().say("hello"))
    session = first.wait_for("completed")["session_id"]
    second = Task.play(Scenario().say("again"), "--session", session)
    second.wait_for("completed")
    memory = os.path.join(home, "scripted-agent", session)
    assert holdfast("rm", first.id).returncode == 0
    assert os.path.isdir(memory)
