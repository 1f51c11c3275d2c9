"""Every task can be ended and removed, whatever its agent does to its packet."""

from __future__ import annotations

import json
import os

import pytest

from tests.support import kin, processes
from tests.support.tasks import ENDS, Task, holdfast, workspace
from tests.support.waiting import eventually

EAGER = ("--base-interval", "0.2s", "--stale", "none")
#: Parts that the agent removes.
PARTS = {
    "attempt": '"$HOLDFAST_ATTEMPT"',
    "attempts": '"$HOLDFAST_PACKET/attempts"',
    "scratch": '"$TASK_TMPDIR" "$TASK_TMPDIR"/*',
    "state": '"$HOLDFAST_PACKET/state"',
    "inbox": '"$HOLDFAST_PACKET/inbox"',
    "outputs and done": '"$HOLDFAST_PACKET/outputs" "$HOLDFAST_PACKET/done"',
    "manifest": '"$HOLDFAST_PACKET/manifest.json"',
    "lock": '"$HOLDFAST_PACKET/runner.lock" "$HOLDFAST_ATTEMPT/lock"',
    "journal": '"$HOLDFAST_PACKET/events.jsonl"',
    "everything": '"$HOLDFAST_PACKET"/*',
}
#: After these the task cannot be recorded any more.
FATAL = ("journal", "everything")
SAMPLE = ("attempt", "scratch", "inbox", "lock", "journal", "everything")
PARTS_TO_TRY = tuple(PARTS) if os.environ.get("HOLDFAST_HOSTILE_FULL") else SAMPLE


def assert_removable(task: Task, agent: int = 0) -> None:
    done = holdfast("rm", "--force", task.id)
    assert done.returncode == 0, done.stderr
    assert not os.path.exists(task.packet)
    if agent:
        eventually(lambda: not processes.is_alive(agent), 30, "the agent is gone")


def pid_of_agent() -> int:
    def there() -> int:
        with open(os.path.join(workspace(), "agent"), encoding="utf-8") as file:
            return int(file.read())

    return eventually(there, what="the agent runs")


@pytest.mark.parametrize("part", PARTS_TO_TRY)
def test_a_task_whose_agent_removed_a_part_of_it_can_be_stopped_and_removed(home: str, part: str) -> None:
    task = Task.shell(f"rm -rf {PARTS[part]}; echo $$ > agent; " + kin.WAIT, *EAGER)
    agent = pid_of_agent()
    task.ask("stop")
    if part not in FATAL:
        eventually(lambda: task.status() == "killed", 60, "it is stopped", journal=task.packet)
    assert_removable(task, agent)


@pytest.mark.parametrize("part", PARTS_TO_TRY)
def test_a_task_whose_agent_removed_a_part_of_it_ends(home: str, part: str) -> None:
    task = Task.shell(f"rm -rf {PARTS[part]}; echo $$ > agent; exit 0", *EAGER)
    agent = pid_of_agent()
    if part not in FATAL:
        eventually(lambda: task.status() in (*ENDS, "interrupted"), 60, "it ends", journal=task.packet)
    assert_removable(task, agent)


def forged(task: Task) -> None:
    with open(task.path("done", "_task.done"), "w", encoding="utf-8") as file:
        json.dump({"schema": "holdfast.done/1", "status": "completed", "run": 1}, file)


@pytest.mark.parametrize("dies", [False, True])
def test_a_forged_end_does_not_end_the_task(home: str, *, dies: bool) -> None:
    """The task continues to its own end, and `wait` returns."""
    task = Task.shell(kin.WAIT + "exit 3", *EAGER)
    task.agent_pid()
    forged(task)
    if dies:
        task.kill_runner()
        task.start_runner()
        task.wait_for_event("runner.started", 2)
    assert task.status() == "running"
    kin.go()
    done = holdfast("wait", "--timeout", "30s", task.id)
    assert (done.returncode, task.status(), task.manifest()["exit_code"]) == (1, "failed", 3), done.stderr
    assert task.json("done", "_task.done")["status"] == "failed"


def test_a_forged_marker_of_a_stage_does_not_end_it(home: str) -> None:
    task = Task.shell(kin.WAIT + "exit 3", *EAGER)
    task.agent_pid()
    with open(task.path("done", "command_run.done"), "w", encoding="utf-8") as file:
        json.dump({"schema": "holdfast.done/1", "stage": "command_run", "attempt": 1, "run": 1}, file)
    task.kill_runner()
    task.start_runner()
    task.wait_for_event("runner.started", 2)
    kin.go()
    assert task.wait_for("failed")["exit_code"] == 3
    assert task.events("stage.done") == []


def test_a_task_without_a_readable_environment_asks_a_person(home: str) -> None:
    task = kin.make("--", "true")
    with open(task.path("env.json"), "w", encoding="utf-8") as file:
        file.write("{")
    task.start_runner()
    manifest = task.wait_for("interrupted")
    assert "env.json was changed" in manifest["interrupt"]["reason"]
    assert_removable(task)


#: Shell: the runner of the agent that asks.
RUNNER = "$(cut -d' ' -f4 /proc/$PPID/stat)"


def test_an_agent_that_kills_its_own_recorder_and_runner_again_and_again_uses_up_its_retries(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its exit status is unknown, which burns no retry, but only the first few times."""
    monkeypatch.delenv("HOLDFAST_KEEPER")
    assert holdfast("up").returncode == 0
    script = f"echo >> runs; kill -9 {RUNNER} $PPID $$; sleep 60"
    task = Task.shell(script, *EAGER, "--max-retries", "2")
    eventually(lambda: task.status() in ENDS, 60, "it ends", journal=task.packet)
    assert task.status() == "abandoned"
    assert {event["outcome"] for event in task.events("attempt.ended")} == {"lost"}
    reason = task.manifest()["status_reason"]
    assert "all 2 retries are used up; the last failure: lost: " in reason
    assert "; the end of 6 attempts in a row was lost" in reason
    assert [event["burned"] for event in task.events("retry.planned")] == [False] * 3 + [True] * 2
    assert_removable(task)
