"""`retry --set FIELD=VALUE`: an ended task goes on with other limits or another scope."""

from __future__ import annotations

import os

import pytest

from holdfast.testing import Scenario
from tests.support import kin
from tests.support.packets import REPORTS, Written, calls, gate
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace

pytestmark = pytest.mark.usefixtures("home")

IMPL, REVIEW = "scripted_impl", "scripted_review"


def beyond() -> Scenario:
    """An implementation that also writes outside the scope."""
    scenario = Scenario(on_resume="restart").write("b.txt", content="x\n").write("docs/a.md", content="x\n")
    return scenario.say(REPORTS["impl"]).result("ok")


def packet(**more: object) -> Written:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.commit("README.md")
    return Written({"scripted_brief": None, IMPL: beyond(), REVIEW: None}, project=repo, **more)


def test_a_wider_scope_lets_a_failed_stage_pass_and_finished_stages_stay_finished() -> None:
    task = packet(workspace="worktree").run(end="failed")
    assert gate(task, IMPL)["failed"] == "scope"
    done = task.ask("retry", "--set", "scope.allow+=docs/", "--set", "budgets.max_wallclock_sec=900")
    assert done.returncode == 0, done.stderr
    task.wait_for("completed", within_s=40)
    assert len(calls(task, "scripted_brief")) == 1
    assert [call["mode"] for call in calls(task, IMPL)] == ["fresh", "resume"]
    (opened,) = task.events("run.opened")
    assert opened["amended"] == [
        {"field": "scope.allow", "old": ["b.txt"], "new": ["b.txt", "docs/"]},
        {"field": "budgets.max_wallclock_sec", "old": 60, "new": 900},
    ]
    # The agent is told what it may do now.
    second = calls(task, IMPL)[1]["attempt"]
    (folder,) = [path for path in task.attempts() if os.path.basename(path).startswith(f"{second:03}")]
    with open(os.path.join(folder, "prompt"), encoding="utf-8") as file:
        assert "scope.allow is now: b.txt, docs/" in file.read()
    shown = task.ask("show").stdout
    assert "scope.allow: b.txt → b.txt, docs/" in shown
    assert "budgets.max_wallclock_sec: 60 → 900" in shown
    assert "budgets.max_wallclock_sec: 60 → 900" in task.ask("events").stdout
    assert task.ask("diff").stdout.count("docs/a.md")


def test_the_new_limit_is_enforced() -> None:
    task = Task.shell(kin.WAIT, "--stop-pause", "1s", "--on-limit", "end")
    task.agent_pid()
    task.stop()
    assert task.ask("retry", "--set", "budgets.max_wallclock_sec=1").returncode == 0
    manifest = task.wait_for("timeout", "abandoned", "failed")
    assert "1.0s" in manifest["status_reason"] or "1s" in manifest["status_reason"]


def test_a_runner_that_replays_the_journal_knows_the_amendment() -> None:
    task = Task.shell(kin.WAIT)
    task.agent_pid()
    task.stop()
    assert task.ask("retry", "--set", "budgets.deadline_sec=100").returncode == 0
    task.agent_pid()
    task.kill_runner()
    task.start_runner()
    task.runner_pid()
    kin.go()
    task.wait_for("completed")
    assert task.manifest()["amended"] == [{"field": "budgets.deadline_sec", "old": 18000, "new": 100}]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("budgets.max_wallclock_sec=soon", "budgets.max_wallclock_sec"),
        ("budgets.max_wallclock_sec=0", "1"),
        ("scope.allow+=/etc", "absolute"),
        ("scope.allow-=src/", "not in"),
        ("budgets.on_limit+=end", "+="),
        ("goal=another", "scope.allow"),
        ("acceptance.commands=true", "budgets.max_wallclock_sec"),
        ("budgets.max_walclock_sec=9", "did you mean"),
        ("budgets.on_limit", "FIELD=VALUE"),
    ],
)
def test_what_cannot_be_set_is_refused_before_anything_happens(text: str, says: str) -> None:
    task = packet(workspace="worktree").run(end="failed")
    done = task.ask("retry", "--set", text)
    assert done.returncode == 2
    assert says in done.stderr
    assert task.events("run.opened") == []


def test_a_plain_run_has_no_scope() -> None:
    task = Task.shell("false")
    task.wait_for("failed")
    done = task.ask("retry", "--set", "scope.allow+=docs/")
    assert done.returncode == 2
    assert "budgets.max_wallclock_sec" in done.stderr
    assert holdfast("retry", task.id, "--set", "budgets.max_turns=3").returncode == 2  # a plain command


def test_a_request_that_no_view_checked_is_refused() -> None:
    from holdfast.errors import RequestRefused
    from holdfast.store.layout import Packet
    from holdfast.views.requests import send_request

    task = Task.shell("false")
    task.wait_for("failed")
    for bad in ("scope", ["goal=x"], [3]):
        with pytest.raises(RequestRefused):
            send_request(Packet(task.packet), "retry", {"env": {"env": {}}, "set": bad})
    assert task.events("run.opened") == []
