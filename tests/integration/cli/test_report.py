"""holdfast report: state, queue, results, interrupts, statistics."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.testing import Scenario
from tests.support import kin
from tests.support.tasks import Task, holdfast, workspace


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def facts(*words: str) -> dict:
    done = holdfast("report", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.req("AUD-6")
def test_state_activity_interrupts_and_figures() -> None:
    Task.shell("true", "--id", "good").wait_for("completed")
    Task.shell("exit 3", "--id", "bad").wait_for("failed")
    asked = Task.shell(kin.WAIT, "--id", "asked")
    asked.agent_pid()
    asked.ask("interrupt", "-m", "which branch?")
    asked.wait_for("interrupted")
    busy = Task.shell("echo at it; " + kin.WAIT, "--id", "busy")
    busy.wait_for_log("at it")
    report = facts()
    assert report["schema"] == "holdfast.report/1"
    assert {row["task_id"]: row["status"] for row in report["ended"]} == {
        "good": "completed",
        "bad": "failed",
    }
    assert [(row["task_id"], row["last_line"]) for row in report["active"]] == [("busy", "at it")]
    (interrupt,) = report["interrupts"]
    assert (interrupt["task_id"], interrupt["reason"], interrupt["resolved_at"]) == (
        "asked",
        "which branch?",
        None,
    )
    assert report["statistics"]["success_rate"] == 0.5
    text = holdfast("report").stdout
    assert "! asked waits for a person: which branch?" in text
    assert "asked  open: which branch?" in text
    assert "bad  failed after" in text
    assert "at it" not in text
    assert "at it" in holdfast("report", "--detailed").stdout
    kin.go()
    busy.wait_for("completed")
    asked.stop()
    assert facts()["interrupts"][0]["resolved_at"]


def test_a_cost_that_is_known_in_part_is_said_to_be_so() -> None:
    Task.play(Scenario().usage(cost_usd=0.25).result()).wait_for("completed")
    assert "cost $0.25\n" in holdfast("report").stdout
    Task.shell("true").wait_for("completed")
    for verb in ("report", "metrics"):
        assert "cost $0.25 (unknown for 1 task)\n" in holdfast(verb).stdout


def test_what_was_archived_is_in_it_and_what_is_old_is_not() -> None:
    Task.shell("true", "--id", "it").wait_for("completed")
    assert holdfast("archive", "it").returncode == 0
    assert [row["task_id"] for row in facts()["ended"]] == ["it"]
    assert facts("--since", "0s")["ended"] == []


def test_an_empty_home_none_at_all_and_errors(home: str) -> None:
    assert "- none" in holdfast("report").stdout
    os.rename(home, home + "-gone")
    assert holdfast("report").returncode == 0
    assert holdfast("report", "--since", "soon").returncode == 2
    os.path.exists(home) and os.rmdir(home)
    os.rename(home + "-gone", home)


def test_what_waits_for_its_turn_is_in_the_queue() -> None:
    done = holdfast("submit", "--id", "next", "--", "true", cwd=workspace())
    assert done.returncode == 0, done.stderr
    (row,) = facts()["queue"]
    assert (row["task_id"], row["state"]) == ("next", "queued")
    assert "next  queued since" in holdfast("report").stdout
