"""Applying the work of a worktree: all of it, or nothing."""

from __future__ import annotations

import os

import pytest

from holdfast.errors import LockHeld, NotPossible
from holdfast.store.layout import Home, Packet
from holdfast.workspace import lock
from holdfast.workspace import scope as scopes
from holdfast.workspace.worktrees import unmerged, worktree
from holdfast.workspace.worktrees.apply import apply, is_applied, is_needed
from tests.support.repos import Repo, packet_for, prepare


class Case:
    def __init__(self, home: str, allow: str = "*") -> None:
        self.repo = Repo(os.path.join(os.path.dirname(home), "project"))
        self.repo.write("a", "".join(f"line {n}\n" for n in range(20)))
        self.repo.commit("b")
        self.packet: Packet = packet_for(home, self.repo.path, workspace="worktree", scope_allow=(allow,))
        prepare(self.packet)
        tree = worktree.of(self.packet)
        assert tree is not None
        self.tree = tree
        self.work = Repo(tree.path, with_git=False)

    def apply(self, *, as_patch: bool):
        return apply(self.packet, goal="mend the thing", as_patch=as_patch)


@pytest.fixture
def case(home: str, monkeypatch: pytest.MonkeyPatch) -> Case:
    for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"):
        monkeypatch.setenv(name, "A Person")
    for name in ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "person@example.org")
    return Case(home)


def test_what_is_uncommitted_is_committed_and_merged(case: Case) -> None:
    case.work.write("committed")
    case.work.commit()
    case.work.write("loose", "new\n")
    hook = case.repo.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n")
    os.chmod(hook, 0o700)
    case.repo.write("mine", "untracked\n")
    done = case.apply(as_patch=False)
    assert (done.how, done.branch, done.paths) == ("merge", "main", ("committed", "loose"))
    assert case.repo.read("loose") == "new\n"
    assert case.repo.git("log", "-1", "--format=%an %s").startswith(
        "A Person Merge holdfast/it: mend the thing"
    )
    assert case.repo.git("log", "-1", "--format=%an %s", "holdfast/it").strip() == "holdfast mend the thing"
    assert case.repo.git("status", "--porcelain") == "?? mine\n"
    assert not unmerged.exists(case.tree)
    with pytest.raises(NotPossible, match="nothing new for main"):
        case.apply(as_patch=False)


@pytest.mark.parametrize("as_patch", [False, True])
def test_only_what_is_in_the_scope_comes_over(home: str, as_patch: bool) -> None:
    case = Case(home, allow="in")
    case.work.write("in/new")
    case.work.write("a", "changed\n")
    case.work.write("[*]", "looks like a pattern\n")
    os.unlink(os.path.join(case.tree.path, "b"))
    case.work.git("add", "-A")
    assert is_needed(case.packet)
    done = case.apply(as_patch=as_patch)
    assert (done.paths, done.left_out) == (("in/new",), ("[*]", "a", "b"))
    assert case.repo.read("b") == "text\n"
    assert not os.path.exists(os.path.join(case.repo.path, "[*]"))
    # Files that were left out are still there.
    assert case.work.read("a") == "changed\n"
    assert not is_needed(case.packet)
    if not as_patch:
        assert unmerged.exists(case.tree)
        assert not unmerged.exists(case.tree, scopes.of(case.packet))


def test_leftovers_count_until_something_was_merged(home: str) -> None:
    """All work of a failed task may be outside its scope: it is not discarded."""
    case = Case(home, allow="in")
    case.work.write("out")
    assert unmerged.exists(case.tree, scopes.of(case.packet))
    assert not is_needed(case.packet)
    with pytest.raises(NotPossible, match="nothing new for main in its scope") as caught:
        case.apply(as_patch=False)
    assert "diff it --all" in caught.value.hint


def test_a_commit_outside_the_scope_is_not_merged(home: str) -> None:
    case = Case(home, allow="in")
    case.work.write("in/new")
    case.work.write("out")
    case.work.commit()
    before = case.repo.git("rev-parse", "HEAD")
    with pytest.raises(NotPossible, match="commits on holdfast/it change files outside the scope: out"):
        case.apply(as_patch=False)
    assert case.repo.git("rev-parse", "HEAD") == before
    assert case.apply(as_patch=True).paths == ("in/new",)


