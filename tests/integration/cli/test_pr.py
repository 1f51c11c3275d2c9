"""holdfast pr: a real remote (a bare repository), and a stand-in for gh in PATH."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from holdfast.testing import Scenario
from tests.support import repos
from tests.support.gh import GH, Gh, path_without_gh
from tests.support.packets import Written, calls, played
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.req("TEA-6")]


@pytest.fixture
def remote() -> Repo:
    return repos.bare_remote()


@pytest.fixture
def project(remote: Repo) -> Repo:
    return repos.pushed_project(remote)


def give_address(project: Repo, remote: Repo) -> None:
    """Let git itself push: the user's settings lead to an ssh that runs the other side here."""
    ssh = project.write("../ssh", '#!/bin/sh\nshift\nexec sh -c "$*"\n')
    os.chmod(ssh, 0o755)
    with open(os.path.join(os.environ["HOME"], ".gitconfig"), "w", encoding="utf-8") as file:
        file.write(f'[url "ssh://here{remote.path}"]\n\tinsteadOf = https://forge.example/o/n.git\n')
        file.write(f"[core]\n\tsshCommand = {ssh}\n[ssh]\n\tvariant = simple\n")
    project.git("remote", "set-url", "origin", "https://forge.example/o/n.git")


def work(project: Repo, task_id: str = "it", **more: Any) -> Task:
    # A stage that is run again does more.
    before = Scenario().usage(input_tokens=1200, output_tokens=300, cost_usd=0.25)
    before.write("b.txt", content="x\n", append=True)
    scenarios = {"scripted_impl": played("impl", before=before), "scripted_review": None}
    return Written({**scenarios, **more}, task_id=task_id, project=project, workspace="worktree").run()


def pr(*words: str, gh: Gh | None = None, cwd: str | None = None) -> subprocess.CompletedProcess[str]:
    return holdfast("pr", *words, env=gh.env if gh is not None else {"PATH": path_without_gh()}, cwd=cwd)


def test_the_work_is_pushed_and_a_pull_request_opened(project: Repo, remote: Repo) -> None:
    task, gh = work(project), Gh()
    head = project.git("rev-parse", "HEAD")
    done = pr("it", "--draft", "--base", "main", gh=gh)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "https://forge.example/o/n/pull/1\n"
    assert remote.git("show", "holdfast/it:b.txt") == "x\n"
    pull = gh.pulls()["holdfast/it"]
    assert pull["title"] == "write b.txt"
    for part in (
        "| scripted_impl | scripted | passed |",
        "$0.25",
        "1.5k",
        "`test -e b.txt`",
        "`b.txt`",
        "`it`",
    ):
        assert part in pull["body"], pull["body"]
    assert task.path() not in pull["body"]
    created = next(call for call in gh.calls() if call["argv"][:2] == ["pr", "create"])
    assert {"--draft", "--base", "main"} <= set(created["argv"])
    assert created["cwd"] == "/"  # a program of a version manager obeys files of its directory
    # Nothing of the user's own changed.
    assert project.git("rev-parse", "HEAD") == head
    assert project.git("status", "--porcelain", "--untracked-files=no") == ""


def test_a_second_run_updates(project: Repo, remote: Repo) -> None:
    work(project)
    gh = Gh()
    assert pr("it", gh=gh).returncode == 0
    again = pr("it", gh=gh)
    assert again.returncode == 0, again.stderr
    assert "updated the pull request" in again.stderr
    assert gh.verbs() == ["pr list", "pr create", "pr list", "api --hostname"]
    first = remote.git("rev-parse", "holdfast/it")
    tree = os.path.join(os.environ["HOLDFAST_HOME"], "worktrees", "it")
    Repo(tree, with_git=False).write("b.txt", "more\n")
    data = json.loads(pr("it", "--json", gh=gh).stdout)
    assert (data["schema"], data["was_there"], data["is_new"]) == ("holdfast.pr/1", True, False)
    assert remote.git("show", "holdfast/it:b.txt") == "more\n"
    assert remote.git("rev-parse", "holdfast/it^") == first
    # History that was rewritten here replaces what was pushed from here.
    Repo(tree, with_git=False).git("commit", "-q", "--amend", "-m", "rewritten")
    done = pr("it", gh=gh)
    assert done.returncode == 0, done.stderr
    assert remote.git("log", "-1", "--format=%s", "holdfast/it") == "rewritten\n"


