"""holdfast events: the journal and its summaries."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from holdfast.testing import Scenario
from tests.support import kin
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


@pytest.fixture
def task() -> Task:
    scenario = (
        Scenario()
        .say("working")
        .tool("bash", command="true")
        .tool("edit", fails=True)
        .usage(input_tokens=1200, output_tokens=30, cost_usd=0.5)
    )
    task = Task.play(scenario, "--id", "it")
    task.wait_for("completed")
    return task


def rows(*words: str) -> list[dict]:
    done = holdfast("events", *words)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_event_as_json_and_for_people(task: Task) -> None:
    assert rows("it", "--json") == task.events()
    lines = holdfast("events", "it").stdout.splitlines()
    assert len(lines) == len(task.events())
    assert "task.created" in lines[0]
    assert any("running → completing" in line for line in lines)


def test_a_type_or_a_family(task: Task) -> None:
    assert rows("it", "--type", "task.moved", "--json") == task.events("task.moved")
    assert rows("it", "--type", "agent.", "--json") == task.events("agent.")
    assert rows("it", "--type", "agent.tool_", "--json") == task.events("agent.tool_")
    assert rows("it", "--type", "watch.", "--json") == []


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        ("agent", "did you mean 'agent.'?"),
        ("task.move", "did you mean 'task.moved'?"),
        ("zz", "families: task., "),
    ],
)
def test_a_type_that_is_none(kind: str, hint: str, task: Task) -> None:
    done = holdfast("events", "it", "--type", kind)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"no such event type: '{kind}'" in done.stderr
    assert f"hint: {hint}" in done.stderr


def test_a_type_of_a_newer_version_is_found(task: Task) -> None:
    with open(os.path.join(task.packet, "events.jsonl"), "ab") as file:
        file.write(b'{"type": "moon.rose", "at": "2026-01-01T00:00:00.000Z"}\n')
    assert len(rows("it", "--type", "moon.", "--json")) == 1


@pytest.mark.req("OUT-9", "OUT-5")
def test_summary_tools_errors_and_timeline(task: Task) -> None:
    summary = rows("it", "--summary", "--json")[0]
    assert summary["schema"] == "holdfast.event-summary/1"
    assert summary["status"] == "completed"
    assert summary["usage"] == {
        "input_tokens": 1200,
        "output_tokens": 30,
        "cost_usd": 0.5,
        "unpriced_calls": 0,
    }
    assert set(summary["tool_usage"]["breakdown"]) == {"bash", "edit"}
    assert (summary["messages"], summary["errors"]) == (1, 1)
    assert [call["tool"] for call in rows("it", "--tools", "--json")] == ["bash", "edit"]
    assert all(call["at"] and call["seconds"] >= 0 for call in rows("it", "--tools", "--json"))
    assert [error["kind"] for error in rows("it", "--errors", "--json")] == ["tool_failed"]
    assert {event["type"] for event in rows("it", "--timeline", "--json")} >= {"task.created", "stage.done"}
    assert not [event for event in rows("it", "--timeline", "--json") if event["type"] == "agent.text"]
    text = holdfast("events", "it", "--summary").stdout
    assert "usage     1.2k tokens in, 30 out, cost $0.50" in text
    assert "edit  1, 1 failed" in text
    assert "failed  edit" in holdfast("events", "it", "--tools").stdout
    assert "tool_failed  edit" in holdfast("events", "it", "--errors").stdout


@pytest.mark.req("OUT-5")
def test_one_that_says_nothing_of_itself_sums_up_to_zero() -> None:
    Task.shell("true", "--id", "mute").wait_for("completed")
    summary = rows("mute", "--summary", "--json")[0]
    assert summary["usage"] == {
        "input_tokens": None,
        "output_tokens": None,
        "cost_usd": None,
        "unpriced_calls": 0,
    }
    assert summary["tool_usage"] == {"total": 0, "errors": 0, "breakdown": {}}
    assert (summary["messages"], summary["errors"]) == (0, 0)
    assert rows("mute", "--tools", "--json") == []


def test_export_and_latest(task: Task, place) -> None:
    path = os.path.join(place.root, "out.jsonl")
    assert holdfast("events", "--latest", "--tools", "--export", path).returncode == 0
    with open(path, encoding="utf-8") as file:
        assert [json.loads(line)["tool"] for line in file] == ["bash", "edit"]
    assert holdfast("events", "it", "--export", path).returncode == 0
    with open(path, encoding="utf-8") as file:
        assert [json.loads(line) for line in file] == task.events()
    done = holdfast("events", "it", "--export", place.root)
    assert (done.returncode, "is a directory" in done.stderr) == (3, True)


def test_follow_shows_what_comes_and_ends_with_the_task() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    follower = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "events", "it", "-f", "--timeline", "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert follower.stdout is not None
    assert json.loads(follower.stdout.readline())["type"] == "task.created"
    eventually(lambda: json.loads(follower.stdout.readline())["type"] == "attempt.started")
    kin.go()
    task.wait_for("completed")
    out, _ = follower.communicate(timeout=20)
    assert [json.loads(line) for line in out.splitlines()][-1]["new"] == "completed"
    assert follower.returncode == 0


def test_a_torn_journal_is_read_up_to_the_tear(task: Task) -> None:
    with open(task.path("events.jsonl"), "ab") as file:
        file.write(b'{"type": "task.mo')
    assert len(rows("it", "--json")) == len(task.events())


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ((), 2, "missing TASK"),
        (("it", "--latest"), 2, "TASK and --latest exclude each other"),
        (("--latest",), 3, "no tasks in"),
        (("nobody",), 3, "no task 'nobody' in"),
    ],
)
def test_a_mistake_says_what_is_wrong(words: tuple[str, ...], status: int, message: str) -> None:
    done = holdfast("events", *words)
    assert done.returncode == status
    assert message in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--tools", "--errors"), "--tools and --errors exclude each other"),
        (("--summary", "-f"), "--follow cannot be combined"),
        (("--summary", "--type", "x"), "--type and --summary exclude each other"),
        (("--export", "/nonexistent/x"), "cannot write /nonexistent/x"),
    ],
)
def test_what_does_not_go_together(task: Task, words: tuple[str, ...], message: str) -> None:
    done = holdfast("events", "it", *words)
    assert done.returncode in (2, 3)
    assert message in done.stderr