@pytest.mark.parametrize("as_patch", [False, True])
def test_a_conflict_changes_nothing(case: Case, as_patch: bool) -> None:
    case.work.write("b", "theirs\n")
    case.repo.write("b", "ours\n")
    case.repo.commit()
    case.repo.write("a", "dirty\n")
    before = case.repo.git("rev-parse", "HEAD"), case.repo.git("status", "--porcelain")
    with pytest.raises(NotPossible, match=r"conflict with .* in b") as caught:
        case.apply(as_patch=as_patch)
    assert (
        "holdfast apply it" if as_patch else f"'git merge holdfast/it' in {case.repo.path}"
    ) in caught.value.hint
    assert (case.repo.git("rev-parse", "HEAD"), case.repo.git("status", "--porcelain")) == before
    assert case.repo.read("b") == "ours\n"
    assert not os.path.exists(os.path.join(case.repo.path, ".git/MERGE_HEAD"))


def test_a_dirty_file_in_the_way_of_a_merge_changes_nothing(case: Case) -> None:
    case.work.write("b", "theirs\n")
    case.repo.write("b", "dirty\n")
    before = case.repo.git("rev-parse", "HEAD")
    with pytest.raises(NotPossible, match="cannot be merged") as caught:
        case.apply(as_patch=False)
    assert "stash" in caught.value.hint
    assert (case.repo.git("rev-parse", "HEAD"), case.repo.read("b")) == (before, "dirty\n")


def test_a_patch_merges_with_what_is_dirty_and_commits_nothing(case: Case) -> None:
    lines = case.repo.read("a").splitlines(keepends=True)
    case.work.write("a", "".join([*lines[:-1], "theirs\n"]))
    case.work.write("image", bytes(range(256)))
    case.repo.write("a", "".join(["dirty\n", *lines[1:]]))
    before = case.repo.git("rev-parse", "HEAD")
    done = case.apply(as_patch=True)
    assert (done.how, done.paths) == ("patch", ("a", "image"))
    assert case.repo.read("a") == "".join(["dirty\n", *lines[1:-1], "theirs\n"])
    assert case.repo.git("rev-parse", "HEAD") == before
    assert is_applied(case.packet)
    case.work.write("more")
    assert not is_applied(case.packet)


def test_not_while_another_task_writes_in_the_main_tree(case: Case, home: str) -> None:
    case.work.write("loose")
    held = lock.acquire(Home(home), case.repo.path, role="runner")
    try:
        with pytest.raises(LockHeld, match="another task writes"):
            case.apply(as_patch=False)
    finally:
        held.release()


def test_a_detached_head_is_refused(case: Case) -> None:
    case.work.write("loose")
    case.repo.git("switch", "-q", "--detach")
    with pytest.raises(NotPossible, match="no branch is checked out"):
        case.apply(as_patch=False)


def test_in_place_there_is_nothing_to_apply(home: str) -> None:
    repo = Repo(os.path.join(os.path.dirname(home), "other"))
    packet = packet_for(home, repo.path, task_id="there")
    with pytest.raises(NotPossible, match="works in place"):
        apply(packet, goal="", as_patch=False)


def test_a_file_that_is_too_large_for_a_patch_is_refused_before_anything_is_written(case: Case) -> None:
    case.work.write("small", "new\n")
    path = case.work.write("huge", b"")
    os.truncate(path, 65 * 1024 * 1024)
    with pytest.raises(NotPossible, match="huge is larger than 64 MiB") as refused:
        case.apply(as_patch=True)
    assert "without --patch" in refused.value.hint
    assert case.repo.git("status", "--porcelain") == ""
    assert is_needed(case.packet)
    # A merge carries it.
    assert case.apply(as_patch=False).paths == ("huge", "small")
    assert os.path.getsize(os.path.join(case.repo.path, "huge")) == 65 * 1024 * 1024