def test_commits_of_others_are_never_overwritten(project: Repo, remote: Repo) -> None:
    work(project)
    gh = Gh()
    assert pr("it", gh=gh).returncode == 0
    other = Repo(os.path.join(workspace(), "other"), with_git=False)
    other.git("clone", "-q", "-b", "holdfast/it", remote.path, ".")
    other.commit("theirs")
    other.git("push", "-q", "origin", "HEAD")
    theirs = remote.git("rev-parse", "holdfast/it")
    done = pr("it", gh=gh)
    assert done.returncode == 3
    assert "has commits that are not of this task" in " ".join(done.stderr.split())
    assert remote.git("rev-parse", "holdfast/it") == theirs


def test_without_gh_it_prints_what_to_do(project: Repo, remote: Repo) -> None:
    work(project)
    done = pr("it", "--base", "main")
    assert done.returncode == 0, done.stderr
    assert remote.git("show", "holdfast/it:b.txt") == "x\n"
    said = " ".join(done.stderr.split())
    assert f"pushed holdfast/it to {remote.path}; gh is not installed" in said
    assert "open a pull request of holdfast/it into main with this title and text" in said
    assert done.stdout.startswith("write b.txt\n\nwrite b.txt\n\n## Checks\n")


def test_work_that_failed_or_is_objected_to_is_only_a_draft(project: Repo, remote: Repo) -> None:
    headings = "".join(f"## {name}\n\n-\n\n" for name in ("Test gaps", "Breaking changes", "Minimal fix"))
    finding = f"## Findings\n\n- [blocker] it is wrong\n\n{headings}"
    work(project, scripted_review=finding)
    gh = Gh()
    done = pr("it", gh=gh)
    assert done.returncode == 3
    assert "--draft" in done.stderr
    assert "holdfast/it" not in remote.git("branch")
    done = pr("it", "--draft", gh=gh)
    assert done.returncode == 0, done.stderr
    assert "## Findings" in gh.pulls()["holdfast/it"]["body"]


class TestKilled:
    """`pr` is killed at any time; the next one finishes what it began."""

    def die(self, moment: str) -> str:
        """Code that kills the command above it, once."""
        done = os.path.join(workspace(), f"killed-{moment}")
        return (
            "import os, signal, time\n"
            f"if not os.path.exists({done!r}):\n"
            f"    open({done!r}, 'w').close()\n"
            "    pid = os.getppid()\n"
            "    while True:\n"
            "        with open(f'/proc/{{pid}}/cmdline') as file:\n"
            "            words = file.read().split('\\0')\n"
            "        if 'holdfast' in words and 'pr' in words:\n"
            "            break\n"
            "        with open(f'/proc/{{pid}}/stat') as file:\n"
            "            pid = int(file.read().rpartition(')')[2].split()[1])\n"
            "    os.kill(pid, signal.SIGKILL)\n"
        )

    def finishes(self, gh: Gh, remote: Repo) -> None:
        killed = pr("it", gh=gh)
        assert killed.returncode == -9, killed.stderr
        done = pr("it", gh=gh)
        assert done.returncode == 0, done.stderr
        assert remote.git("show", "holdfast/it:b.txt") == "x\n"
        assert gh.verbs().count("pr create") == 1
        assert len(gh.pulls()) == 1
        tree = os.path.join(os.environ["HOLDFAST_HOME"], "worktrees", "it")
        assert Repo(tree, with_git=False).git("rev-list", "--count", "main..holdfast/it") == "1\n"

    def test_while_the_remote_takes_it(self, project: Repo, remote: Repo) -> None:
        give_address(project, remote)
        work(project)
        script = self.die("push").replace("{{pid}}", "{pid}")
        path = remote.write("hooks/pre-receive", f"#!{sys.executable}\n{script}")
        os.chmod(path, 0o755)
        self.finishes(Gh(), remote)

    @pytest.mark.parametrize("verb", ["list", "create"])
    def test_while_gh_works(self, project: Repo, remote: Repo, verb: str) -> None:
        work(project)
        code = self.die(verb).replace("\n", "\n    ")
        mark = "json.dump(pulls, open("
        before, _, after = GH.rpartition(mark)
        self.finishes(Gh(script=f"{before}{mark}{after}if words[1] == {verb!r}:\n    {code}\n"), remote)


