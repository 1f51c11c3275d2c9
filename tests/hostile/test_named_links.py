"""Files and directories of a clone that the user names: where a link leads out of the clone, they are not
used. An agent in a sandbox would get what the sandbox hides, or write where it may not."""

from __future__ import annotations

import os

import pytest

from tests.support.repos import Repo
from tests.support.tasks import holdfast, workspace

SECRET = "KEY=of-the-user"
#: What an agent gets, and where it works.
GET = ("sh", "-c", "(cat; pwd -P; env) > GOT")
CLAUDE = ("submit", "--id", "it", "--agent", "claude")
WORDS = {
    "file": ("run", "--id", "it", "--agent", "command", "--file", "TASK.md", "--", *GET),
    "folder": ("run", "--id", "it", "--agent", "command", "--file", "docs/key", "--", *GET),
    "project": ("run", "--id", "it", "--project", "docs", "--", *GET),
    "environment": ("run", "--id", "it", "--env-file", "TASK.md", "--", *GET),
    "bootstrap": (*CLAUDE, "--bootstrap", "TASK.md", "do it"),
    "option": (*CLAUDE, "-o", "system_prompt_path=TASK.md", "do it"),
    "plan": ("new", "it", "--agent", "claude", "--from-plan", "TASK.md"),
    "context": ("review", "cross", "TASK.md", "a", "--id", "it"),
    "report": ("review", "cross", "a", "TASK.md", "--id", "it"),
    "fan-out": ("fan-out", "TASK.md", "--id", "it", "--agent", "claude"),
}


@pytest.fixture
def clone(home: str, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A clone with links into the user's home directory, and the program of an agent."""
    user = Repo(os.environ["HOME"], with_git=False)
    user.write("notes/key", f"{SECRET}\n")
    os.chmod(user.write("bin/claude", "#!/bin/sh\n"), 0o755)
    clone = Repo(os.path.join(workspace(), "clone"))
    clone.commit("a")
    os.symlink(f"{user.path}/notes/key", f"{clone.path}/TASK.md")
    os.symlink(f"{user.path}/notes", f"{clone.path}/docs")
    monkeypatch.setenv("PATH", f"{user.path}/bin:{os.environ['PATH']}")
    return clone


@pytest.mark.parametrize("way", WORDS)
def test_a_link_out_of_a_clone_is_not_followed(home: str, clone: Repo, way: str) -> None:
    got = os.path.join(os.path.dirname(home), "got")
    done = holdfast(*(word.replace("GOT", got) for word in WORDS[way]), cwd=clone.path)
    assert not os.path.exists(got), done.stderr
    assert done.returncode == 3, done.stderr
    said, notes = " ".join(done.stderr.split()), os.path.join(os.environ["HOME"], "notes")
    assert f"leads out of {clone.path}, through a link: to {notes}" in said
    assert SECRET not in done.stdout + done.stderr
    assert not os.path.exists(os.path.join(home, "tasks", "it"))
    assert not os.path.exists(os.path.join(clone.path, "it"))


def test_a_retry_reads_no_environment_file_behind_a_link_out_of_a_clone(home: str, clone: Repo) -> None:
    assert holdfast("run", "--id", "it", "--max-retries", "0", "--", "false", cwd=clone.path).returncode
    done = holdfast("retry", "it", "--env-file", "TASK.md", cwd=clone.path)
    assert done.returncode == 3, done.stderr
    assert "leads out of" in done.stderr


def test_a_link_inside_a_clone_and_one_of_the_users_own_are_followed(clone: Repo) -> None:
    os.symlink("a", f"{clone.path}/inner")
    own = os.path.join(os.environ["HOME"], "own")
    os.symlink(f"{workspace()}/elsewhere", own)
    with open(f"{workspace()}/elsewhere", "w", encoding="utf-8") as file:
        file.write("text\n")
    for name in ("inner", own, os.path.join(os.environ["HOME"], "notes", "key")):
        done = holdfast("run", "--agent", "command", "--file", name, "--", "cat", cwd=clone.path)
        assert done.returncode == 0, done.stderr


def test_the_demo_writes_nothing_behind_a_link_out_of_a_clone(clone: Repo) -> None:
    empty = os.path.join(os.environ["HOME"], "empty")
    os.mkdir(empty)
    os.symlink(empty, f"{clone.path}/demo")
    done = holdfast("demo", "--home", "./demo", cwd=clone.path)
    assert (done.returncode, os.listdir(empty)) == (3, []), done.stderr
