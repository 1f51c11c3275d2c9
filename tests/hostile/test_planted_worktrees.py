"""A worktree that an agent planted or changed before its task began is not taken for the commit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from holdfast.store.layout import Packet
from holdfast.workspace.snapshots.trees import Trees
from tests.support import kin
from tests.support.repos import Repo, packet_for, prepare
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually


@pytest.fixture
def repo(home: str) -> Repo:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.write("build.sh", "echo harmless\n")
    repo.write(".gitignore", "ignored\n")
    repo.commit()
    return repo


def plant(repo: Repo, home: str, task_id: str, *, is_detached: bool, packet: Packet | None = None) -> str:
    """Write a worktree file by file, with another `build.sh`. Returns where it is."""
    commit, path = repo.git("rev-parse", "HEAD").strip(), os.path.join(home, "worktrees", task_id)
    branch, admin = f"refs/heads/holdfast/{task_id}", os.path.join(".git/worktrees", task_id)
    repo.write(f"{admin}/HEAD", f"{commit}\n" if is_detached else f"ref: {branch}\n")
    repo.write(f"{admin}/commondir", "../..\n")
    repo.write(f"{admin}/gitdir", f"{path}/.git\n")
    if not is_detached:
        repo.write(f".git/{branch}", f"{commit}\n")
    planted = Repo(path, with_git=False)
    planted.write(".git", f"gitdir: {repo.path}/{admin}\n")
    planted.write("build.sh", "echo planted\n")
    if packet is not None:
        record = {"schema": "holdfast.worktree/1", "path": path, "branch": branch[11:], "commit": commit}
        record |= {"main": repo.path, "common_dir": f"{repo.path}/.git", "prefix": ""}
        os.makedirs(packet.workspace, exist_ok=True)
        with open(packet.worktree, "w", encoding="utf-8") as file:
            json.dump(record, file)
    return path


def test_one_that_was_there_before_the_task_is_put_aside(home: str, repo: Repo) -> None:
    path = plant(repo, home, "nightly", is_detached=True)
    task = Task.start("--id", "nightly", "--worktree", "--", "sh", "./build.sh", project=repo.path)
    task.wait_for("completed")
    assert "harmless" in holdfast("logs", "nightly").stdout
    assert Repo(f"{path}.aside-1", with_git=False).read("build.sh") == "echo planted\n"
    assert "build.sh" in Repo(f"{path}.aside-1", with_git=False).git("status", "--porcelain")
    assert holdfast("diff", "nightly").stdout == ""


def test_one_of_a_queued_task_with_its_record_is_put_aside(home: str, repo: Repo) -> None:
    packet = packet_for(home, repo.path, workspace="worktree")
    path = plant(repo, home, "it", is_detached=False, packet=packet)
    found = prepare(packet)
    assert Repo(path, with_git=False).read("build.sh") == "echo harmless\n"
    assert found["tree"] == found["base_tree"] == repo.git("rev-parse", "HEAD^{tree}").strip()
    assert os.path.exists(f"{path}.aside-1/build.sh")


def test_settings_of_snapshots_that_were_there_before_the_task_are_not_used(home: str, repo: Repo) -> None:
    """They could name files to ignore."""
    packet = packet_for(home, repo.path, workspace="worktree")
    trees = Trees.of(packet)
    os.makedirs(f"{trees.objects}/info")
    with open(f"{trees.git_dir}/holdfast.json", "w", encoding="utf-8") as file:
        json.dump({"values": {}, "exclude": "*.sh\n"}, file)
    prepare(packet)
    assert "*.sh" not in Trees.of(packet).settings.exclude


@pytest.mark.parametrize("name", ["build.sh", "new", "ignored", ".git"])
def test_a_file_that_is_written_while_it_is_made_is_named(home: str, repo: Repo, name: str) -> None:
    packet = packet_for(home, repo.path, workspace="worktree")
    out = os.path.join(packet.state, "out.json")
    argv = ["prepare", "--packet", packet.path, "--stage", "codex_impl", "--out", out]
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast.workspace", *argv],
        env={**os.environ, "HOLDFAST_FAILPOINT": "worktree.checked_out=stop"},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        eventually(lambda: kin.state(process.pid) == "T", what="the files are checked out")
        tree = Repo(os.path.join(home, "worktrees", "it"), with_git=False)
        # As an agent that moves a file of its own there.
        os.replace(
            tree.write("x", "gitdir: /nowhere\n" if name == ".git" else "echo evil\n"), f"{tree.path}/{name}"
        )
        process.send_signal(signal.SIGCONT)
        said = process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 3, said
    assert name in said
    assert not os.path.exists(out)
    prepare(packet)
    assert sorted(os.listdir(tree.path)) == [".git", ".gitignore", "build.sh"]
    assert tree.read("build.sh") == "echo harmless\n"
