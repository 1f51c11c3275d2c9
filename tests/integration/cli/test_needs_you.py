"""What needs you is the same in `ls`, `report`, `top` and `serve`; and queued tasks have one order."""

from __future__ import annotations

import json
import shutil

import pytest

from holdfast.store.layout import Home
from holdfast.views.facts import task_list
from holdfast.views.tui.board import Board, Heading
from holdfast.views.web import endpoints
from tests.support import kin
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("home")


def ended(task_id: str, script: str = "true") -> Task:
    task = Task.shell(script, "--id", task_id)
    task.wait_for("completed", "failed")
    return task


def copy(task: Task, times: int) -> None:
    for number in range(times):
        # The pipe goes when the runner has left.
        shutil.copytree(task.packet, f"{task.packet}-{number}", ignore=shutil.ignore_patterns("bell"))


def of_ls() -> list[str]:
    """The tasks below the heading, in their order."""
    found: list[str] = []
    is_in = False
    for line in holdfast("ls").stdout.splitlines()[1:]:
        if line.endswith(")") and not line.startswith(" ") and "  " not in line:
            is_in = line.startswith("needs you")
        elif is_in:
            found.append(line.split()[0])
    return found


def of_report() -> list[str]:
    return [need["task_id"] for need in json.loads(holdfast("report", "--json").stdout)["needs"]]


def of_web(home: str) -> list[str]:
    rows = endpoints.board(Home(home), {})["rows"]
    return sorted(row["task_id"] for row in rows if row["group"] == "needs you")


def of_top(home: str) -> list[str]:
    board = Board()
    board.fill(task_list.tasks(Home(home), everything=False, state=None))
    found: list[str] = []
    heading = ""
    for line in board.lines:
        if isinstance(line, Heading):
            heading = line.group
        elif heading == "needs you":
            found.append(line)
    return found


def test_a_failure_needs_you_after_the_questions_until_somebody_dealt_with_it(home: str) -> None:
    asks = Task.shell(kin.WAIT, "--id", "asks")
    asks.agent_pid()
    asks.ask("interrupt", "-m", "which database?")
    asks.wait_for("interrupted")
    ended("good")
    bad = ended("bad", "exit 3")
    killed = Task.shell(kin.WAIT, "--id", "killed")
    killed.agent_pid()
    killed.ask("stop", "--now")
    killed.wait_for("killed")
    assert of_ls() == of_report() == of_top(home) == ["asks", "bad"]
    assert of_web(home) == ["asks", "bad"]
    groups = {row["task_id"]: row["group"] for row in json.loads(holdfast("ls", "--json").stdout)}
    assert groups == {"asks": "needs you", "bad": "needs you", "good": "ended", "killed": "ended"}
    assert json.loads(bad.ask("show", "--detail", "--json").stdout)["group"] == "needs you"
    assert holdfast("archive", "bad").returncode == 0
    assert of_ls() == of_report() == of_top(home) == of_web(home) == ["asks"]
    archived = json.loads(holdfast("ls", "--archived", "--json").stdout)
    assert [row["group"] for row in archived] == ["ended"]
    assert json.loads(holdfast("show", "bad", "--detail", "--json").stdout)["group"] == "ended"
    holdfast("stop", "--all", "--now")


def test_a_failure_is_listed_however_many_tasks_ended_after_it() -> None:
    bad, good = ended("bad", "exit 3"), ended("good")
    copy(good, 25)
    assert of_ls() == of_report() == ["bad"]
    copy(bad, 25)
    done = holdfast("ls")
    assert "needs you (26, the last 20 shown)" in done.stdout
    assert len(of_ls()) == 20
    assert "6 more need you: 'holdfast report' lists them" in done.stderr
    assert len(of_report()) == 26
    assert "more need you" not in holdfast("ls", "--all").stderr
    for number in range(5):
        shutil.rmtree(f"{bad.packet}-{number}")
    assert "1 more needs you: 'holdfast report' lists it" in holdfast("ls").stderr


def test_queued_tasks_have_one_order_everywhere() -> None:
    ended("bad", "exit 1")
    assert holdfast("queue", "pause").returncode == 0
    submit = ("submit", "--id")
    for argv in (
        (*submit, "late", "--priority", "high", "--not-before", "+9h", "--", "true"),
        (*submit, "held", "--priority", "high", "--after", "bad", "--", "true"),
        (*submit, "second", "--", "true"),
        (*submit, "first", "--priority", "high", "--", "true"),
        (*submit, "after", "--priority", "high", "--after", "second", "--", "true"),
    ):
        done = holdfast(*argv, cwd=workspace())
        assert done.returncode == 0, done.stderr
    eventually(lambda: "held" in of_ls())
    wanted = ["first", "second", "after", "late", "held"]
    shown = [line.split()[0] for line in holdfast("queue", "ls").stdout.splitlines()[1:]]
    assert shown == wanted
    assert [
        item["task_id"] for item in json.loads(holdfast("queue", "ls", "--json").stdout)["items"]
    ] == wanted
    assert [row["task_id"] for row in json.loads(holdfast("report", "--json").stdout)["queue"]] == wanted
