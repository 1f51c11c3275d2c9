"""holdfast status: keeper, counts, and what needs attention."""

from __future__ import annotations

import json
import os
import time

import jsonschema
import pytest

from contracts import schema
from holdfast import __version__
from holdfast.testing import Scenario
from tests.support import keepers, kin
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def status() -> dict:
    done = holdfast("status", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    jsonschema.validate(facts, schema.schemas()["status"])
    return facts


def test_an_empty_home_and_none_at_all(home: str) -> None:
    assert status()["counts"] == {}
    os.rmdir(home)
    facts = status()
    assert (facts["keeper"], facts["seed"], facts["down"], facts["attention"]) == (None, None, False, [])
    assert not os.path.exists(home)
    assert "keeper   not running" in holdfast("status").stdout


def test_what_agents_and_files_say_does_not_reach_the_terminal_as_it_is(home: str) -> None:
    """An escape sequence could set the window title, move the cursor, or forge a status line."""
    evil = "a\x1b]0;title\x07 x\nkeeper   forged\x9b2J"
    task = Task.shell("sleep 60", "--id", "it")
    assert holdfast("interrupt", "it", "-m", evil).returncode == 0
    task.wait_for("interrupted")
    with open(os.path.join(home, "interrupt-request.txt"), "wb") as file:
        file.write(os.urandom(64) + b"\x1b[2J\n\n" + bytes(range(256)) * 20)
    assert holdfast("submit", "--id", "q", "--", "true", cwd=workspace()).returncode == 0
    shown = holdfast("status")
    assert "it was interrupted: a ]0;title  x keeper   forged 2J" in shown.stdout
    for text in (shown.stdout, *(holdfast(*view).stdout for view in VIEWS), holdfast("queue", "ls").stderr):
        assert text.replace("\n", "").isprintable(), text
        assert not any(line.startswith("keeper   forged") for line in text.splitlines())
        assert all(len(line) < 600 for line in text.splitlines())


#: Commands that print text of an agent.
VIEWS = (
    ("show", "it"),
    ("ls",),
    ("audit",),
    ("report",),
    ("events", "it"),
    ("queue",),
    ("metrics",),
    ("doctor",),
)


def test_keeper_seed_and_counts(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    for number in range(25):
        if number < 2:
            Task.shell("exit 1", "--id", f"bad-{number}").wait_for("failed")
    Task.shell("true").wait_for("completed")
    pid = keepers.wait_for(home)
    facts = status()
    assert facts["keeper"] == {"pid": pid, "version": __version__}
    assert facts["counts"] == {"failed": 2, "completed": 1}
    text = holdfast("status").stdout
    assert f"keeper   process {pid}" in text
    assert "tasks    1 completed, 2 failed" in text
    assert "ended    2 ended tasks need you: bad-1, bad-0; 'holdfast report' says why" in text
    assert holdfast("archive", "bad-1").returncode == 0
    assert status()["attention"] == ["1 ended task needs you: bad-0; 'holdfast report' says why"]


def test_a_task_that_waits_for_a_person_is_named() -> None:
    task = Task.shell('echo "which one?" > "$INTERRUPT_FILE"; sleep 60', "--id", "it")
    task.wait_for("interrupted")
    text = "it waits for a person: which one? → holdfast resume it -m 'ANSWER'"
    assert status()["attention"] == [text]
    assert status()["alerts"] == [{"level": "question", "text": text, "kind": "question"}]
    assert "question it waits for a person: which one?" in holdfast("status").stdout
    task.stop()


def test_what_a_person_says_to_a_task_that_they_interrupt_is_no_question() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    task.ask("interrupt", "-m", "hold on")
    task.wait_for("interrupted")
    text = "it was interrupted: hold on; 'holdfast resume it' to go on"
    assert status()["alerts"] == [{"level": "question", "text": text, "kind": "stopped"}]
    shown = holdfast("show", "it").stdout
    assert "state     interrupted: hold on" in shown
    assert "question" not in shown
    assert "next      holdfast resume it " in shown
    task.stop()


def test_what_is_broken_comes_before_questions_and_these_before_notes(home: str) -> None:
    task = Task.shell(kin.WAIT, "--id", "asks")
    task.agent_pid()
    task.ask("interrupt", "-m", "which one?")
    task.wait_for("interrupted")
    with open(os.path.join(home, "loop.json"), "w", encoding="utf-8") as file:
        json.dump({"schema": "holdfast.loop/1", "failing": {"gh:": "no login"}}, file)
    kin.make("--", "true", task_id="broken")
    for name in ("manifest.json", "events.jsonl"):
        with open(os.path.join(home, "tasks", "broken", name), "w", encoding="utf-8") as file:
            file.write("{")
    alerts = status()["alerts"]
    levels = [alert["level"] for alert in alerts]
    assert list(dict.fromkeys(levels)) == ["urgent", "question", "note"]
    assert levels == sorted(levels, key=["urgent", "question", "note"].index)
    lines = [line.split()[0] for line in holdfast("status").stdout.splitlines()]
    assert lines[: len(levels)] == [alert["kind"] or alert["level"] for alert in alerts]
    task.stop()


def test_a_keeper_that_was_started_just_now_is_starting(home: str) -> None:
    """`run -d` returns before the keeper has its lock."""
    assert holdfast("submit", "--id", "it", "--", "true", cwd=workspace()).returncode == 0

    def is_shown(ago_s: float, state: str, *, is_told: bool) -> bool:
        with open(os.path.join(home, "keeper-starts.json"), "w", encoding="utf-8") as file:
            json.dump({"schema": "holdfast.keeper-starts/1", "starts": [time.time() - ago_s]}, file)
        text = holdfast("status").stdout
        return f"keeper   {state}\n" in text and ("no keeper is running" in text) is is_told

    # On a busy machine, the command may take longer than a keeper may take to start: try again.
    eventually(lambda: is_shown(0.0, "starting", is_told=False), 30)
    assert is_shown(30.0, "not running", is_told=True)


def test_it_shows_slots_running_tasks_and_one_task() -> None:
    task = Task.shell(kin.WAIT, "--id", "busy")
    task.agent_pid()
    lines = holdfast("status").stdout.splitlines()
    assert any(line.startswith("slots") for line in lines)
    assert any(line.startswith("running  busy") for line in lines), lines
    data = json.loads(holdfast("status", "--json").stdout)
    assert [row["task_id"] for row in data["running"]] == ["busy"]
    assert data["slots"] == {"count": 1, "used": 0}
    assert holdfast("status", "busy").stdout.splitlines()[:2] == task.ask("show").stdout.splitlines()[:2]
    assert holdfast("status", "nobody").returncode == 3
    task.stop()


def test_a_task_that_down_interrupted_is_not_in_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    assert holdfast("submit", "--id", "it", "--", "sleep", "60", cwd=workspace()).returncode == 0
    eventually(lambda: status()["counts"] == {"running": 1}, 20, "it runs")
    assert holdfast("down", "--now").returncode == 0
    assert status()["counts"] == {"interrupted": 1}
    text = holdfast("status").stdout
    assert "queue    empty (1 start since 'up')" in text
    # Slots are those of a keeper.
    assert "slots    none without a keeper; 'holdfast up' starts one" in text
    assert holdfast("submit", "--id", "next", "--", "true", cwd=workspace()).returncode == 0
    text = " ".join(holdfast("status").stdout.split())
    assert "the queued task starts after 'holdfast up'" in text


def test_a_task_that_waits_uses_no_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    path = Scenario().rate_limit(resets_in_s=7200).write_to(os.path.join(workspace(), "limit.json"))
    options = ("--agent", "scripted", "-o", f"scenario={path}")
    assert holdfast("submit", "--id", "it", *options, "do it", cwd=workspace()).returncode == 0
    assert holdfast("up").returncode == 0
    eventually(lambda: status()["counts"] == {"waiting": 1}, 20, "it waits for the limit")
    assert status()["slots"]["used"] == 0
    text = holdfast("status").stdout
    assert "slots    0 of 1 used by the queue" in text
    assert "queue    1 in progress" in text
    (row,) = holdfast("queue", "ls").stdout.splitlines()[1:]
    assert row.split() == ["it", "claimed", "5", "default", "scripted", "waiting"]
    assert holdfast("stop", "it").returncode == 0
