"""holdfast audit: who did what."""

from __future__ import annotations

import json
import os
import pwd

import pytest

from holdfast.testing import Scenario
from tests.support import kin, loops
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def entries(*words: str) -> list[dict]:
    done = holdfast("audit", *words, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.req("AUD-1")
def test_making_and_asking_are_accounted_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "ada")
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    task.ask("interrupt", "-m", "the password is hunter2")
    task.wait_for("interrupted")
    task.stop()
    rows = [entry for entry in entries("it") if not entry["operation"].startswith("task.moved")]
    assert [entry["operation"] for entry in rows] == ["task.created", "request.interrupt", "request.stop"]
    assert all(entry["by"].startswith("ada@") for entry in rows)
    assert "hunter2" not in json.dumps(rows)
    assert len(entries("--operation", "request.")) == 2
    assert "request.stop" in holdfast("audit", "it").stdout


def test_a_refused_request_is_not_taken_for_a_granted_one() -> None:
    Task.shell("true", "--id", "it").wait_for("completed")
    assert holdfast("resume", "it", "-m", "go on").returncode == 3
    asked, refused = entries("it", "--operation", "request.")
    assert (asked["operation"], refused["operation"]) == ("request.resume", "request.refused")
    assert refused["request"] == asked["request"]
    assert "request.refused: resume: it is completed" in holdfast("audit", "it", "--people").stdout


def test_an_answer_is_something_that_people_did() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    task.ask("interrupt")
    task.wait_for("interrupted")
    task.ask("resume", "-m", "use the copy")
    assert "answer: use the copy" in holdfast("audit", "it", "--people").stdout
    task.stop()


@pytest.mark.req("AUD-1")
def test_what_people_do_with_the_queue_and_the_home_is_accounted_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "ada")
    loops.settings('pool_limits = ["nightly=1"]\n')
    loops.fill(a="true", b=loops.item("true", after=["gone"]), c="true")
    for words in (
        ("queue", "pause", "nightly"), ("queue", "pause"), ("queue", "resume"),
        ("queue", "claim", "a", "--by", "bob"), ("queue", "release", "a"), ("queue", "retry", "b"),
        ("queue", "rm", "c"), ("queue", "clear", "--yes"), ("rm", "c"), ("down",),
    ):  # fmt: skip
        done = holdfast(*words)
        assert done.returncode == 0, done.stderr
    monkeypatch.delenv("HOLDFAST_KEEPER")
    loops.up()
    rows = [
        (entry["operation"], entry.get("task_id"), entry.get("reason"))
        for entry in entries()
        if entry["operation"].startswith(("queue.", "home.", "task.removed"))
    ]
    assert rows == [
        ("queue.paused", None, "nightly"),
        ("queue.paused", None, "everything"),
        ("queue.resumed", None, "everything"),
        ("queue.claimed", "a", "for bob"),
        ("queue.released", "a", None),
        ("queue.retried", "b", "it was held: gone is not in this home"),
        ("queue.removed", "c", None),
        ("queue.cleared", None, "2 tasks"),
        ("task.removed", "c", None),
        ("home.down", None, None),
        ("home.up", None, workspace()),
    ]


