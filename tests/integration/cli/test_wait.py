"""holdfast wait: one task, several, any of them, with a timeout."""

from __future__ import annotations

import json
import os
import signal
import time

import jsonschema
import pytest

from contracts import schema
from tests.support import kin
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


@pytest.mark.parametrize(
    ("script", "flags", "state", "status"),
    [
        ("true", [], "completed", 0),
        ("exit 9", [], "failed", 1),
        ("sleep 30", ["--deadline", "0.2s"], "abandoned", 5),
    ],
)
def test_the_exit_status_and_the_line_say_how_it_ended(
    script: str, flags: list[str], state: str, status: int
) -> None:
    task = Task.shell(script, "--id", "it", *flags)
    done = task.ask("wait")
    assert (done.returncode, done.stdout) == (status, f"it {state}\n")


def test_an_interrupted_task_is_4_and_a_stopped_one_1() -> None:
    task = Task.shell(kin.WAIT)
    task.agent_pid()
    task.ask("interrupt")
    assert task.ask("wait").returncode == 4
    task.ask("stop")
    assert task.ask("wait").returncode == 1


def test_several_are_printed_as_they_settle_and_the_first_that_did_not_complete_decides() -> None:
    slow = Task.shell(kin.WAIT, "--id", "slow")
    bad = Task.shell("exit 1", "--id", "bad")
    bad.wait_for("failed")
    kin.go()
    done = holdfast("wait", "slow", "bad", "slow")
    assert done.returncode == 1
    assert sorted(done.stdout.splitlines()) == ["bad failed", "slow completed"]
    slow.wait_for("completed")


def test_any_returns_with_the_first() -> None:
    slow = Task.shell(kin.WAIT, "--id", "slow")
    Task.shell("true", "--id", "quick")
    done = holdfast("wait", "--any", "slow", "quick")
    assert (done.returncode, done.stdout) == (0, "quick completed\n")
    kin.go()
    slow.wait_for("completed")


def test_json_is_the_manifest_of_each() -> None:
    for task_id in ("one", "two"):
        Task.shell("true", "--id", task_id)
    done = holdfast("wait", "one", "two", "--json")
    manifests = [json.loads(line) for line in done.stdout.splitlines()]
    assert {manifest["task_id"] for manifest in manifests} == {"one", "two"}
    for manifest in manifests:
        jsonschema.validate(manifest, schema.schemas()["manifest"])


def test_a_timeout_is_6_and_changes_nothing() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    start_mono = time.monotonic()
    done = holdfast("wait", "it", "--timeout", "0.3s")
    assert 0.3 <= time.monotonic() - start_mono < 5
    assert (done.returncode, "it is still running" in done.stderr) == (6, True)
    assert "'holdfast show it' shows it" in done.stderr
    kin.go()
    task.wait_for("completed")


def test_an_end_counts_once_its_last_file_is_written() -> None:
    """The manifest shows the end before `_task.done` exists."""
    task = Task.shell("true", env={"HOLDFAST_FAILPOINT": "last_files.before_task_done=stop"})
    runner = task.wait_for_event("runner.started")["pid"]
    eventually(lambda: kin.state(runner) == "T", what="the runner is stopped before the marker")
    assert task.status() == "completed"
    assert task.ask("wait", "--timeout", "0.5s").returncode == 6
    os.kill(runner, signal.SIGCONT)
    assert task.ask("wait").returncode == 0


def test_wrong_words_are_2_and_an_unknown_task_is_3() -> None:
    assert holdfast("wait").returncode == 2
    assert holdfast("wait", "nobody").returncode == 3
    task = kin.make("--", "true")
    done = holdfast("wait", task.id, "--timeout", "soon")
    assert (done.returncode, "--timeout: not a duration" in done.stderr) == (2, True)


def test_what_holds_up_the_queue_is_said_once() -> None:
    assert holdfast("queue", "pause").returncode == 0
    for task_id in ("one", "two"):
        assert holdfast("submit", "--id", task_id, "--", "true").returncode == 0
    done = holdfast("wait", "one", "two", "--timeout", "3s")
    assert done.returncode == 6
    assert done.stderr.count("the queue is paused; 'holdfast queue resume' continues") == 1
    assert holdfast("queue", "resume").returncode == 0
    assert "paused" not in holdfast("wait", "one", "two", "--timeout", "0.1s").stderr


def test_a_queue_that_waits_for_a_person_is_said() -> None:
    home = os.environ["HOLDFAST_HOME"]
    with open(os.path.join(home, "interrupt-request.txt"), "w", encoding="utf-8") as file:
        file.write("look at the disk\n")
    assert holdfast("submit", "--id", "one", "--", "true").returncode == 0
    told = holdfast("wait", "one", "--timeout", "2s").stderr
    assert "the queue waits for a person: look at the disk; 'holdfast queue resume' continues" in told
