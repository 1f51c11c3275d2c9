"""The gate `ci`: a real remote (a bare repository), and a stand-in for gh in PATH."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any

import pytest

from holdfast.testing import Scenario
from tests.support import loops, repos
from tests.support.gh import Gh, path_without_gh
from tests.support.packets import Written, calls, played
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.req("TEA-8")]

LINK = "https://forge.example/o/n/actions/runs/77/job/1"
PASSED, PENDING, FAILED = (
    [{"name": "test", "bucket": bucket, "link": LINK}] for bucket in ("pass", "pending", "fail")
)


@pytest.fixture
def remote() -> Repo:
    return repos.bare_remote()


@pytest.fixture
def project(remote: Repo) -> Repo:
    return repos.pushed_project(remote)


def written(project: Repo, *, repairs: int = 2, ci: dict[str, Any] | None = None, **more: Any) -> Written:
    """A stage that writes one line more each time it runs, and a review."""
    impl = played("impl", before=Scenario(on_resume="restart").write("b.txt", content="x\n", append=True))
    values = {"pull_request": "draft", **(ci or {})}
    return Written(
        {"scripted_impl": impl, "scripted_review": None},
        project=project,
        repairs=repairs,
        **{"workspace": "worktree", "gate": {"ci": values}, **more},
    )


def prompt(task: Task, call: dict[str, Any]) -> str:
    return task.read("attempts", f"{call['attempt']:03d}-{call['stage']}", "prompt").decode()


def test_it_pushes_and_waits_until_the_checks_pass(project: Repo, remote: Repo) -> None:
    gh = Gh()
    gh.answer(PENDING)
    task = written(project).start(env=gh.env)
    reason = "waits for the checks of https://forge.example/o/n/pull/1: test"
    eventually(lambda: reason in (task.manifest()["status_reason"] or ""), within_s=60.0)

    def is_shown() -> bool:  # while it looks at the checks, it does not wait
        shown = holdfast("show", "it").stdout
        return "pending: https://forge.example/o/n/pull/1" in shown and "wakes" in shown

    eventually(is_shown, within_s=30.0)
    assert remote.git("show", "holdfast/it:b.txt") == "x\n"
    gh.answer(PASSED)
    task.wait_for("completed", within_s=40.0)
    assert task.manifest()["ci"]["state"] == "passed"
    assert task.manifest()["ci"]["commit"] == remote.git("rev-parse", "holdfast/it").strip()
    created = [call["argv"] for call in gh.calls() if call["argv"][:2] == ["pr", "create"]]
    assert len(created) == 1
    assert "--draft" in created[0]
    body = gh.pulls()["holdfast/it"]["body"]
    assert "Acceptance commands (passed)" in body
    assert "By holdfast, task `it`." in body
    assert len(calls(task)) == 2


def test_what_failed_goes_back_with_its_log_and_is_pushed_again(project: Repo, remote: Repo) -> None:
    gh = Gh()
    gh.answer(FAILED, PASSED)
    task = written(project).start(env=gh.env)
    task.wait_for("completed", within_s=40.0)
    assert [call["stage"] for call in calls(task)] == [
        "scripted_impl", "scripted_review", "scripted_impl", "scripted_review",
    ]  # fmt: skip
    again = calls(task, "scripted_impl")[1]
    assert again["mode"] == "resume"
    told = prompt(task, again)
    assert "the check test of https://forge.example/o/n/pull/1 failed" in told
    assert "assert 1 == 2 in job 1" in told
    assert remote.git("show", "holdfast/it:b.txt") == "x\nx\n"
    assert gh.verbs().count("pr create") == 1
    assert gh.verbs().count("api --hostname") == 1
    (repair,) = task.manifest()["repairs"]
    assert (repair["stage"], repair["failed_stage"]) == ("scripted_impl", "scripted_review")


def test_after_the_last_repair_it_has_failed_and_retry_sends_it_back(project: Repo, remote: Repo) -> None:
    gh = Gh()
    gh.answer(FAILED)
    task = written(project, repairs=1).start(env=gh.env)
    task.wait_for("failed", within_s=40.0)
    assert "the check test of" in task.manifest()["status_reason"]
    assert len(calls(task, "scripted_impl")) == 2
    assert task.events("failure.triaged")[-1]["gate_failed"] == "ci"
    gh.answer(PASSED)
    done = holdfast("retry", "it", env=gh.env)
    assert done.returncode == 0, done.stderr
    task.wait_for("completed", within_s=40.0)
    assert "assert 1 == 2 in job 1" in prompt(task, calls(task, "scripted_impl")[2])
    assert remote.git("show", "holdfast/it:b.txt") == "x\nx\nx\n"


def test_checks_of_the_commit_before_do_not_count(project: Repo, remote: Repo) -> None:
    gh = Gh()
    gh.answer(PASSED)
    gh.show_head(project.git("rev-parse", "HEAD").strip())
    task = written(project).start(env=gh.env)
    task.wait_for("waiting", within_s=40.0)
    assert "none has begun" in task.manifest()["status_reason"]
    assert "pr checks" not in gh.verbs()
    gh.show_head("")
    task.wait_for("completed", within_s=40.0)


def test_after_its_time_a_person_is_asked_and_resume_looks_again(project: Repo, remote: Repo) -> None:
    gh = Gh()
    gh.answer(PENDING)
    task = written(project, ci={"timeout_sec": 1}).start(env=gh.env)
    task.wait_for("interrupted", within_s=40.0)
    assert (
        "after 1.0s, the checks of https://forge.example/o/n/pull/1 are pending: test"
        in (task.manifest()["status_reason"])
    )
    gh.answer(PASSED)
    assert holdfast("resume", "it").returncode == 0
    task.wait_for("completed", within_s=40.0)
    assert len(calls(task)) == 2


def test_a_pull_request_without_checks_is_no_success(project: Repo, remote: Repo) -> None:
    gh = Gh()
    task = written(project, ci={"timeout_sec": 1}).start(env=gh.env)
    task.wait_for("interrupted", within_s=40.0)
    assert "are not there" in task.manifest()["status_reason"]


def test_a_forge_that_cannot_be_reached_is_tried_again_then_a_person_is_asked(
    project: Repo, remote: Repo
) -> None:
    gh = Gh()
    aside = f"{remote.path}.aside"
    os.rename(remote.path, aside)
    os.mkdir(remote.path)
    task = written(project).start("--base-interval", "0.1s", "--max-interval", "0.1s", env=gh.env)
    task.wait_for("interrupted", within_s=40.0)
    assert "the gate 'ci' could not push or look" in task.manifest()["status_reason"]
    assert len(task.events("chore.failed")) == 5
    os.rmdir(remote.path)
    os.rename(aside, remote.path)
    gh.answer(PASSED)
    assert holdfast("resume", "it").returncode == 0
    task.wait_for("completed", within_s=40.0)
    assert len(calls(task)) == 2


def test_a_pull_request_that_was_closed_is_not_opened_again(project: Repo, remote: Repo) -> None:
    gh = Gh()
    gh.answer(PENDING)
    task = written(project).start("--base-interval", "0.1s", "--max-interval", "0.1s", env=gh.env)
    task.wait_for("waiting", within_s=40.0)
    gh.change("holdfast/it", state="CLOSED")
    task.wait_for("interrupted", within_s=40.0)
    assert "pull/1 is closed" in task.manifest()["status_reason"]
    assert gh.verbs().count("pr create") == 1


def test_it_is_stopped_while_it_waits(project: Repo, remote: Repo) -> None:
    gh = Gh()
    gh.answer(PENDING)
    task = written(project).start(env=gh.env)
    task.wait_for("waiting", within_s=40.0)
    assert holdfast("stop", "it").returncode == 0
    task.wait_for("killed", within_s=40.0)
    gh.answer(PASSED)
    done = holdfast("retry", "it", env=gh.env)
    assert done.returncode == 0, done.stderr
    task.wait_for("completed", within_s=40.0)
    assert len(calls(task)) == 2  # nothing was paid for again


class TestRefused:
    def check(self, packet: Written, *, env: dict[str, str]) -> str:
        """What `pipeline check` and `run` say."""
        checked = holdfast("pipeline", "check", packet.path, env=env)
        ran = holdfast("run", "-d", "--packet", packet.path, env=env)
        assert checked.returncode == 2, checked.stderr
        assert ran.returncode == 2, ran.stderr
        said = " ".join(checked.stderr.split())
        assert said == " ".join(ran.stderr.split())
        return said

    def test_without_gh(self, project: Repo, remote: Repo) -> None:
        env = {"PATH": path_without_gh()}
        assert "gate.ci needs gh, which is not installed" in self.check(written(project), env=env)

    def test_without_a_worktree(self, project: Repo, remote: Repo) -> None:
        said = self.check(written(project, workspace="in_place"), env=Gh().env)
        assert "gate.ci needs a branch of the task" in said

    def test_without_a_remote(self, project: Repo, remote: Repo) -> None:
        said = self.check(written(project, ci={"remote": "upstream"}), env=Gh().env)
        assert "has no remote upstream" in said

    def test_a_remote_that_is_a_command(self, project: Repo, remote: Repo) -> None:
        project.git("config", "remote.origin.url", "ext::sh -c id")
        assert "not one that holdfast pushes to" in self.check(written(project), env=Gh().env)

    def test_a_profile_without_a_stage_that_writes(self, project: Repo, remote: Repo) -> None:
        packet = Written(
            {"scripted_review": None}, project=project, intent="design_only",
            workspace="worktree", gate={"ci": {"pull_request": "draft"}},
        )  # fmt: skip
        assert "no stage writes" in self.check(packet, env=Gh().env)


class TestTrust:
    """Pushing is something that the user asked for."""

    def profile(self, project: Repo) -> None:
        path = os.path.join(project.path, ".holdfast", "pipelines", "impl.yaml")
        with open(path, encoding="utf-8") as file:
            pipeline = json.load(file)
        pipeline["profiles"]["safe_impl"]["ci"] = {"pull_request": "ready", "timeout_sec": 60}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(pipeline, file)

    def test_a_profile_of_the_project_needs_trust(self, project: Repo, remote: Repo) -> None:
        gh = Gh()
        gh.answer(PASSED)
        packet = written(project, gate={})
        self.profile(project)
        shown = holdfast("trust", project.path)
        assert "ci.pull_request" in shown.stdout + shown.stderr
        done = holdfast("run", "-d", "--packet", packet.path, env=gh.env)
        assert done.returncode == 2  # the profile is not used at all
        task = packet.start("--trust-project", env=gh.env)
        task.wait_for("completed", within_s=40.0)
        (created,) = [call["argv"] for call in gh.calls() if call["argv"][:2] == ["pr", "create"]]
        assert "--draft" not in created
        assert task.manifest()["ci"]["state"] == "passed"

    def test_a_manifest_turns_the_gate_of_a_profile_off(self, project: Repo, remote: Repo) -> None:
        gh = Gh()
        packet = written(project, ci={"pull_request": "off"})
        self.profile(project)
        packet.start("--trust-project", env=gh.env).wait_for("completed", within_s=40.0)
        assert not os.path.exists(os.path.join(gh.folder, "calls"))
        assert "holdfast/it" not in remote.git("branch")

    def test_a_packet_inside_a_repository_needs_trust(self, project: Repo, remote: Repo) -> None:
        packet = written(project)
        inside = os.path.join(project.path, "packet")
        shutil.copytree(packet.path, inside)
        done = holdfast("run", "-d", "--packet", inside, env=Gh().env)
        assert done.returncode == 2
        assert "gate.ci.pull_request" in done.stderr

    def test_an_agent_cannot_choose_the_address(self, project: Repo, remote: Repo) -> None:
        gh = Gh()
        gh.answer(PASSED)
        elsewhere = Repo(os.path.join(workspace(), "elsewhere.git"), with_git=False)
        elsewhere.git("init", "-q", "--bare")
        before = Scenario().write("b.txt", content="x\n")
        before.tool("sh", command=f"git config remote.origin.url {elsewhere.path}")
        packet = Written(
            {"scripted_impl": played("impl", before=before)}, project=project, workspace="worktree",
            gate={"ci": {"pull_request": "draft"}},
        )  # fmt: skip
        packet.start(env=gh.env).wait_for("completed", within_s=40.0)
        assert elsewhere.git("branch") == ""
        assert remote.git("show", "holdfast/it:b.txt") == "x\n"


@pytest.mark.parametrize("point", ["pr.pushed", "pr.opened", "ci.published", "chores.looked"])
def test_killed_at_each_step(project: Repo, remote: Repo, point: str) -> None:
    gh = Gh()
    gh.answer(PENDING, FAILED, PASSED)
    killed = os.path.join(workspace(), "killed")
    names = {"HOLDFAST_FAILPOINT": f"{point}=kill", "HOLDFAST_FAILPOINT_ONCE": killed}
    flags = [word for name in names for word in ("--env", name)]  # the chore has them too
    task = written(project).start(*flags, env={**gh.env, **names})
    eventually(lambda: os.path.exists(killed), within_s=30.0)
    if point == "chores.looked":
        task.start_runner()
    task.wait_for("completed", within_s=40.0)
    assert gh.verbs().count("pr create") == 1
    assert remote.git("show", "holdfast/it:b.txt") == "x\nx\n"
    assert remote.git("rev-list", "--count", "main..holdfast/it") == "2\n"
    assert len(calls(task)) == 4


def test_a_queued_task_gives_its_slot_away_while_it_waits(
    project: Repo, remote: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    gh = Gh()
    gh.answer(PENDING)
    packet = written(project)
    task = loops.submit("--packet", packet.path, "--base-interval", "5s", env=gh.env)
    loops.up("--slots", "1", env=gh.env)
    task.wait_for("waiting", within_s=30.0)
    other = loops.submit("--id", "other", "--project", project.path, "--", "true", env=gh.env)
    other.wait_for("completed", within_s=40.0)
    assert task.status() != "completed"
    gh.answer(PASSED)
    task.wait_for("completed", within_s=30.0)