@pytest.mark.req("AUD-1")
def test_an_end_has_the_number_of_its_own_start(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    loops.fill(first="while [ ! -e go ]; do sleep 0.05; done", second="touch go")
    loops.up("--slots", "2")
    eventually(lambda: len(entries("--operation", "loop.ended")) == 2, 30)
    numbers = {entry["task_id"]: entry["iteration"] for entry in entries("--operation", "loop.ended")}
    assert numbers == {"first": 1, "second": 2}


@pytest.mark.req("AUD-1")
def test_every_operation_of_the_loop_has_time_level_and_iteration(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    loops.fill(good="true", bad="exit 3")
    loops.up()

    def ended() -> list[dict]:
        rows = entries("--operation", "loop.")
        return rows if rows and rows[-1]["operation"] == "loop.empty" else []

    rows = eventually(ended, 30, "the queue is empty")
    told = [
        (entry["operation"], entry.get("task_id"), entry.get("iteration"), entry["level"]) for entry in rows
    ]
    assert told == [
        ("loop.filled", None, None, "info"),
        ("loop.dispatched", "good", 1, "info"),
        ("loop.ended", "good", 1, "info"),
        ("loop.dispatched", "bad", 2, "info"),
        ("loop.ended", "bad", 2, "warn"),
        ("loop.empty", None, None, "info"),
    ]
    assert [entry["at"] for entry in rows] == sorted(entry["at"] for entry in rows)
    assert "failed; 1 failed in a row" in rows[4]["reason"]
    assert "iteration 2" in holdfast("audit", "--operation", "loop.").stdout


def test_a_bypass_is_highlighted() -> None:
    Task.play(Scenario().result(), "--permissions", "full", "--id", "it").wait_for("completed")
    entry = entries("it", "--operation", "task.created")[0]
    assert entry["level"] == "warn"
    assert "bypassed" in entry["reason"]


def test_a_retry_with_other_permissions_or_limits_is_accounted_for() -> None:
    task = Task.play(Scenario().result(), "--id", "it")
    task.wait_for("completed")
    flags = ("--from", "scripted_run", "--permissions", "full", "--set", "budgets.max_wallclock_sec=900")
    assert holdfast("retry", "it", *flags, "-m", "a secret").returncode == 0
    (entry,) = entries("it", "--operation", "request.retry")
    assert entry["level"] == "warn"
    assert entry["reason"] == (
        "permission prompts bypassed (--permissions full); --set budgets.max_wallclock_sec"
    )
    assert "a secret" not in str(entry)
    eventually(lambda: task.manifest()["attempt"] == 2 and task.status() == "completed")


def test_a_removed_task_is_still_accounted_for_and_time_limits() -> None:
    Task.shell("true", "--id", "it").wait_for("completed")
    holdfast("rm", "it")
    assert entries("it")
    assert entries("it", "--since", "1h")
    assert entries("it", "--since", "0s") == []
    unknown = holdfast("audit", "nobody")
    assert (unknown.returncode, "no task 'nobody'" in unknown.stderr) == (3, True)
    assert holdfast("audit", "--since", "soon").returncode == 2
    assert holdfast("audit", "../x").returncode == 2


def test_without_a_user_variable_the_uid_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container or a systemd unit."""
    monkeypatch.delenv("USER", raising=False)
    monkeypatch.delenv("LOGNAME", raising=False)
    Task.shell("true", "--id", "it").wait_for("completed")
    name = pwd.getpwuid(os.getuid()).pw_name
    assert entries("it", "--operation", "task.created")[0]["by"].startswith(f"{name}@")


def test_a_row_is_a_line_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "ada")
    Task.shell("exit 3", "--id", "fix-the-login").wait_for("failed")
    lines = holdfast("audit", env={"COLUMNS": "80"}).stdout.splitlines()
    assert len(lines) == 1 + len(entries())
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["TIME", "BY", "TASK", "WHAT"]
    assert lines[-1].endswith("error: running → failed: exit status 3")


def test_a_long_id_does_not_break_every_row_in_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "ada")
    Task.shell("exit 3", "--id", "it").wait_for("failed")
    Task.shell("true", "--id", "20260131-check-the-documentation-abcd").wait_for("completed")
    lines = holdfast("audit", env={"COLUMNS": "80"}).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    of_it = [line for line in lines if "  it  " in line]
    assert len(of_it) == len(entries("it"))
    assert of_it[-1].endswith("error: running → failed: exit status 3")


def test_people_are_told_apart_from_our_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "ada")
    Task.shell("true", "--id", "it").wait_for("completed")
    assert [entry["operation"] for entry in entries("--people")] == ["task.created"]
    (_, line) = holdfast("audit", "--people").stdout.splitlines()
    assert " it    task.created: " in line
