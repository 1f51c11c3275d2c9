"""`holdfast pr` and the gate `ci` with the real `gh`, and a GitHub of ours on loopback.

`gh` of Debian 12 (2.23) has no `pr checks --json`, and its `pr edit` asks for classic projects, which GitHub
has refused since 2025.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.testing import Scenario
from tests.support import repos
from tests.support.github import URL, GitHub, check
from tests.support.packets import Written, calls, played
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast
from tests.support.waiting import eventually

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.req("TEA-6", "TEA-7", "TEA-8")]

PULL = "https://localhost/o/n/pull/1"


@pytest.fixture
def remote() -> Repo:
    return repos.bare_remote()


@pytest.fixture
def project(remote: Repo) -> Repo:
    return repos.pushed_project(remote, url=URL)


@pytest.fixture
def github(remote: Repo) -> Iterator[GitHub]:
    github = GitHub(os.path.dirname(os.environ["HOLDFAST_HOME"]), remote.path)
    yield github
    github.stop()


def written(project: Repo, **more: Any) -> Written:
    """A stage that writes one line more each time it runs, and a review."""
    impl = played("impl", before=Scenario(on_resume="restart").write("b.txt", content="x\n", append=True))
    stages = {"scripted_impl": impl, "scripted_review": None}
    return Written(stages, project=project, workspace="worktree", **more)


def prompt(task: Task, call: dict[str, Any]) -> str:
    return task.read("attempts", f"{call['attempt']:03d}-{call['stage']}", "prompt").decode()


def test_a_pull_request_is_opened_and_updated(project: Repo, remote: Repo, github: GitHub) -> None:
    task = written(project).run()
    done = holdfast("pr", "it", "--draft", env=github.env)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{PULL}\n"
    (pull,) = github.pulls()
    assert (pull["title"], pull["isDraft"], pull["baseRefName"]) == ("write b.txt", True, "main")
    assert "| scripted_impl | scripted | passed |" in pull["body"]
    assert holdfast("retry", "it", "-m", "more", "--from", "scripted_impl").returncode == 0
    eventually(lambda: len(calls(task, "scripted_review")) == 2, 40.0, "it is reviewed again")
    task.wait_for("completed", within_s=40.0)
    done = holdfast("pr", "it", "--base", "other", env=github.env)
    assert done.returncode == 0, done.stderr
    assert "updated the pull request" in done.stderr
    (updated,) = github.pulls()
    assert updated["body"] != pull["body"]
    assert (updated["title"], updated["baseRefName"]) == ("write b.txt", "other")
    assert remote.git("show", "holdfast/it:b.txt") == "x\nx\n"
    assert not [line for line in github.requests() if not line.endswith(" 200")]


def test_a_login_in_variables(project: Repo, github: GitHub) -> None:
    written(project).run()
    os.remove(os.path.join(os.environ["HOME"], ".config", "gh", "hosts.yml"))
    refused = holdfast("pr", "it", env=github.env)
    assert refused.returncode == 3
    assert "gh auth login" in refused.stderr
    login = {"GH_HOST": "localhost", "GH_ENTERPRISE_TOKEN": "dummy"}
    for _ in range(2):
        done = holdfast("pr", "it", env={**github.env, **login})
        assert done.returncode == 0, done.stderr


def test_a_text_that_is_longer_than_an_argument_may_be(project: Repo, github: GitHub) -> None:
    """Linux takes no argument of more than 128 KiB."""
    commands = ["test -e b.txt", *(f"true # {number} {'き' * 9_000}" for number in range(5))]
    packet = written(project, acceptance={"commands": commands})
    packet.put("manifest.yaml", json.dumps(packet.manifest, ensure_ascii=False))
    packet.run()
    for words in ("opened", "updated"):
        done = holdfast("pr", "it", env=github.env)
        assert done.returncode == 0, done.stderr
        assert f"{words} a pull" in done.stderr or f"{words} the pull" in done.stderr
        (pull,) = github.pulls()
        assert pull["body"].count("き") == 45_000


class TestChecks:
    def test_they_pass(self, project: Repo, github: GitHub) -> None:
        written(project).run()
        # The last run of a check counts.
        github.answer(check("test", "FAILURE", second=1), check("test", "SUCCESS", second=5))
        done = holdfast("pr", "it", "--wait", "60s", env=github.env)
        assert done.returncode == 0, done.stderr
        assert "1 check passed" in done.stderr

    def test_one_fails(self, project: Repo, github: GitHub) -> None:
        written(project).run()
        github.answer(check("test", "FAILURE"), check("docs", "SUCCESS"), check("lint", "CANCELLED", job=9))
        done = holdfast("pr", "it", "--wait", "60s", "--json", env=github.env)
        assert done.returncode == 1, done.stderr
        found = {each["name"]: each["bucket"] for each in json.loads(done.stdout)["checks"]}
        assert found == {"test": "fail", "docs": "pass", "lint": "fail"}

    def test_one_is_pending(self, project: Repo, github: GitHub) -> None:
        written(project).run()
        github.answer(check("test"), check("docs", "SUCCESS"))
        done = holdfast("pr", "it", "--wait", "1s", env=github.env)
        assert done.returncode == 3, done.stderr
        assert "checks are pending after 1.0s: test" in done.stderr

    def test_what_a_user_sets_for_terminals_does_not_matter(self, project: Repo, github: GitHub) -> None:
        written(project).run()
        github.answer(check("test", "FAILURE"))
        env = {**github.env, "GH_FORCE_TTY": "80", "CLICOLOR_FORCE": "1"}
        done = holdfast("pr", "it", "--wait", "60s", env=env)
        assert done.returncode == 1, done.stderr
        assert "failed: test" in done.stderr

    def test_each_goes_back_with_its_own_log(self, project: Repo, github: GitHub) -> None:
        task = written(project).run()
        github.answer(check("test", "FAILURE"), check("lint", "FAILURE", job=9))
        done = holdfast("pr", "it", "--wait", "60s", "--retry", "1", env=github.env)
        assert done.returncode == 1, done.stderr
        told = prompt(task, calls(task, "scripted_impl")[-1])
        for name in ("test", "lint"):
            assert told.count(f"E   assert 1 == 2 in {name}") == 1, told


def test_the_gate_repairs_what_fails_and_waits(project: Repo, remote: Repo, github: GitHub) -> None:
    github.answer(check("test", "FAILURE"))
    packet = written(project, repairs=1, gate={"ci": {"pull_request": "draft"}})
    task = packet.start("--env", "SSL_CERT_FILE", env=github.env)
    task.wait_for("failed", within_s=60.0)
    assert len(calls(task, "scripted_impl")) == 2
    assert "E   assert 1 == 2 in test" in prompt(task, calls(task, "scripted_impl")[1])
    github.answer(check("test"))
    assert holdfast("retry", "it", env=github.env).returncode == 0
    task.wait_for("waiting", within_s=40.0)
    assert f"waits for the checks of {PULL}: test" in task.manifest()["status_reason"]
    github.answer(check("test", "SUCCESS"))
    task.wait_for("completed", within_s=40.0)
    (pull,) = github.pulls()
    assert pull["isDraft"]
    assert task.manifest()["ci"]["commit"] == remote.git("rev-parse", "holdfast/it").strip()