class TestHostile:
    """The repository's settings are an agent's."""

    def planted(self, project: Repo) -> str:
        """A command in every setting by which a push could run it; returns the file that it would write."""
        ran = os.path.join(workspace(), "ran")
        evil = f"touch {ran}; exit 1 #"
        for name in (
            "core.sshCommand", "core.askPass", "credential.helper", "core.hooksPath", "core.fsmonitor",
            "remote.origin.receivepack", "remote.origin.vcs", "gpg.program", "core.gitProxy",
        ):  # fmt: skip
            project.git("config", name, f"!{evil}" if name == "credential.helper" else evil)
        project.git("config", "push.gpgSign", "true")
        for hook in ("pre-push", "reference-transaction", "post-index-change", "pre-commit"):
            path = project.write(f".git/hooks/{hook}", f"#!/bin/sh\ntouch {ran}\n")
            os.chmod(path, 0o755)
        return ran

    @pytest.mark.parametrize("is_path", [False, True], ids=["address", "path"])
    def test_no_command_of_the_repository_runs(self, project: Repo, remote: Repo, is_path: bool) -> None:
        if not is_path:
            give_address(project, remote)
        ran = self.planted(project)
        work(project)
        done = pr("it", gh=Gh())
        assert done.returncode == 0, done.stderr
        assert remote.git("show", "holdfast/it:b.txt") == "x\n"
        assert not os.path.exists(ran)

    def test_settings_that_changed_since_need_a_word(self, project: Repo, remote: Repo) -> None:
        work(project)
        elsewhere = Repo(os.path.join(workspace(), "elsewhere.git"), with_git=False)
        elsewhere.git("init", "-q", "--bare")
        project.git("config", "remote.origin.url", elsewhere.path)
        os.utime(os.path.join(project.path, ".git", "config"), (1, 1))
        gh = Gh()
        done = pr("it", gh=gh)
        assert done.returncode == 3
        assert f"it would push to {elsewhere.path}" in " ".join(done.stderr.split())
        assert elsewhere.git("branch") == ""
        assert pr("it", "--yes", gh=gh).returncode == 0
        assert "holdfast/it" in elsewhere.git("branch")

    @pytest.mark.parametrize(
        "url",
        [
            "ext::sh -c id",
            "-oProxyCommand=id",
            "git@-oProxyCommand=id:x",
            "http://h/x",
            "../up",
            "fd::0",
            "/proc/self/cwd/inner.git",
            "file:///proc/self/cwd/inner.git",
            "/dev/fd/3",
        ],
    )
    def test_an_address_is_a_place(self, project: Repo, url: str) -> None:
        project.git("config", "remote.origin.url", url)
        work(project)
        done = pr("it", gh=Gh())
        assert done.returncode == 3
        assert "not one that holdfast pushes to" in " ".join(done.stderr.split())

    def test_not_into_a_directory_of_agents(self, project: Repo) -> None:
        inner = Repo(os.path.join(project.path, "inner.git"), with_git=False)
        inner.git("init", "-q", "--bare")
        project.git("config", "remote.origin.url", inner.path)
        work(project)
        done = pr("it", gh=Gh())
        assert done.returncode == 3
        assert "is in a directory of agents" in " ".join(done.stderr.split())

    def test_not_into_a_directory_of_other_agents_also_through_a_link(self, project: Repo) -> None:
        other = Repo(os.path.join(workspace(), "other"))
        other.commit("README.md")
        Task.start("--id", "other", "--project", other.path, "--", "true").wait_for("completed")
        inner = Repo(os.path.join(other.path, "inner.git"), with_git=False)
        inner.git("init", "-q", "--bare")
        link = os.path.join(workspace(), "link.git")
        os.symlink(inner.path, link)
        project.git("config", "remote.origin.url", link)
        work(project)
        done = pr("it", gh=Gh())
        assert done.returncode == 3
        assert "is in a directory of agents" in " ".join(done.stderr.split())
        assert inner.git("branch") == ""

    def test_gh_is_not_taken_from_the_project(self, project: Repo) -> None:
        ran = os.path.join(workspace(), "ran")
        path = project.write("bin/gh", f"#!/bin/sh\ntouch {ran}\n")
        os.chmod(path, 0o755)
        work(project)
        env = {"PATH": f"{project.path}/bin:{path_without_gh()}"}
        done = holdfast("pr", "it", env=env, cwd=project.path)
        assert done.returncode == 0, done.stderr
        assert "gh is not installed" in done.stderr
        assert not os.path.exists(ran)


def test_a_remote_that_does_not_exist(project: Repo) -> None:
    work(project)
    done = pr("it", "--remote", "upstream", gh=Gh())
    assert done.returncode == 2
    assert "its remotes: origin" in done.stderr


