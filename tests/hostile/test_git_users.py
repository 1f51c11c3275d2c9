"""Real repositories of users work, without the commands in their git settings."""

from __future__ import annotations

import os

import pytest

from holdfast.errors import NotPossible
from holdfast.workspace.worktrees import worktree
from holdfast.workspace.worktrees.apply import apply
from tests.support.repos import Repo, packet_for, prepare


def test_a_sparse_partial_clone_has_a_worktree_of_the_same_part(home: str) -> None:
    root = os.path.dirname(home)
    origin = Repo(os.path.join(root, "origin"))
    origin.commit("top", "x/f", "y/f")
    origin.git("config", "uploadpack.allowFilter", "true")
    words = ("clone", "-q", "--no-local", "--filter=blob:none", "--sparse", f"file://{origin.path}", "c")
    Repo(root, with_git=False).git(*words)
    clone = Repo(os.path.join(root, "c"), with_git=False)
    clone.git("sparse-checkout", "set", "x")
    packet = packet_for(home, clone.path, workspace="worktree", scope_allow=(".",))
    prepare(packet)
    tree = worktree.of(packet)
    assert tree is not None
    work = Repo(tree.path, with_git=False)
    assert sorted(os.listdir(tree.path)) == [".git", "top", "x"]
    assert work.git("status", "--porcelain") == ""
    work.write("x/g")
    assert apply(packet, goal="g", as_patch=False).paths == ("x/g",)
    assert clone.git("status", "--porcelain") == ""


def test_a_file_with_a_filter_is_committed_by_a_person(home: str) -> None:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.write(".gitattributes", "*.up filter=up\n")
    repo.commit("a.up", "b")
    repo.git("config", "filter.up.clean", "tr a-z A-Z")
    packet = packet_for(home, repo.path, workspace="worktree", scope_allow=(".",))
    prepare(packet)
    tree = worktree.of(packet)
    assert tree is not None
    work = Repo(tree.path, with_git=False)
    work.write("a.up", "changed\n")
    with pytest.raises(NotPossible, match="stored through the filter 'up'") as caught:
        apply(packet, goal="g", as_patch=False)
    assert f"git -C {tree.path} add -A" in caught.value.hint
    # git trusts the timestamps of a file only if they are older than the index.
    os.utime(os.path.join(tree.path, "a.up"), (1_700_000_000, 1_700_000_000))
    work.commit()
    assert apply(packet, goal="g", as_patch=False).paths == ("a.up",)
    assert repo.git("show", "HEAD:a.up") == "CHANGED\n"
