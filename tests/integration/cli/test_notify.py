"""holdfast notify test, and the notices about limits and an empty queue."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.testing import Scenario
from tests.support import loops
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def told() -> list[dict]:
    try:
        with open(os.path.join(workspace(), "notices"), encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.strip()]
    except FileNotFoundError:
        return []


def rule(on: str, command: str = "") -> str:
    command = command or f"cat >> {workspace()}/notices; echo >> {workspace()}/notices"
    return f"[[notify]]\non = ['{on}']\nto = 'command'\nname = '{on}'\nargv = ['sh', '-c', '{command}']\n"


def test_a_test_notice_for_every_rule() -> None:
    none = holdfast("notify", "test")
    assert none.returncode == 2
    assert "notify = [{ on" in none.stderr
    loops.settings(rule("failed") + rule("completed", "echo no way >&2; exit 3"))
    done = holdfast("notify", "test")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "ok      failed"
    assert lines[1].startswith("FAILED  completed ")
    assert "no way" in lines[1] or "3" in lines[1]
    (notice,) = told()
    assert (notice["event"], notice["reason"]) == ("test", "it works")
    assert "rule" not in notice


def test_a_limit_with_a_reset_time_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    loops.settings(rule("waiting"))
    scenario = Scenario().say("hello").rate_limit("five hours are over", resets_in_s=7200, once=True)
    task = Task.play(scenario.result("ok"))
    manifest = task.wait_for("waiting")
    assert manifest["wake_at"] is not None
    eventually(told, what="the notice is delivered")
    assert told()[0]["task_id"] == task.id
    assert "until 20" in told()[0]["reason"]
    task.stop()


@pytest.mark.parametrize("words", [(), ("Invalid API key",)])
def test_a_login_that_is_not_valid_asks_a_person(words: tuple[str, ...]) -> None:
    task = Task.play(Scenario().unauthorized(*words))
    task.wait_for("interrupted", "failed")
    (ended,) = task.events("attempt.ended")
    assert (ended["outcome"], "401" in ended["detail"]) == ("auth", True)


def test_a_spent_budget_is_announced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    budgets = 'budget_per_day = 5\npool_budgets = ["cheap=1"]\n'
    loops.settings(budgets + rule("budget_spent"))
    path = Scenario().usage(cost_usd=2.0).result("ok").write_to(os.path.join(workspace(), "costly.json"))
    costly = ("--agent", "scripted", "-o", f"scenario={path}", "do it")
    loops.submit("--pool", "cheap", *costly)
    held = loops.submit("--pool", "cheap", "--", "true")
    loops.up()
    eventually(told, what="the notice is delivered")
    why = "the pool cheap starts nothing before midnight: $2.00 of $1.00 spent today"
    assert told()[0]["text"].startswith(f"holdfast: {why}")
    other = [loops.submit(*costly), loops.submit(*costly)]
    loops.up()
    for task in other:
        task.wait_for("completed")
    eventually(lambda: len(told()) == 2, what="the other notice is delivered")
    assert "no task is started before midnight: $6.00 of $5.00 spent today" in told()[1]["reason"]
    assert holdfast("down").returncode == 0
    loops.up()
    loops.settings(rule("budget_spent"))
    held.wait_for("completed")
    assert len(told()) == 2


def test_an_empty_queue_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    loops.settings(rule("queue_empty"))
    loops.fill(a="true", b="true")
    loops.up()
    eventually(told, what="the notice is delivered")
    assert told()[0]["reason"] == "2 completed so far"
