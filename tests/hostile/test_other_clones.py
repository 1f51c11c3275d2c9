"""A clone of another version control system is a project of strangers, as one of git."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.store.layout import Home
from tests.hostile.planting import write
from tests.support.tasks import holdfast, workspace

MARKS = (
    ".hg", ".jj", ".svn", ".sl", ".bzr", ".fslckout", "_FOSSIL_", "_darcs", ".pijul", "CVS/Entries",
    ".repo", ".got", "_MTN", ".bk",
)  # fmt: skip


@pytest.mark.parametrize("mark", MARKS)
def test_what_a_clone_brings_needs_trust(home: str, monkeypatch: pytest.MonkeyPatch, mark: str) -> None:
    """Commands are typed elsewhere, or in a folder of the clone."""
    root = os.path.dirname(home)
    clone, ran = os.path.join(root, "clone"), os.path.join(root, "ran")
    os.makedirs(os.path.join(clone, mark))
    write(os.path.join(clone, "items.json"), json.dumps([{"id": "one", "command": ["touch", ran]}]))
    done = holdfast("queue", "import", os.path.join(clone, "items.json"), cwd=workspace())
    assert done.returncode == 2
    assert "holdfast trust" in done.stderr
    write(os.path.join(clone, "bin", "git"), f"#!/bin/sh\ntouch {ran}\n", mode=0o755)
    os.makedirs(os.path.join(clone, "docs"))
    monkeypatch.setenv("PATH", f"{clone}/bin:{os.environ['PATH']}")
    holdfast("doctor", cwd=os.path.join(clone, "docs"))
    holdfast("run", "--worktree", "--", "true", cwd=os.path.join(clone, "docs"))
    assert not os.path.exists(ran)
    # A home that the clone brings has no records of its own.
    assert Home(os.path.join(clone, "hf")).admitted != os.path.join(clone, "hf", "admitted")
