"""Every file that shell harnesses keep has its place (docs/reference/files.md)."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.store.layout import Home
from holdfast.testing import Scenario
from tests.support.tasks import Task, holdfast, workspace


@pytest.mark.req("PKT-20")
def test_the_state_of_a_loop_is_in_the_home_and_in_the_packet(home: str) -> None:
    scenario = (
        Scenario().say("hi").tool("bash").tool("edit", fails=True).interrupt_request("which?").hang(once=True)
    )
    workspace()
    task = Task.play(scenario, "--id", "it", "--base-interval", "0.3s")
    task.wait_for("interrupted")
    assert task.read("state", "interrupt-request.txt").strip() == b"which?"
    session = task.json("state", "current-session.json")
    assert session["session_id"].startswith("ses_")
    (attempt,) = task.attempts()
    assert {"pid", "exit_code", "exit.json", "stdout.log", "stderr.log", "prompt"} <= set(os.listdir(attempt))
    assert set(os.listdir(task.path("state", "interrupts", "1"))) >= {
        "context.json",
        "summary.md",
        "logs.txt",
    }
    tools = [json.loads(line) for line in holdfast("events", "it", "--tools", "--json").stdout.splitlines()]
    errors = [json.loads(line) for line in holdfast("events", "it", "--errors", "--json").stdout.splitlines()]
    assert [call["tool"] for call in tools] == ["bash", "edit"]
    assert errors[0]["kind"] == "tool_failed"
    assert holdfast("submit", "--id", "next", "--", "true", cwd=workspace()).returncode == 0
    assert os.path.exists(Home(home).queue)
    assert holdfast("metrics").returncode == 0
    assert os.path.exists(Home(home).metrics)
    audited = [json.loads(line)["operation"] for line in holdfast("audit", "--json").stdout.splitlines()]
    assert {"task.created", "task.moved"} <= set(audited)
    task.stop()
    assert holdfast("archive", "it").returncode == 0
    with open(os.path.join(Home(home).archived("it").path, "manifest.json"), encoding="utf-8") as file:
        assert json.load(file)["status"] == "killed"
