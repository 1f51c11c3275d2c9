"""A repository's own checks around a plain run: before the work they inform, after it they decide."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import pytest

from holdfast.errors import HoldfastError
from holdfast.testing import Scenario
from tests.support import loops
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, trust, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("home")

STAGE = "scripted_run"


def project(settings: str, *files: str) -> Repo:
    """A repository with its own settings."""
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write(".holdfast/config.toml", settings)
    repo.commit(".holdfast/config.toml", *files)
    with contextlib.suppress(HoldfastError):  # some tests are about invalid settings
        trust(repo.path)
    return repo


def said(task: Task, name: str) -> dict[str, Any]:
    """A file of the checks."""
    return task.json("outputs", f"{STAGE}.{name}.json")


def summary(task: Task) -> str:
    return task.read("outputs", "_summary.md").decode()


# ── after the work ──


@pytest.mark.req("GAT-11", "INT-2", "BUD-9")
def test_work_that_does_not_pass_asks_a_person_and_the_agent_goes_on_in_its_session() -> None:
    repo = project('post_work = ["test -e done.txt"]\n')
    scenario = Scenario().say("finished").resumed(Scenario().write("done.txt", content="x\n").say("now"))
    task = Task.play(scenario, project=repo.path)
    manifest = task.wait_for("interrupted")
    assert manifest["interrupt"]["reason"].startswith("quality gate failed: `test -e done.txt` failed")
    result = said(task, "gate_result")
    assert (result["passed"], result["failed"], result["action"]) == (False, "post_work", "interrupt")
    assert not os.path.exists(task.path("done", f"{STAGE}.done"))
    assert manifest["status_cause"] == "checks"
    assert "- next_action: **fix_checks**" in summary(task)
    for view in (("show", task.id), ("report",), ("status",)):
        assert "checks" in holdfast(*view).stdout, view
        assert "question" not in holdfast(*view).stdout, view
    assert f"holdfast resume {task.id} -m 'WHAT TO FIX'" in holdfast("show", task.id).stdout
    assert "$ test -e done.txt" in task.read("outputs", f"{STAGE}.artifact.md").decode()
    task.ask("resume")
    task.wait_for("completed")
    first, second = task.memory().starts()
    assert (first.is_resume, second.is_resume) == (False, True)
    assert "`test -e done.txt` failed with exit status 1" in second.prompt
    assert said(task, "gate_result")["passed"] is True


@pytest.mark.req("GAT-11", "INT-2")
def test_subscribers_are_notified(home: str) -> None:
    loops.settings('[[notify]]\non = ["quality_gate"]\nto = "command"\nargv = ["true"]\n')
    repo = project('post_work = ["false"]\n')
    task = Task.play(Scenario().say("finished"), project=repo.path)
    task.wait_for("interrupted")
    (name,) = os.listdir(os.path.join(home, "outbox"))
    with open(os.path.join(home, "outbox", name), encoding="utf-8") as file:
        text = file.read()
    assert '"quality_gate"' in text
    assert "quality gate failed: `false` failed with exit status 1" in text


@pytest.mark.req("GAT-11")
def test_the_stage_is_done_if_all_checks_pass() -> None:
    repo = project('post_work = ["true"]\nexpect_empty = ["cat empty.txt"]\nclean_git = true\n')
    repo.write("empty.txt", "")
    repo.commit("empty.txt")
    task = Task.play(Scenario().say("hello"), project=repo.path)
    task.wait_for("completed")
    result = said(task, "gate_result")
    assert [(check["name"], check["passed"]) for check in result["checks"]] == [
        ("clean_git", True),
        ("post_work", True),
        ("expect_empty", True),
    ]
    assert task.json("done", f"{STAGE}.done")["attempt"] == result["attempt"]


@pytest.mark.req("GAT-11")
def test_what_was_dirty_before_is_not_blamed_on_the_agent() -> None:
    repo = project("clean_git = true\n", "mine.txt")
    repo.write("mine.txt", "a person is at it\n")
    repo.write("new.txt", "and at this\n")
    task = Task.play(Scenario().write("theirs.txt", content="x\n").say("done"), project=repo.path)
    task.wait_for("interrupted")
    assert said(task, "pre_work")["uncommitted"] == ["mine.txt", "new.txt"]
    assert said(task, "gate_result")["reasons"] == ["not committed: theirs.txt"]
    repo.commit("theirs.txt")
    task.ask("resume")
    task.wait_for("completed")


@pytest.mark.req("GAT-11")
def test_a_worktree_must_be_clean_too() -> None:
    repo = project("clean_git = true\n")
    scenario = Scenario().write("theirs.txt", content="x\n").say("done")
    task = Task.play(scenario, "--worktree", project=repo.path)
    task.wait_for("interrupted")
    assert said(task, "gate_result")["reasons"] == ["not committed: theirs.txt"]


@pytest.mark.req("GAT-11")
def test_an_agent_cannot_hide_its_files_from_clean_git_and_from_the_saved_status() -> None:
    """The excludes of the repository count as they were before the work."""
    repo = project("clean_git = true\n")
    repo.write(".git/info/exclude", "mine.txt\n")
    repo.write("mine.txt", "excluded before\n")
    hide = "printf '*' >> .git/info/exclude; echo x > theirs.txt"
    task = Task.play(Scenario().tool("Bash", command=hide).say("done"), project=repo.path)
    task.wait_for("interrupted")
    assert said(task, "gate_result")["reasons"] == ["not committed: theirs.txt"]
    saved = task.json("state", "interrupts", "1", "context.json")["git"]["status"]
    assert [line for line in saved.splitlines() if line.startswith("?")] == ["? theirs.txt"]


@pytest.mark.req("GAT-11")
def test_output_that_should_be_empty_is_a_failure() -> None:
    repo = project('expect_empty = ["echo left over"]\n')
    task = Task.play(Scenario().say("done"), project=repo.path)
    task.wait_for("interrupted")
    (reason,) = said(task, "gate_result")["reasons"]
    assert "must print nothing" in reason
    assert reason.endswith(": left over")


@pytest.mark.req("GAT-11")
def test_with_warn_the_task_completes_and_every_view_shows_the_reasons() -> None:
    repo = project('post_work = ["echo broken; exit 3"]\non_quality = "warn"\n')
    task = Task.play(Scenario().say("done"), project=repo.path)
    task.wait_for("completed")
    result = said(task, "gate_result")
    assert (result["passed"], result["failed"], result["action"]) == (True, "post_work", "warn")
    expected = "failed with exit status 3: broken"
    assert expected in result["reasons"][0]
    assert expected in summary(task)
    assert expected in task.log()


@pytest.mark.req("GAT-11")
def test_an_issue_is_filed_once_with_the_reasons_on_its_stdin() -> None:
    repo = project(
        'pre_work = ["exit 4"]\npost_work = ["exit 3"]\non_quality = "file_issue"\n'
        'issue_command = "cat >> ../issues; echo https://example.org/issues/7"\n'
    )
    task = Task.play(Scenario().say("done"), project=repo.path)
    task.wait_for("completed")
    assert said(task, "gate_result")["reasons"][1] == "an issue was filed: https://example.org/issues/7"
    with open(os.path.join(repo.path, "..", "issues"), encoding="utf-8") as file:
        filed = file.read()
    assert filed.count("Checks before the work failed") == 1
    assert filed.count("Checks after the work failed") == 1
    assert "`exit 3` failed with exit status 3" in filed


def test_a_failing_issue_command_is_reported_and_stops_nothing() -> None:
    repo = project(
        'post_work = ["false"]\non_quality = "file_issue"\nissue_command = "echo no login >&2; exit 4"\n'
    )
    task = Task.play(Scenario().say("done"), project=repo.path)
    task.wait_for("completed")
    told = said(task, "gate_result")["reasons"][1]
    assert told == "no issue was filed: the command failed with exit status 4: no login"
    assert told in summary(task)


def test_a_command_that_takes_too_long_is_ended() -> None:
    repo = project('post_work = ["sleep 600"]\nquality_timeout = "0.3s"\n')
    task = Task.play(Scenario().say("done"), project=repo.path)
    task.wait_for("interrupted")
    assert "timed out" in said(task, "gate_result")["reasons"][0]


@pytest.mark.req("GAT-11")
def test_in_a_worktree_its_own_tree_is_looked_at() -> None:
    repo = project('post_work = ["test -e work.txt"]\nclean_git = true\n')
    work = "echo x > work.txt; git add work.txt; git -c user.name=a -c user.email=b commit -qm work"
    task = Task.play(Scenario().tool("Bash", command=work).say("done"), "--worktree", project=repo.path)
    task.wait_for("completed")
    assert said(task, "gate_result")["passed"] is True
    assert not os.path.exists(os.path.join(repo.path, "work.txt"))


# ── before the work ──


@pytest.mark.req("GAT-11")
def test_checks_that_fail_before_the_work_are_in_the_prompt_and_stop_nothing() -> None:
    repo = project('pre_work = ["true", "echo no linter; exit 2"]\n')
    task = Task.play(Scenario().say("done"), prompt="do the work", project=repo.path)
    task.wait_for("completed")
    (start,) = task.memory().starts()
    assert start.prompt.startswith("Before you began, these checks of the repository failed:\n")
    assert "failed with exit status 2: no linter" in start.prompt
    assert start.prompt.endswith("\n\ndo the work")
    assert [event["passed"] for event in task.events("pre_work.checked")] == [False]
    assert "before the work: " in summary(task)
    # No question can follow, so its own evidence is the gate.
    assert "role" not in said(task, "gate_result")


def test_checks_before_the_work_are_asked_once() -> None:
    repo = project('pre_work = ["echo x >> ../asked"]\n')
    task = Task.play(Scenario().say("a").crash("KILL", once=True).say("b"), project=repo.path)
    task.wait_for("completed")
    with open(os.path.join(repo.path, "..", "asked"), encoding="utf-8") as file:
        assert file.read() == "x\n"


# ── whom it concerns ──


@pytest.mark.req("GAT-11")
def test_a_flag_leaves_the_checks_out() -> None:
    repo = project('pre_work = ["false"]\npost_work = ["false"]\n')
    task = Task.play(Scenario().say("done"), "--no-quality", project=repo.path)
    task.wait_for("completed")
    assert task.events("pre_work.checked") == task.events("gate.judged") == []


def test_a_plain_command_is_checked_too() -> None:
    repo = project('post_work = ["test -e made.txt"]\n')
    task = Task.start("--", "touch", "made.txt", project=repo.path)
    task.wait_for("completed")
    assert task.json("outputs", "command_run.gate_result.json")["checks"][0]["name"] == "post_work"


def test_a_submitted_task_takes_the_checks_with_it() -> None:
    repo = project('post_work = ["make test"]\nquality_timeout = "90s"\n')
    done = holdfast("submit", "--", "true", cwd=repo.path)
    assert done.returncode == 0, done.stderr
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", done.stdout.strip()))
    (created,) = task.events("task.created")
    assert created["spec"]["quality"]["post_work"] == ["make test"]
    assert created["spec"]["quality"]["timeout_s"] == 90.0


def test_an_action_without_its_command_is_an_error_before_anything_is_made() -> None:
    repo = project('post_work = ["true"]\non_quality = "file_issue"\n')
    done = holdfast("run", "-d", "--", "true", cwd=repo.path)
    assert done.returncode == 2
    assert "issue_command is not set" in done.stderr


@pytest.mark.parametrize(
    ("line", "example"),
    [
        ('clean_git = "yes"', "clean_git = true"),
        ('post_work = "make test"', 'post_work = ["make test"]'),
        ('on_quality = "ignore"', 'on_quality = "interrupt"'),
        ('quality_timeout = "soon"', 'quality_timeout = "90s"'),
    ],
)
def test_a_setting_that_cannot_be_says_how_it_is_written(line: str, example: str) -> None:
    repo = project(f"{line}\n")
    done = holdfast("run", "-d", "--", "true", cwd=repo.path)
    assert done.returncode == 2
    assert f"for example: {example}" in done.stderr


# ── crashes ──

#: A check that records its start and waits until it may continue.
LOOKS = "echo x >> ../asked; while [ ! -e ../go ]; do sleep 0.05; done"


def completed_though_killed_at(settings: str) -> Task:
    """A task whose runner was killed while a check ran; the check was started once."""
    repo = project(settings)
    task = Task.play(Scenario().say("done"), project=repo.path)
    asked = os.path.join(repo.path, "..", "asked")
    eventually(lambda: os.path.exists(asked), 15.0)
    task.kill_runner()
    repo.write("../go")
    task.start_runner()
    task.wait_for("completed")
    with open(asked, encoding="utf-8") as file:
        assert file.read() == "x\n"
    return task


@pytest.mark.req("GAT-11")
def test_a_gate_outlives_its_runner_and_is_asked_once() -> None:
    task = completed_though_killed_at(f'post_work = ["{LOOKS}"]\n')
    assert len(task.memory().starts()) == 1


def test_a_gate_whose_process_dies_is_asked_again_and_then_a_person() -> None:
    repo = project('post_work = ["kill -KILL $PPID"]\n')
    task = Task.play(Scenario().say("done"), project=repo.path)
    manifest = task.wait_for("interrupted", within_s=30)
    assert "quality gate could not run" in manifest["interrupt"]["reason"]
    assert len(task.events("chore.failed")) == 3


def test_checks_before_the_work_outlive_the_runner_too() -> None:
    task = completed_though_killed_at(f'pre_work = ["{LOOKS}; exit 5"]\n')
    assert "failed with exit status 5" in task.memory().starts()[0].prompt


def test_a_task_is_stopped_while_its_gate_looks_and_the_gate_is_asked_again() -> None:
    repo = project(f'post_work = ["{LOOKS}"]\n')
    task = Task.play(Scenario().say("done"), project=repo.path)
    asked = os.path.join(repo.path, "..", "asked")
    eventually(lambda: os.path.exists(asked), 15.0)
    task.ask("stop")
    task.wait_for("killed")
    repo.write("../go")
    assert task.ask("retry").returncode == 0
    task.wait_for("completed")
    with open(asked, encoding="utf-8") as file:
        assert file.read() == "x\nx\n"
