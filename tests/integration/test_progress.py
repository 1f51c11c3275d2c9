"""Progress of a work item: read from the agent's CLI or file, and shown by the views."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from holdfast.testing import Scenario
from tests.support import loops
from tests.support.tasks import Task, holdfast, workspace
from tests.support.terminal import Terminal
from tests.support.waiting import eventually

SECRET = "sk-ant-" + "a1B2c3D4" * 4


def list_of(*states: str) -> dict[str, Any]:
    return {
        "todos": [{"content": f"step {at} {SECRET}", "status": state} for at, state in enumerate(states, 1)]
    }


def progress_of(task: Task) -> tuple[Any, ...]:
    return tuple((task.manifest()["progress"] or {}).values())


@pytest.mark.req("PKT-16", "OUT-11")
def test_progress_is_shown_while_it_runs(home: str) -> None:
    go = os.path.join(workspace(), "go")
    scenario = (
        Scenario()
        .tool("TodoWrite", arguments=list_of("in_progress", "pending"))
        .tool("TodoWrite", arguments=list_of("completed", "in_progress"))
        .say("here I am")
        .wait_file(go)
        .tool("TodoWrite", arguments=list_of("completed", "completed"))
        .result("ok")
    )
    task = Task.play(scenario, "--base-interval", "0.2s")
    task.wait_for_log("here I am")
    eventually(lambda: progress_of(task)[:2] == (1, 2))
    steps = "1/2 step 2 ***"
    assert progress_of(task)[2] == steps[4:]
    assert f"[{steps}]\n" in task.log()
    assert SECRET not in task.log() + task.read("events.jsonl").decode() + holdfast("ls").stdout
    assert f"[{steps}] here I am" in holdfast("ls").stdout
    assert f"steps     {steps}" in holdfast("show", task.id).stdout
    assert json.loads(holdfast("ls", "--json").stdout)[0]["progress"]["steps_total"] == 2

    # The agent's own file, once it is newer.
    with open(task.path("state", "work.json"), "w", encoding="utf-8") as file:
        json.dump({"progress": {"steps_completed": 3, "steps_total": 10, "current_step": "auth"}}, file)
    eventually(lambda: progress_of(task) == (3, 10, "auth"))
    terminal = Terminal("attach", "--no-tmux", task.id)
    terminal.read_until("3/10 auth")
    with open(go, "w", encoding="utf-8"):
        pass
    task.wait_for("completed")
    terminal.finish()
    assert progress_of(task) == (2, 2, None)
    # The file has the same progress, and the last writer wins.
    assert task.json("state", "work.json")["progress"]["steps_total"] == 2
    assert "[2/2]\n" in task.log()


@pytest.mark.req("PKT-16")
def test_the_file_of_a_work_item_follows_the_list(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    go = os.path.join(workspace(), "go")
    scenario = (
        Scenario().tool("TodoWrite", arguments=list_of("completed", "in_progress")).wait_file(go).result("ok")
    )
    path = str(scenario.write_to(os.path.join(workspace(), "scenario.json")))
    loops.settings('base_interval = "0.2s"\n')
    (task,) = loops.fill(one={"title": "Work", "agent": "scripted", "options": {"scenario": path}})
    with loops.foreground("--max-iterations", "1") as loop:
        eventually(
            lambda: (
                os.path.exists(task.path("state", "work.json"))
                and task.json("state", "work.json")["progress"]["steps_total"] == 2
            ),
            within_s=20,
        )
        item = task.json("state", "work.json")
        assert (item["id"], item["status"], item["progress"]["steps_completed"]) == ("one", "in_progress", 1)
        with open(go, "w", encoding="utf-8"):
            pass
        assert loop.wait(timeout=60) == 0
    task.wait_for("completed")
    item = task.json("state", "work.json")
    assert (item["status"], item["progress"]["steps_completed"]) == ("completed", 1)
    assert progress_of(task)[:2] == (1, 2)
