"""Work in a worktree, on any branch, is found and not lost."""

from __future__ import annotations

import os
import shutil

import pytest

from holdfast.errors import NotPossible
from holdfast.store.layout import Packet
from holdfast.views.removal import worktree as worktree_removal
from holdfast.workspace import base as bases
from holdfast.workspace import git
from holdfast.workspace import scope as scopes
from holdfast.workspace.current_tree import current_tree
from holdfast.workspace.snapshots import changes
from holdfast.workspace.snapshots.trees import Trees
from holdfast.workspace.worktrees import removal, submodules, unmerged, worktree
from holdfast.workspace.worktrees.apply import apply, is_needed
from tests.support.repos import Repo, packet_for, prepare


class Case:
    def __init__(self, home: str, *allow: str, submodule: bool = False) -> None:
        self.root = os.path.dirname(home)
        self.repo = Repo(os.path.join(self.root, "project"))
        self.repo.commit("a", "src/b")
        if submodule:
            self.upstream = Repo(os.path.join(self.root, "upstream"))
            self.upstream.commit("f")
            self.repo.git(*_LOCAL, "submodule", "add", "-q", self.upstream.path, "vend")
            self.repo.commit()
        self.packet: Packet = packet_for(
            home, self.repo.path, workspace="worktree", scope_allow=allow or (".",)
        )
        prepare(self.packet)
        tree = worktree.of(self.packet)
        assert tree is not None
        self.tree = tree
        self.work = Repo(tree.path, with_git=False)

    def apply(self, *, as_patch: bool = False):
        return apply(self.packet, goal="mend the thing", as_patch=as_patch)

    def removes(self) -> str:
        return removal.remove(self.tree, force=False, scope=scopes.of(self.packet))

    def fetch_submodule(self) -> Repo:
        self.work.git(*_LOCAL, "submodule", "update", "-q", "--init")
        return Repo(os.path.join(self.tree.path, "vend"), with_git=False)


_LOCAL = ("-c", "protocol.file.allow=always")


@pytest.mark.req("LCH-20")
@pytest.mark.parametrize("way", [("--detach",), ("-b", "fix/x")], ids=("detached", "own_branch"))
def test_commits_beside_the_branch_of_the_task_are_work_too(home: str, way: tuple[str, ...]) -> None:
    case = Case(home)
    case.work.git("checkout", "-q", *way)
    case.work.commit("new")
    assert is_needed(case.packet)
    with pytest.raises(NotPossible, match="has unmerged work: 1 commit on "):
        case.removes()
    assert case.apply().paths == ("new",)
    assert case.repo.read("new") == "text\n"
    assert case.removes() == ""


def test_given_up_commits_of_a_detached_head_stay_on_a_branch(home: str) -> None:
    case = Case(home)
    case.work.git("checkout", "-q", "--detach")
    commit = case.work.commit("new")
    assert "stay on the branch holdfast/it" in removal.remove(case.tree, force=True)
    assert case.repo.git("rev-parse", "holdfast/it").strip() == commit


def test_what_was_left_on_the_branch_of_the_task_is_named(home: str) -> None:
    case = Case(home)
    case.work.commit("one")
    case.work.git("checkout", "-q", "-b", "other", "main")
    case.work.commit("two")
    assert case.apply().paths == ("two",)
    with pytest.raises(NotPossible, match="is not on its own branch") as caught:
        case.apply()
    assert "git merge holdfast/it" in caught.value.hint
    with pytest.raises(NotPossible, match="1 commit on holdfast/it") as caught:
        case.removes()
    assert "git merge holdfast/it" in caught.value.hint


@pytest.mark.req("LCH-20")
def test_without_its_git_file_it_is_compared_all_the_same(home: str) -> None:
    case = Case(home)
    os.unlink(os.path.join(case.tree.path, ".git"))
    case.work.write("a", "changed\n")
    with pytest.raises(NotPossible, match="1 uncommitted file"):
        case.removes()
    assert case.apply().paths == ("a",)
    assert case.removes() == ""


def test_without_its_git_file_the_next_stage_goes_on_in_it(home: str) -> None:
    case = Case(home)
    os.unlink(os.path.join(case.tree.path, ".git"))
    case.work.write("a", "changed\n")
    prepare(case.packet)
    assert case.work.read("a") == "changed\n"
    assert case.work.git("status", "--porcelain") == " M a\n"


def test_another_repository_in_its_place_is_not_removed(home: str) -> None:
    case = Case(home)
    os.unlink(os.path.join(case.tree.path, ".git"))
    own = Repo(case.tree.path)
    own.commit("new")
    with pytest.raises(NotPossible, match="turned into a separate repository"):
        case.removes()
    with pytest.raises(NotPossible, match="turned into a separate repository"):
        case.apply()


def test_a_worktree_that_git_forgot_is_not_removed(home: str) -> None:
    case = Case(home)
    case.work.write("new")
    os.unlink(os.path.join(case.tree.path, ".git"))
    case.repo.git("worktree", "prune", "--expire", "now")
    with pytest.raises(NotPossible, match="is no longer a worktree"):
        case.removes()
    assert case.work.read("new") == "text\n"


