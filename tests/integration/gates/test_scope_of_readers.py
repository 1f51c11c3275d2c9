"""The scope gate of a stage that only reads: a warning in place; refused or reverted in a worktree."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.support.packets import REPORTS
from tests.support.repos import Repo, judge, packet_for, prepare, report

STAGE = "codex_review"


class Review:
    def __init__(self, home: str, workspace: str = "worktree", **asked: Any) -> None:
        self.repo = Repo(os.path.join(os.path.dirname(home), "project"))
        self.repo.commit("README.md", "src/a")
        asked = {"scope_allow": ("src/",), "scope_deny": ("secret",), **asked}
        stages = ((STAGE, "review"), ("codex_verify", "verify"))
        self.packet = packet_for(home, self.repo.path, stages=stages, workspace=workspace, **asked)
        self.work = Repo(prepare(self.packet, STAGE)["path"], with_git=False)
        report(self.packet, REPORTS["review"], STAGE)

    def judge(self) -> tuple[int, dict[str, Any]]:
        return judge(self.packet, STAGE)


@pytest.mark.req("GAT-3")
@pytest.mark.parametrize("path", ["README.md", "src/a", "src/new", "secret"])
def test_in_a_worktree_its_changes_are_refused(home: str, path: str) -> None:
    case = Review(home)
    case.work.write(path, "changed\n")
    code, result = case.judge()
    assert (code, result["failed"]) == (1, "scope")
    assert f"{path} was" in result["reasons"][0]
    assert "which must not change files" in result["reasons"][0]


def test_with_revert_they_are_taken_back(home: str) -> None:
    case = Review(home, revert_out_of_scope=True)
    case.work.write("src/a", "changed\n")
    case.work.write("src/new")
    code, result = case.judge()
    assert (code, result["failed"]) == (0, "")
    assert "2 changes out of scope reverted" in result["warnings"][0]
    assert case.work.read("src/a") == "text\n"
    assert not os.path.exists(os.path.join(case.work.path, "src/new"))


def test_a_cache_that_comes_home_with_nothing_is_a_remark(home: str) -> None:
    case = Review(home)
    case.work.write(".cache/x")
    code, result = case.judge()
    assert (code, result["warnings"]) == (0, [])
    assert ".cache/x was added by codex_review, outside the scope" in result["reasons"][0]


def test_in_place_it_is_a_warning_for_a_person_may_have_done_it(home: str) -> None:
    case = Review(home, "in_place")
    case.work.write("README.md", "changed\n")
    code, result = case.judge()
    assert code == 0
    assert result["warnings"] == [
        "README.md was modified while codex_review ran, which must not change files"
    ]


def test_a_neighbours_new_remote_is_a_warning_in_a_worktree_too(home: str) -> None:
    case = Review(home)
    case.repo.git("remote", "add", "fork", "https://example.org/fork")
    code, result = case.judge()
    assert (code, len(result["warnings"])) == (0, 2)
    case.repo.write(".git/hooks/post-commit", "#!/bin/sh\n")
    assert case.judge()[0] == 1


def test_earlier_changes_are_not_reported(home: str) -> None:
    case = Review(home, "in_place")
    assert case.judge()[1]["warnings"] == []


def test_after_the_last_stage_everything_outside_the_scope_is_reported(home: str) -> None:
    """A process that an agent left may write between two stages."""
    case = Review(home, "in_place")
    case.work.write("README.md", "late\n")
    prepare(case.packet, "codex_verify")
    report(case.packet, REPORTS["verify"], "codex_verify")
    code, result = judge(case.packet, "codex_verify")
    assert (code, result["warnings"]) == (
        0,
        ["changed outside the scope since the task began: README.md"],
    )


def test_where_git_does_not_answer_a_review_in_place_goes_on(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.path.dirname(home))
    packet = packet_for(home, os.path.dirname(home), stages=((STAGE, "review"),))
    assert prepare(packet, STAGE)["tree"] == ""
    report(packet, REPORTS["review"], STAGE)
    assert judge(packet, STAGE)[0] == 0