def test_nothing_to_push(project: Repo) -> None:
    plain = holdfast("run", "--id", "idle", "--worktree", "--", "true", cwd=project.path)
    assert plain.returncode == 0, plain.stderr
    done = pr("idle", gh=Gh())
    assert done.returncode == 3
    assert "has nothing to push" in done.stderr


@pytest.mark.req("TEA-7")
class TestChecks:
    LINK = "https://forge.example/o/n/actions/runs/77/job/1"

    def test_it_waits_until_they_pass(self, project: Repo) -> None:
        work(project)
        gh = Gh()
        gh.answer(
            [{"name": "test", "bucket": "pending", "link": ""}],
            [{"name": "test", "bucket": "pass", "link": ""}],
        )
        done = pr("it", "--wait", "60s", gh=gh)
        assert done.returncode == 0, done.stderr
        assert "waits for test" in done.stderr
        assert "1 check passed" in done.stderr

    def test_a_time_limit(self, project: Repo) -> None:
        work(project)
        gh = Gh()
        gh.answer([{"name": "slow", "bucket": "pending", "link": ""}])
        done = pr("it", "--wait", "1s", gh=gh)
        assert done.returncode == 3
        assert "checks are pending after 1.0s: slow" in done.stderr

    def test_what_failed_goes_back_with_its_log(self, project: Repo, remote: Repo) -> None:
        task = work(project)
        gh = Gh()
        gh.answer([{"name": "test", "bucket": "fail", "link": self.LINK}])
        done = pr("it", "--wait", "30s", gh=gh)
        assert done.returncode == 1
        assert f"failed: test {self.LINK}" in " ".join(done.stderr.split())
        before = len(calls(task, "scripted_impl"))
        fails = [{"name": "test", "bucket": "fail", "link": self.LINK}]
        gh.answer(fails, [{"name": "test", "bucket": "pass", "link": self.LINK}])
        done = pr("it", "--wait", "30s", "--retry", "2", gh=gh)
        assert done.returncode == 0, done.stderr + task.manifest()["status_reason"]
        assert "1 check passed" in done.stderr
        again = calls(task, "scripted_impl")
        assert len(again) == before + 1
        prompt = task.read("attempts", f"{again[-1]['attempt']:03d}-scripted_impl", "prompt").decode()
        assert "The check test of the pull request failed" in prompt
        assert "assert 1 == 2 in job 1" in prompt
        assert gh.verbs().count("api --hostname") == 2
        assert remote.git("show", "holdfast/it:b.txt") == "x\nx\n"

    def test_it_gives_up_after_as_many_times_as_asked(self, project: Repo) -> None:
        task = work(project)
        gh = Gh()
        gh.answer([{"name": "test", "bucket": "fail", "link": ""}])
        done = pr("it", "--wait", "30s", "--retry", "1", "--json", gh=gh)
        assert done.returncode == 1, done.stderr
        assert json.loads(done.stdout)["checks"] == [{"name": "test", "bucket": "fail", "link": ""}]
        assert len(calls(task, "scripted_impl")) == 2

    def test_retry_needs_a_wait(self, project: Repo) -> None:
        done = pr("it", "--retry", "1")
        assert done.returncode == 2
        assert "--retry needs --wait" in done.stderr


@pytest.mark.parametrize("known", ["", "forge.example", "FORGE.example", "other.example"])
def test_a_token_for_a_server_goes_to_no_other_host(project: Repo, remote: Repo, known: str) -> None:
    """The address of the remote is the repository's. gh sends such a token to every host but github.com."""
    url, settings = "https://forge.example/o/n.git", os.path.join(workspace(), "gitconfig")
    with open(settings, "w", encoding="utf-8") as file:
        file.write(f'[url "{remote.path}"]\n\tinsteadOf = {url}\n')
    project.git("remote", "set-url", "origin", url)
    work(project)
    gh = Gh()
    tokens = {
        "GH_ENTERPRISE_TOKEN": "secret-1",
        "GITHUB_ENTERPRISE_TOKEN": "secret-2",
        "GH_TOKEN": "secret-3",
    }
    env = {**gh.env, **tokens, "GH_HOST": known, "GIT_CONFIG_GLOBAL": settings}
    done = holdfast("pr", "it", env=env)
    assert done.returncode == 0, done.stderr
    is_known = known.lower() == "forge.example"
    for call in gh.calls():
        assert "forge.example/o/n" in call["argv"]
        assert call["env"]["GH_TOKEN"] == "secret-3"
        assert ("secret-1" in str(call)) == ("secret-2" in str(call)) == is_known