def test_commits_whose_excess_was_taken_back_come_as_one(home: str) -> None:
    case = Case(home, "src/")
    case.work.write("src/b", "changed\n")
    case.work.write("a", "out of scope\n")
    case.work.commit()
    case.work.write("a", "text\n")
    done = case.apply()
    assert (done.paths, done.left_out, done.squashed) == (("src/b",), (), True)
    assert case.repo.git("log", "--format=%s", "--", "a") == "work\n"
    assert case.removes() == ""


def test_more_commits_than_a_command_line_holds_come_as_one(home: str) -> None:
    case = Case(home, "src/")
    blob = case.repo.git("rev-parse", "HEAD:a").strip()
    # Only in the commit: the files were reverted. The paths do not fit on a command line.
    entries = (f"100644 {blob}\t{'long' * 50}/{number}" for number in range(20_000))
    words = ["update-index", "-z", "--add", "--index-info"]
    git.run(words, of=worktree.inside(case.tree), stdin=git.listing(entries))
    case.work.git("commit", "-q", "-m", "many")
    case.work.write("src/b", "changed\n")
    done = case.apply()
    assert (done.paths, done.squashed) == (("src/b",), True)


def test_what_was_left_out_is_kept_as_a_patch(home: str) -> None:
    case = Case(home, "src/")
    case.work.write("src/b", "changed\n")
    case.work.write("notes", "precious\n")
    case.work.write("a", "also\n")
    case.apply()
    kept = removal.keep_left_out(case.packet)
    assert kept is not None
    assert kept == os.path.join(os.path.realpath(home), "left-out", "it.patch")
    assert case.removes() == ""
    case.repo.git("apply", kept)
    assert (case.repo.read("notes"), case.repo.read("a")) == ("precious\n", "also\n")


# ── submodules ──


@pytest.mark.parametrize("is_committed", [True, False])
def test_work_in_a_submodule_comes_into_the_projects_own_repository_of_it(
    home: str, is_committed: bool
) -> None:
    case = Case(home, submodule=True)
    vend = case.fetch_submodule()
    vend.write("f", "new\n")
    if is_committed:
        vend.commit()
    with pytest.raises(NotPossible, match="unmerged work"):
        case.removes()
    done = case.apply()
    assert (done.paths, done.submodules) == (("vend",), ("vend",))
    wanted = case.repo.git("rev-parse", "HEAD:vend").strip()
    own = Repo(os.path.join(case.repo.path, "vend"), with_git=False)
    assert own.git("show", f"{wanted}:f") == "new\n"
    assert case.removes() == ""
    assert not unmerged.exists(case.tree)


def test_a_commit_in_a_submodule_that_nothing_names_is_not_removed(home: str) -> None:
    case = Case(home, submodule=True)
    vend = case.fetch_submodule()
    vend.commit("g")
    vend.git("checkout", "-q", "HEAD~1")
    vend.git("branch", "kept", "HEAD@{1}")
    with pytest.raises(NotPossible, match="1 commit in the submodule vend"):
        case.removes()


def test_a_patch_does_not_cover_commits_in_a_submodule(home: str) -> None:
    case = Case(home, submodule=True)
    vend = case.fetch_submodule()
    vend.commit("g")
    vend.git("branch", "kept")
    vend.git("checkout", "-q", "HEAD~1")
    case.work.write("a", "changed\n")
    case.apply(as_patch=True)
    with pytest.raises(NotPossible, match="unmerged work: 1 commit in the submodule vend"):
        worktree_removal.remove_worktree(case.packet)
    vend.git("branch", "-q", "-D", "kept")
    assert worktree_removal.remove_worktree(case.packet).note == ""


def test_without_the_projects_own_repository_nothing_is_merged(home: str) -> None:
    case = Case(home, submodule=True)
    case.repo.git("submodule", "deinit", "-q", "-f", "vend")
    os.rename(os.path.join(case.repo.path, ".git/modules"), os.path.join(case.root, "modules"))
    before = case.repo.git("rev-parse", "HEAD")
    case.fetch_submodule().commit("g")
    with pytest.raises(NotPossible, match="has no repository of it") as caught:
        case.apply()
    assert "submodule update --init vend" in caught.value.hint
    assert case.repo.git("rev-parse", "HEAD") == before


def test_a_patch_cannot_bring_a_submodule(home: str) -> None:
    case = Case(home, submodule=True)
    case.fetch_submodule().write("f", "new\n")
    with pytest.raises(NotPossible, match="vend is a nested repository"):
        case.apply(as_patch=True)


def test_what_is_uncommitted_in_a_submodule_is_shown_by_its_files(home: str) -> None:
    case = Case(home, submodule=True)
    vend = case.fetch_submodule()
    vend.write("f", "new\n")
    base, trees = bases.require(case.packet), Trees.of(case.packet)
    sides = changes.opened(trees, base.base_tree, current_tree(case.packet, base))
    shown = changes.patch(trees, *sides).decode()
    assert ("+++ b/vend/f" in shown, "Subproject" in shown) == (True, False)
    vend.commit()
    sides = changes.opened(trees, base.base_tree, current_tree(case.packet, base))
    assert f"+Subproject commit {vend.git('rev-parse', 'HEAD')}" in changes.patch(trees, *sides).decode()


