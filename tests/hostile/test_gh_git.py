"""`gh` runs git of its own, in a directory of ours: nothing that a repository names is run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from holdfast.workspace.git.for_gh import environment_for_gh
from tests.support.github import URL, GitHub
from tests.support.repos import Repo
from tests.support.tasks import holdfast, workspace

pytestmark = [pytest.mark.usefixtures("home")]


@pytest.fixture
def remote() -> Repo:
    repo = Repo(os.path.join(os.path.dirname(os.environ["HOLDFAST_HOME"]), "remote.git"), with_git=False)
    repo.git("init", "-q", "--bare", "-b", "main")
    return repo


@pytest.fixture
def github(remote: Repo) -> Iterator[GitHub]:
    github = GitHub(os.path.dirname(os.environ["HOLDFAST_HOME"]), remote.path)
    yield github
    github.stop()


def test_filters_of_a_repository(remote: Repo, github: GitHub) -> None:
    """git has no option to ignore a filter whose name it does not know."""
    ran = os.path.join(os.path.dirname(os.environ["HOLDFAST_HOME"]), "ran")
    project = Repo(os.path.join(workspace(), "project"))
    project.write("a.txt", "a\n")
    project.write(".gitattributes", "a.txt filter=evil diff=evil merge=evil\n")
    project.commit()
    project.git("push", "-q", remote.path, "main")
    project.git("remote", "add", "origin", URL)
    for key in ("filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "diff.evil.command"):
        project.git("config", key, f"echo {key} >> {ran}; cat")
    done = holdfast(
        "run", "-q", "--id", "it", "--worktree", "--", "/bin/sh", "-c", "date > b.txt", cwd=project.path
    )
    assert done.returncode == 0, done.stderr
    project.write("a.txt", "b\n")
    done = holdfast("pr", "it", "--yes", "--wait", "1s", env=github.env, cwd=project.path)
    assert "opened a pull request" in done.stderr, done.stderr
    done = holdfast("pr", "it", "--yes", env=github.env, cwd=project.path)
    assert done.returncode == 0, done.stderr
    assert not os.path.exists(ran)


def test_the_git_of_gh() -> None:
    """It has the remotes, and finds no repository where we find none."""
    ran = os.path.join(os.path.dirname(os.environ["HOLDFAST_HOME"]), "ran")
    project = Repo(os.path.join(workspace(), "project"))
    project.write("a.txt", "a\n")
    project.write(".gitattributes", "a.txt filter=evil\n")
    project.commit()
    project.git("remote", "add", "origin", URL)
    project.git("config", "filter.evil.clean", f"echo >> {ran}; cat")
    project.write("a.txt", "b\n")
    with environment_for_gh(project.path) as env:
        shown = subprocess.run(
            ["git", "status", "--short"],
            cwd=project.path,
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        remotes = subprocess.run(
            ["git", "remote", "-v"], cwd=project.path, env=env, capture_output=True, text=True, check=True
        )
    assert shown.stdout == " M a.txt\n"
    assert URL in remotes.stdout
    os.rename(os.path.join(project.path, ".git", "refs"), os.path.join(project.path, ".git", "refs-"))
    with environment_for_gh(project.path) as env:
        done = subprocess.run(["git", "status"], cwd=project.path, env=env, capture_output=True, check=False)
    assert done.returncode != 0
    assert not os.path.exists(ran)


@pytest.mark.parametrize("known", ["", "forge.example"])
def test_a_token_for_a_server_goes_to_no_host_that_the_repository_names(
    known: str,
) -> None:
    """Also for `queue import gh:`."""
    root = os.path.dirname(os.environ["HOLDFAST_HOME"])
    programs, seen = os.path.join(root, "bin"), os.path.join(root, "seen")
    os.mkdir(programs)
    with open(os.path.join(programs, "gh"), "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\nenv > {seen}\necho '[]'\n")
    os.chmod(os.path.join(programs, "gh"), 0o755)
    project = Repo(os.path.join(workspace(), "project"))
    project.git("remote", "add", "origin", "https://forge.example/o/n.git")
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "GH_ENTERPRISE_TOKEN": "secret-1", "GH_HOST": known}
    for source, is_told in (("gh:label=x", bool(known)), ("gh:repo=other.example/o/n", False)):
        done = holdfast("queue", "import", source, cwd=project.path, env=env)
        assert done.returncode == 0, done.stderr
        with open(seen, encoding="utf-8") as file:
            assert ("secret-1" in file.read()) == is_told
