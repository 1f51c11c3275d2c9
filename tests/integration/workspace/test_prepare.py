"""Preparing a workspace, and its lock."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.errors import LockHeld
from holdfast.store.layout import Home, is_our_lock
from holdfast.workspace import lock
from tests.support.repos import Repo, module, packet_for, prepare


@pytest.fixture
def repo(home: str) -> Repo:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("a")
    return repo


def test_it_says_what_stood_there_at_the_start_of_the_stage_and_of_the_task(home: str, repo: Repo) -> None:
    repo.write("a", "dirty\n")
    packet = packet_for(home, repo.path)
    first = prepare(packet)
    assert (first["kind"], first["path"], first["dirty"]) == ("in_place", repo.path, ["a"])
    assert first["tree"] == first["base_tree"]
    assert first["commit"] == repo.git("rev-parse", "HEAD").strip()
    repo.write("b")
    repo.commit()
    second = prepare(packet, "codex_verify")
    assert second["tree"] != second["base_tree"] == first["base_tree"]
    assert second["dirty"] == []


def test_a_worktree_is_made_and_its_directory_is_where_the_agent_works(home: str, repo: Repo) -> None:
    packet = packet_for(home, repo.path, workspace="worktree")
    found = prepare(packet)
    assert (found["kind"], found["branch"]) == ("worktree", "holdfast/it")
    assert found["path"] == os.path.join(Home(home).worktrees, "it")
    assert prepare(packet) | {"timestamp": ""} == found | {"timestamp": ""}


def test_what_cannot_be_prepared_is_an_error_with_a_hint(home: str) -> None:
    plain = Repo(os.path.join(os.path.dirname(home), "plain"), with_git=False)
    packet = packet_for(home, plain.path, workspace="worktree")
    out = os.path.join(packet.state, "out.json")
    done = module("workspace", "prepare", "--packet", packet.path, "--stage", "s", "--out", out, cwd=home)
    assert done.returncode == 3
    assert done.stderr.startswith("error: ")
    assert "hint: " in done.stderr
    assert not os.path.exists(out)


@pytest.mark.parametrize(
    "words", [(), ("prepare",), ("other", "--packet", "p", "--stage", "s", "--out", "o")]
)
def test_a_wrong_call_is_reported(home: str, words: tuple[str, ...]) -> None:
    done = module("workspace", *words, cwd=home)
    assert done.returncode == 2
    assert "python -m holdfast.workspace prepare" in done.stderr


def test_variables_of_git_do_not_lead_it_astray(home: str, repo: Repo) -> None:
    packet = packet_for(home, repo.path)
    out = os.path.join(packet.state, "out.json")
    done = module(
        "workspace", "prepare", "--packet", packet.path, "--stage", "s", "--out", out,
        cwd=home, env={"GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/nowhere", "GIT_WORK_TREE": "/nowhere"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with open(out, encoding="utf-8") as file:
        assert json.load(file)["path"] == repo.path


def test_one_writer_at_a_time_by_whatever_name(home: str, repo: Repo) -> None:
    os.mkdir(os.path.join(home, "tasks"))
    alias = repo.path + "-alias"
    os.symlink(repo.path, alias)
    held = lock.acquire(Home(home), repo.path, role="runner")
    with pytest.raises(LockHeld, match="another task writes in"):
        lock.acquire(Home(home), alias, role="runner", within_s=0.0)
    assert is_our_lock(lock.path_of(Home(home), alias))
    held.release()
    lock.acquire(Home(home), alias, role="runner").release()
