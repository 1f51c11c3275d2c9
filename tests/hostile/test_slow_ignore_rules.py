"""Ignore rules over which git takes hours: views of the task say so, and nothing of it is removed."""

from __future__ import annotations

import os
import time

import pytest

from holdfast.errors import GitFailed
from holdfast.model.status import Status
from holdfast.store.layout import Packet
from holdfast.views.facts import report
from holdfast.views.removal import worktree as removal
from holdfast.views.text import next_steps
from holdfast.workspace import git
from tests.support.repos import Repo, packet_for, prepare

#: Generous: the machine may be busy. Without a limit these take 15 minutes.
WITHIN_S = 60.0


@pytest.fixture
def packet(home: str) -> Packet:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("file")
    packet = packet_for(home, repo.path, workspace="worktree", status=Status.COMPLETED)
    prepare(packet)
    work = Repo(os.path.join(home, "worktrees", "it"), with_git=False)
    work.write(".gitignore", "*a" * 14 + "*b\n")
    work.write("a" * 80 + "bc")
    return packet


def test_a_view_has_an_answer_in_time(packet: Packet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git, "VIEW_S", 1.0)
    began = time.monotonic()
    # Unknown counts as not applied.
    assert next_steps.unapplied(packet) == "worktree"
    with git.within(1.0):
        assert "git took too long" in str(report._diffstat(packet))  # pyright: ignore[reportPrivateUsage]
    assert time.monotonic() - began < WITHIN_S


def test_work_that_git_cannot_list_in_time_is_kept(packet: Packet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "_CHECK_S", 1.0)
    began = time.monotonic()
    with pytest.raises(GitFailed, match="exceeded its limit of 1 s") as caught:
        removal.remove_worktree(packet)
    assert "gitignore" in caught.value.hint
    assert time.monotonic() - began < WITHIN_S
    assert os.path.exists(os.path.join(packet.home.worktrees, "it", "file"))
    removal.remove_worktree(packet, force=True)
    assert not os.path.exists(os.path.join(packet.home.worktrees, "it"))