def test_a_stray_repository_is_not_merged_as_a_name_without_files(home: str) -> None:
    case = Case(home)
    Repo(os.path.join(case.tree.path, "stray")).commit("x")
    before = case.repo.git("rev-parse", "HEAD")
    with pytest.raises(NotPossible, match="stray/ is a nested repository"):
        case.apply()
    assert case.repo.git("rev-parse", "HEAD") == before


def test_a_stray_repository_that_was_left_out_is_not_removed(home: str) -> None:
    case = Case(home, "src/")
    case.work.write("src/b", "changed\n")
    Repo(os.path.join(case.tree.path, "stray")).commit("x")
    assert case.apply().left_out == ("stray/",)
    with pytest.raises(NotPossible, match="no patch can contain a repository"):
        removal.keep_left_out(case.packet)


# ── submodules of submodules ──


class Nested(Case):
    """`vend` has a submodule `deep/inner`; all are checked out in the project and in the worktree."""

    def __init__(self, home: str) -> None:
        innermost = Repo(os.path.join(os.path.dirname(home), "innermost"))
        innermost.commit("f")
        upstream = Repo(os.path.join(os.path.dirname(home), "upstream"))
        upstream.git(*_LOCAL, "submodule", "add", "-q", innermost.path, "deep/inner")
        super().__init__(home, submodule=True)
        self.repo.git(*_LOCAL, "submodule", "update", "-q", "--init", "--recursive")
        self.work.git(*_LOCAL, "submodule", "update", "-q", "--init", "--recursive")
        self.vend = Repo(os.path.join(self.tree.path, "vend"), with_git=False)
        self.inner = Repo(os.path.join(self.tree.path, "vend/deep/inner"), with_git=False)


def test_a_commit_in_a_nested_submodule_that_nothing_names_is_not_removed(home: str) -> None:
    case = Nested(home)
    case.inner.commit("g")
    case.inner.git("branch", "kept")
    case.inner.git("checkout", "-q", "HEAD~1")
    with pytest.raises(NotPossible, match="1 commit in the submodule vend/deep/inner"):
        case.removes()
    case.repo.git("-C", "vend", "submodule", "deinit", "-q", "-f", "deep/inner")
    own = Repo(os.path.join(case.repo.path, ".git/modules/vend/modules/deep/inner"), with_git=False)
    own.git("fetch", "-q", case.inner.path, "kept:refs/heads/kept")
    assert case.removes() == ""


@pytest.mark.parametrize("is_committed", [True, False])
def test_work_in_a_nested_submodule_comes_home(home: str, is_committed: bool) -> None:
    case = Nested(home)
    case.inner.write("f", "new\n")
    if is_committed:
        case.inner.commit()
        case.vend.commit()
    with pytest.raises(NotPossible, match="unmerged work"):
        case.removes()
    assert case.apply().submodules == ("vend",)
    outer = case.repo.git("rev-parse", "HEAD:vend").strip()
    wanted = case.repo.git("-C", "vend", "rev-parse", f"{outer}:deep/inner").strip()
    assert case.repo.git("-C", "vend/deep/inner", "show", f"{wanted}:f") == "new\n"
    assert case.removes() == ""


def test_a_nested_submodule_that_only_the_origin_has_blocks_nothing(home: str) -> None:
    case = Nested(home)
    case.repo.git("-C", "vend", "submodule", "deinit", "-q", "-f", "deep/inner")
    shutil.rmtree(os.path.join(case.repo.path, ".git/modules/vend/modules"))
    case.vend.commit("g")
    assert case.apply().submodules == ("vend",)
    assert case.removes() == ""


def test_a_branch_counts_where_nothing_is_checked_out(home: str) -> None:
    case = Case(home, submodule=True)
    vend = case.fetch_submodule()
    vend.git("checkout", "-q", "-b", "kept")
    vend.commit("g")
    vend.git("symbolic-ref", "HEAD", "refs/heads/unborn")
    vend.git("rm", "-q", "--cached", "-r", ".")
    assert submodules.unmerged(case.tree) == {"vend": 1}


def test_a_submodule_of_which_git_cannot_tell_is_not_removed(home: str) -> None:
    case = Case(home, submodule=True)
    vend = case.fetch_submodule()
    git_dir = vend.git("rev-parse", "--absolute-git-dir").strip()
    with open(os.path.join(git_dir, "refs/heads/broken"), "w", encoding="utf-8") as file:
        file.write("1" * 40 + "\n")
    with pytest.raises(NotPossible, match="cannot read the repository"):
        submodules.unmerged(case.tree)


def test_a_link_in_a_submodules_place_leads_nowhere(home: str) -> None:
    case = Case(home, submodule=True)
    os.rmdir(os.path.join(case.tree.path, "vend"))
    os.symlink(".", os.path.join(case.tree.path, "vend"))
    assert submodules.within(case.tree) == []
