"""`clean_git` reads the files: an index or an ignore file that an agent wrote hides nothing."""

from __future__ import annotations

import os

import pytest

from holdfast.workspace import changed_files, git, unlike_head
from tests.support.repos import Repo


@pytest.fixture
def repo(tmp_path: str) -> Repo:
    repo = Repo(os.path.join(tmp_path, "project"))
    repo.write(".gitignore", "*.log\n")
    repo.commit("a.txt", "sub/b.txt")
    return repo


class Start:
    """A repository as it is before an agent."""

    def __init__(self, repo: Repo) -> None:
        found = git.find(repo.path)
        assert found is not None
        self.repository = found
        settings = git.settings.read(found)
        rules = unlike_head.uncommitted_rules(found, settings)
        self.settings = settings.evolve(exclude=settings.exclude + rules)
        self.skipped = unlike_head.skipped(found)

    def listed(self) -> list[str]:
        return sorted(changed_files.listed_in_full(self.repository, self.settings, self.skipped))


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_flag_in_the_index_hides_no_change(repo: Repo, flag: str) -> None:
    start = Start(repo)
    repo.git("update-index", flag, "a.txt")
    assert start.listed() == []
    repo.write("a.txt", "changed\n")
    assert start.listed() == ["a.txt"]


def test_a_deleted_file_is_not_one_of_a_sparse_checkout(repo: Repo) -> None:
    start = Start(repo)
    repo.git("update-index", "--skip-worktree", "a.txt")
    os.remove(os.path.join(repo.path, "a.txt"))
    assert start.listed() == ["a.txt"]


def test_a_sparse_checkout_of_the_user_is_clean_until_a_file_appears(repo: Repo) -> None:
    repo.git("sparse-checkout", "set", "--no-cone", "/*", "!/sub/")
    assert not os.path.exists(os.path.join(repo.path, "sub"))
    start = Start(repo)
    assert start.listed() == []
    repo.write("sub/b.txt", "changed\n")
    assert start.listed() == ["sub/b.txt"]


def test_a_new_ignore_file_hides_neither_itself_nor_others(repo: Repo) -> None:
    start = Start(repo)
    repo.write("n/.gitignore", "*\n")
    repo.write("n/s")
    repo.write("run.log")
    assert start.listed() == ["n/.gitignore", "n/s"]


def test_ignore_files_of_the_user_and_of_tools_count(repo: Repo) -> None:
    repo.write("mine/.gitignore", "*\n")
    start = Start(repo)
    repo.write("mine/new")
    repo.write(".pytest_cache/.gitignore", "*\n")
    repo.write(".pytest_cache/new")
    assert start.listed() == []


def test_a_committed_ignore_file_counts_and_a_file_that_is_only_staged_does_not_hide(repo: Repo) -> None:
    start = Start(repo)
    repo.write(".gitignore", "*.log\nout/\n")
    repo.commit()
    repo.write("out/file")
    assert start.listed() == []
    repo.git("add", "-f", "out/file")
    assert start.listed() == ["out/file"]


def test_a_flag_in_the_index_of_a_submodule_hides_no_change(repo: Repo) -> None:
    inner = Repo(os.path.join(os.path.dirname(repo.path), "inner"))
    inner.commit("c.txt")
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", inner.path, "lib")
    repo.commit()
    start = Start(repo)
    assert start.listed() == []
    repo.git("-C", "lib", "update-index", "--assume-unchanged", "c.txt")
    repo.write("lib/c.txt", "changed\n")
    assert start.listed() == ["lib"]


def test_a_file_behind_a_filter_of_the_user_is_judged_by_its_index(repo: Repo) -> None:
    repo.git("config", "filter.upper.clean", "tr a-z A-Z")
    repo.write(".gitattributes", "*.bin filter=upper\n")
    os.utime(repo.write("x.bin", "text\n"), (1, 1))  # git reads a file again that is as new as the index
    repo.commit()
    start = Start(repo)
    assert start.listed() == []
