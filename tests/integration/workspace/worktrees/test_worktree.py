"""The worktree of a task: created once, repaired after a kill, and never removed with unmerged work."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest

from holdfast.errors import GitFailed, NotPossible
from holdfast.store import atomic
from holdfast.store.layout import Home, Packet
from holdfast.workspace.worktrees import removal, unmerged, worktree
from holdfast.workspace.worktrees.worktree import Worktree
from tests.support.repos import Repo, packet_for, prepare
from tests.support.waiting import eventually


@pytest.fixture
def repo(home: str) -> Repo:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("a", "src/b")
    return repo


@pytest.fixture
def packet(home: str, repo: Repo) -> Packet:
    return packet_for(home, repo.path, workspace="worktree")


def inside(tree: Worktree) -> Repo:
    return Repo(tree.path, with_git=False)


def test_it_lies_in_the_home_on_a_branch_of_its_own(home: str, repo: Repo, packet: Packet) -> None:
    tree = worktree.make(packet, repo.path)
    assert tree.path == os.path.join(Home(home).worktrees, "it")
    assert inside(tree).git("symbolic-ref", "HEAD").strip() == "refs/heads/holdfast/it"
    assert inside(tree).read("a") == "text\n"
    assert repo.git("status", "--porcelain") == ""
    assert worktree.make(packet, repo.path) == tree


def test_a_project_below_the_root_has_its_place_in_the_worktree(
    home: str, repo: Repo, packet: Packet
) -> None:
    tree = worktree.make(packet, os.path.join(repo.path, "src"))
    assert tree.directory == os.path.join(Home(home).worktrees, "it", "src")
    assert os.path.exists(os.path.join(tree.directory, "b"))


def test_work_stays_when_it_is_asked_for_again(repo: Repo, packet: Packet) -> None:
    tree = worktree.make(packet, repo.path)
    inside(tree).write("new")
    inside(tree).commit()
    inside(tree).write("uncommitted")
    repo.commit("meanwhile")
    worktree.make(packet, repo.path)
    assert sorted(os.listdir(tree.path)) == [".git", "a", "new", "src", "uncommitted"]


def test_a_worktree_that_was_removed_by_hand_comes_back_with_its_commits(repo: Repo, packet: Packet) -> None:
    tree = worktree.make(packet, repo.path)
    inside(tree).write("new")
    inside(tree).commit()
    shutil.rmtree(tree.path)
    worktree.make(packet, repo.path)
    assert os.path.exists(os.path.join(tree.path, "new"))


def _as_intended(repo: Repo, packet: Packet) -> Worktree:
    """Only the record exists: the process was killed before git ran."""
    tree = worktree.make(packet, repo.path)
    repo.git("worktree", "remove", "--force", tree.path)
    repo.git("branch", "-D", tree.branch)
    return tree


def _branch_only(repo: Repo, packet: Packet) -> Worktree:
    tree = _as_intended(repo, packet)
    repo.git("branch", tree.branch)
    return tree


def _begun(repo: Repo, packet: Packet) -> Worktree:
    """git was killed after its first file, before it wrote `gitdir`."""
    tree = _branch_only(repo, packet)
    atomic.make_directory(os.path.join(tree.common_dir, "worktrees"))
    admin = os.path.join(tree.common_dir, "worktrees", "it")
    os.makedirs(admin)
    atomic.write(os.path.join(admin, "locked"), b"initializing\n", durable=False)
    return tree


def _half_checked_out(repo: Repo, packet: Packet) -> Worktree:
    tree = worktree.make(packet, repo.path)
    admin = os.path.join(tree.common_dir, "worktrees", "it")
    atomic.write(os.path.join(admin, "locked"), b"initializing\n", durable=False)
    os.unlink(os.path.join(admin, "index"))
    os.unlink(os.path.join(tree.path, "a"))
    return tree


@pytest.mark.parametrize("killed", [_as_intended, _branch_only, _begun, _half_checked_out])
@pytest.mark.req("LCH-20")
def test_it_is_finished_after_a_kill_at_any_step(repo: Repo, packet: Packet, killed) -> None:
    tree = killed(repo, packet)
    began = repo.git("rev-parse", "HEAD").strip()
    repo.commit("a later commit of a person")
    assert worktree.make(packet, repo.path) == tree
    assert worktree.is_complete(tree)
    assert inside(tree).git("status", "--porcelain") == ""
    assert inside(tree).git("rev-parse", "HEAD").strip() == began == tree.commit


def test_a_worktree_that_a_person_locked_is_not_taken_for_a_leftover(repo: Repo, packet: Packet) -> None:
    tree = worktree.make(packet, repo.path)
    inside(tree).write("work")
    repo.git("worktree", "lock", "--reason", "mine", tree.path)
    worktree.make(packet, repo.path)
    assert inside(tree).read("work") == "text\n"


def test_what_lies_in_its_way_is_put_aside(home: str, repo: Repo, packet: Packet) -> None:
    path = os.path.join(Home(home).worktrees, "it")
    Repo(path, with_git=False).write("precious")
    worktree.make(packet, repo.path)
    assert os.path.exists(path + ".aside-1/precious")


def test_worktrees_of_others_are_left_alone(repo: Repo, packet: Packet, home: str) -> None:
    elsewhere = os.path.join(os.path.dirname(home), "usb-disk")
    repo.git("worktree", "add", "-q", elsewhere)
    os.rename(elsewhere, elsewhere + "-unplugged")
    tree = _begun(repo, packet)
    worktree.make(packet, repo.path)
    removal.remove(tree, force=True)
    os.rename(elsewhere + "-unplugged", elsewhere)
    assert Repo(elsewhere, with_git=False).git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("with_git", "said"), [(False, "is not in a git repository"), (True, "has no commit yet")]
)
def test_it_needs_a_repository_with_a_commit(home: str, with_git: bool, said: str) -> None:
    bare = Repo(os.path.join(os.path.dirname(home), "bare"), with_git=with_git)
    packet = packet_for(home, bare.path)
    with pytest.raises(NotPossible, match=said) as caught:
        worktree.make(packet, bare.path)
    assert "omit --worktree" in caught.value.hint


def test_a_branch_of_another_task_or_person_is_not_taken(repo: Repo, packet: Packet) -> None:
    repo.git("switch", "-q", "-c", "holdfast/it")
    repo.commit("theirs")
    repo.git("switch", "-q", "main")
    with pytest.raises(NotPossible, match="with commits of something else"):
        worktree.make(packet, repo.path)
    assert worktree.of(packet) is None


def test_a_branch_that_takes_the_place_of_all_of_ours_is_named(repo: Repo, packet: Packet) -> None:
    repo.git("branch", "holdfast")
    with pytest.raises(GitFailed, match="holdfast") as caught:
        worktree.make(packet, repo.path)
    assert "git branch -m OLD NEW" in caught.value.hint


def test_commits_and_files_that_are_nowhere_else_are_unmerged_work(repo: Repo, packet: Packet) -> None:
    tree = worktree.make(packet, repo.path)
    assert not unmerged.exists(tree)
    inside(tree).write("new")
    assert unmerged.exists(tree)
    inside(tree).commit()
    assert unmerged.commits(tree) == 1
    repo.git("merge", "-q", "--no-ff", "-m", "merge", tree.branch)
    assert unmerged.is_merged(tree)
    assert not unmerged.exists(tree)


def test_unmerged_work_is_removed_with_force_only_and_commits_stay(repo: Repo, packet: Packet) -> None:
    tree = worktree.make(packet, repo.path)
    inside(tree).write("new")
    inside(tree).commit()
    inside(tree).write("loose")
    with pytest.raises(NotPossible, match=r"1 commit on holdfast/it and 1 uncommitted file"):
        removal.remove(tree, force=False)
    assert os.path.exists(os.path.join(tree.path, "loose"))
    assert "stay on the branch holdfast/it" in removal.remove(tree, force=True)
    assert not os.path.exists(tree.path)
    assert "new" in repo.git("ls-tree", "--name-only", "holdfast/it").split()


def test_a_file_that_was_never_committed_is_enough_to_keep_a_worktree(repo: Repo, packet: Packet) -> None:
    tree = worktree.make(packet, repo.path)
    inside(tree).write("loose")
    with pytest.raises(NotPossible, match="1 uncommitted file"):
        removal.remove(tree, force=False)
    assert os.path.exists(os.path.join(tree.path, "loose"))


def test_a_merged_worktree_goes_with_its_branch(repo: Repo, packet: Packet) -> None:
    tree = worktree.make(packet, repo.path)
    assert removal.remove(tree, force=False) == ""
    assert repo.git("branch", "--list", "holdfast/*") == ""
    assert len(repo.git("worktree", "list").splitlines()) == 1


@pytest.mark.parametrize(
    "moment",
    ["state/workspace/worktree.json", "worktree", "worktree/.git", "worktree/f9", "state/workspace/git/HEAD"],
)
@pytest.mark.req("LCH-20")
def test_a_prepare_that_is_killed_with_its_git_is_done_again(repo: Repo, packet: Packet, moment: str) -> None:
    for number in range(2000):
        repo.write(f"f{number}", f"{number}\n")
    repo.commit()
    path = os.path.join(packet.home.worktrees, "it")
    awaited = (
        path + moment.removeprefix("worktree")
        if moment.startswith("worktree")
        else os.path.join(packet.path, moment)
    )
    out = os.path.join(packet.state, "out.json")
    argv = ["prepare", "--packet", packet.path, "--stage", "codex_impl", "--out", out]
    process = subprocess.Popen([sys.executable, "-m", "holdfast.workspace", *argv], start_new_session=True)
    eventually(lambda: os.path.lexists(awaited), what=moment)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    found = prepare(packet)
    tree = worktree.of(packet)
    assert tree is not None
    assert (found["path"], found["tree"], found["dirty"]) == (tree.path, found["base_tree"], [])
    assert found["tree"] == repo.git("rev-parse", "HEAD^{tree}").strip()


def test_content_that_no_file_gives_back_is_no_change(home: str, repo: Repo) -> None:
    """With these attributes, git would have stored something else, and a snapshot has that."""
    for name in ("crlf", "mixed"):
        repo.write(name, b"a\r\nb\n" if name == "mixed" else b"a\r\n")
    repo.commit()
    repo.write(".gitattributes", "*f text\nmixed text eol=crlf\n*.id ident\n")
    repo.write("some.id", "$Id: old $\n")
    repo.git("add", ".gitattributes")
    repo.git("commit", "-q", "-m", "attributes")
    packet = packet_for(home, repo.path, workspace="worktree")
    prepare(packet)
