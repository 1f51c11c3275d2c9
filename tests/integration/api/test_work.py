"""`Task.apply` and `Task.pr`: the same rules and errors as the command line."""

from __future__ import annotations

import asyncio  # noqa: TID253 (it is what is tested)
import os
import time

import pytest

import holdfast
import holdfast.aio
from holdfast import errors
from holdfast.testing import Scenario
from tests.support.gh import Gh, path_without_gh
from tests.support.packets import REPORTS, Written
from tests.support.repos import Repo
from tests.support.tasks import workspace
from tests.support.waiting import eventually

LIMIT_S = 60.0


@pytest.fixture
def project(home: str) -> Repo:
    remote = Repo(os.path.join(os.path.dirname(home), "remote.git"), with_git=False)
    remote.git("init", "-q", "--bare", "-b", "main")
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write("a.txt", "a\n")
    repo.commit()
    repo.git("remote", "add", "origin", remote.path)
    repo.git("push", "-q", "origin", "main")
    return repo


def worked(project: Repo, scenario: Scenario | None = None, *, worktree: bool = True) -> holdfast.Task:
    steps = scenario or Scenario().write("new.txt", content="new\n").say("done").result("ok")
    path = str(steps.write_to(os.path.join(workspace(), "scenario.json")))
    task = holdfast.run(
        "add it", agent="scripted", options={"scenario": path}, project=project.path, worktree=worktree
    )
    task.wait(timeout_s=LIMIT_S)
    return task


# ── apply ──


def test_the_work_is_merged_and_the_task_shows_it(project: Repo) -> None:
    task = worked(project)
    applied = task.apply()
    assert (applied.how, applied.branch, applied.into) == ("merge", "main", project.path)
    assert (applied.paths, applied.left_out) == (("new.txt",), ())
    assert applied.commit == project.git("rev-parse", "HEAD").strip()
    assert project.read("new.txt") == "new\n"
    assert task.manifest()["applied"]["how"] == "merge"
    with pytest.raises(errors.NotPossible):
        task.apply()


def test_as_a_patch_nothing_is_committed(project: Repo) -> None:
    applied = worked(project).apply(patch=True)
    assert (applied.how, applied.commit) == ("patch", None)
    assert project.git("status", "--porcelain") == "?? new.txt\n"


def test_work_that_goes_on_or_is_in_place_is_refused(project: Repo) -> None:
    slow = Scenario().say("hm").sleep(600).result("ok")
    path = str(slow.write_to(os.path.join(workspace(), "slow.json")))
    task = holdfast.run(
        "slowly", agent="scripted", options={"scenario": path}, project=project.path, worktree=True
    )
    for deliver in (task.apply, task.pr):
        with pytest.raises(errors.NotPossible, match="has not ended"):
            deliver()
    task.stop(now=True)
    eventually(task.is_over, LIMIT_S)
    with pytest.raises(errors.NotPossible, match="is killed") as refused:
        task.pr()
    assert "--draft" in refused.value.hint
    with pytest.raises(errors.NotPossible, match="in place"):
        worked(project, worktree=False).apply()


def test_a_conflict_changes_nothing(project: Repo) -> None:
    task = worked(project, Scenario().write("a.txt", content="theirs\n").say("done").result("ok"))
    project.write("a.txt", "ours\n")
    project.commit()
    head = project.git("rev-parse", "HEAD")
    with pytest.raises(errors.NotPossible):
        task.apply()
    assert project.git("rev-parse", "HEAD") == head
    assert project.git("status", "--porcelain") == ""


def test_objections_are_a_warning_to_apply_and_refused_without_a_draft(
    project: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = REPORTS["review"].replace("## Findings", "## Findings\n\n- [blocker] it is wrong\n", 1)
    review = Scenario().say(report).result("ok")
    stages = {"scripted_impl": None, "scripted_review": review}
    Written(stages, task_id="it", project=project, workspace="worktree").run()
    task = holdfast.open("it")
    assert task.manifest()["concerns"]
    with pytest.raises(errors.NotPossible, match="objections"):
        task.pr()
    monkeypatch.setenv("PATH", path_without_gh())
    assert task.pr(draft=True).branch == "holdfast/it"
    with pytest.warns(holdfast.HoldfastWarning, match="objections"):
        task.apply()


# ── pr ──


def test_a_pull_request_is_opened_updated_and_waited_for(
    project: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, gh = worked(project), Gh()
    monkeypatch.setenv("PATH", gh.env["PATH"])
    pull = task.pr(base="main")
    assert (pull.url, pull.is_new, pull.checks) == ("https://forge.example/o/n/pull/1", True, None)
    assert (pull.branch, pull.remote, pull.paths) == (f"holdfast/{task.id}", "origin", ("new.txt",))
    assert gh.pulls()[pull.branch]["body"] == pull.body
    gh.answer([{"name": "test", "bucket": "fail", "link": "https://forge.example/1"}])
    again = task.pr(wait_s=LIMIT_S)
    assert (again.url, again.is_new) == (pull.url, False)
    assert again.checks is not None
    assert [(check.name, check.bucket) for check in again.checks] == [("test", "fail")]


def test_without_gh_the_branch_is_pushed_and_the_text_is_there(
    project: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", path_without_gh())
    task = worked(project)
    pull = task.pr(wait_s=1)
    assert (pull.url, pull.checks, pull.title) == (None, None, "add it")
    assert "new.txt" in pull.body
    assert project.git("ls-remote", "origin", pull.branch).startswith(pull.commit)


# ── asyncio ──


def test_the_same_in_an_event_loop_where_a_wait_can_be_cancelled(
    project: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, gh = worked(project), Gh()
    monkeypatch.setenv("PATH", gh.env["PATH"])
    gh.answer([{"name": "test", "bucket": "pending", "link": ""}])

    async def main() -> float:
        again = await holdfast.aio.open(task.id)
        call = asyncio.create_task(again.pr(wait_s=600))
        await asyncio.to_thread(eventually, lambda: "pr checks" in gh.verbs(), LIMIT_S)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await again.apply()).paths == ("new.txt",)
        return time.monotonic()

    begun = asyncio.run(main())  # it waits for its threads
    assert time.monotonic() - begun < 20
