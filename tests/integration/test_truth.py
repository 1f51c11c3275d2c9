"""What views say about a task is all of it: unknown costs, applied work, leftovers, the sandbox."""

from __future__ import annotations

import json
import os
import signal

import pytest

from holdfast.testing import Scenario
from tests.support import processes
from tests.support.packets import REPORTS, WORK, Written
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("home")


def summary(task: Task) -> str:
    return task.read("outputs", "_summary.md").decode()


def project() -> Repo:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.commit("README.md")
    return repo


# ── cost ──


def test_a_cost_of_which_a_part_is_unknown_is_a_lower_bound() -> None:
    # The first call of the implementation dies before it reports.
    impl = Scenario().write(WORK, content="hello\n").crash(once=True).say(REPORTS["impl"]).result("ok")
    review = (
        Scenario().usage(input_tokens=5, output_tokens=5, cost_usd=1.5).say(REPORTS["review"]).result("ok")
    )
    task = Written({"scripted_impl": impl, "scripted_review": review}, project=project()).run()
    assert task.manifest()["usage"]["unpriced_calls"] == 1
    assert "≥$1.50" in holdfast("ls").stdout
    for shown in (
        task.ask("show").stdout,
        summary(task),
        holdfast("report").stdout,
        holdfast("metrics").stdout,
    ):
        assert "at least $1.50" in shown, shown


def test_a_cost_that_is_known_is_not_qualified() -> None:
    task = Task.play(Scenario().usage(input_tokens=5, output_tokens=5, cost_usd=1.5).say("done").result("ok"))
    task.wait_for("completed")
    assert "≥" not in holdfast("ls").stdout
    assert "at least" not in task.ask("show").stdout + summary(task)


def test_a_budget_that_the_agent_cannot_report_is_noted(home: str) -> None:
    folder = os.path.join(workspace(), "bin")
    os.makedirs(folder)
    path = os.path.join(folder, "codex")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexit 1\n")
    os.chmod(path, 0o755)
    done = holdfast(
        *("submit", "--agent", "codex", "--budget-usd", "5", "--budget-tokens", "100", "--id", "t1"),
        *("--not-before", "+1h", "do it"),
        cwd=project().path,
        env={"PATH": f"{folder}:{os.environ['PATH']}"},
    )
    assert done.returncode == 0, done.stderr
    note = "codex does not report its cost: the budget of $5.00 ignores it"
    assert done.stderr.count("note: ") == 1
    assert f"note: {note}" in done.stderr
    assert note in holdfast("show", "t1").stdout


# ── applied ──


@pytest.mark.parametrize("how", ["merge", "patch"])
def test_applied_work_is_shown_as_applied(how: str) -> None:
    repo = project()
    task = Written({"scripted_impl": None}, project=repo, workspace="worktree").run()
    assert "- next_action: **apply**" in summary(task)
    done = task.ask("apply", *(["--patch"] if how == "patch" else []))
    assert (done.returncode, "warning" in done.stderr) == (0, False), done.stderr
    (event,) = task.events("work.applied")
    assert (event["how"], event["files"]) == (how, 1)
    assert task.manifest()["applied"]["how"] == how
    words = f"merged into {event['branch']}" if how == "merge" else "applied as a patch"
    assert words in task.ask("show").stdout
    assert "[applied]" in holdfast("ls").stdout
    assert "- next_action: **none**" in summary(task)
    assert words in summary(task)
    (row,) = json.loads(holdfast("ls", "--json").stdout)
    assert row["applied"]["how"] == how
    assert task.status() == "completed"
    # New work is not applied yet.
    assert task.ask("retry", "--from", "scripted_impl").returncode == 0
    assert "applied" not in task.wait_for("failed", within_s=30)  # this agent does nothing more


# ── leftovers ──


def test_leftovers_of_every_stage_are_in_the_summary() -> None:
    pid_file = os.path.join(workspace(), "pid")
    command = f"setsid sleep 61.5 >/dev/null 2>&1 & echo $! > {pid_file}; echo hello > {WORK}"
    impl = Scenario().tool("sh", command=command).say(REPORTS["impl"]).result("ok")
    task = Written({"scripted_impl": impl, "scripted_review": None}, project=project()).run()
    with open(pid_file, encoding="utf-8") as file:
        pid = int(file.read())
    try:
        assert f"of scripted_impl: {pid} sleep 61.5" in summary(task)
    finally:
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not processes.is_alive(pid), what="it is gone")


# ── sandbox ──


def test_show_and_ls_tell_about_the_sandbox() -> None:
    task = Task.play(Scenario().say("done").result("ok"))
    task.wait_for("completed")
    assert "permissions edit, no sandbox" in task.ask("show").stdout
    (row,) = json.loads(holdfast("ls", "--json").stdout)
    assert (row["sandbox"], row["permissions"]) == (None, "edit")
    done = holdfast(
        *("submit", "--sandbox", "--network", "off", "--id", "s1", "--not-before", "+1h", "--", "true"),
        cwd=project().path,
    )
    assert done.returncode == 0, done.stderr
    assert "sandbox without network" in holdfast("show", "s1").stdout
    row = next(row for row in json.loads(holdfast("ls", "--json").stdout) if row["task_id"] == "s1")
    assert row["sandbox"] == {"network": False}
