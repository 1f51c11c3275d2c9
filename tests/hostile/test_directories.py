"""Directories that an agent leaves, very deep ones or such that their owner may not enter: `rm` works."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.repos import Repo
from tests.support.tasks import holdfast
from tests.support.tools import need

_DEEP = """
import os, sys
os.chdir(sys.argv[1])
for _ in range(3000):
    os.mkdir("d"); os.chdir("d")
open("f", "w").close()
"""
_CLOSED = "mkdir -p {0}/a/b; touch {0}/a/b/f {0}/a/f; chmod 555 {0}/a/b; chmod 500 {0}/a; mkdir -m 0 {0}/none"
_REMOVE = """
import sys
from holdfast.store.directories import remove_tree
raise SystemExit(not remove_tree(sys.argv[1]))
"""


def as_a_user(*argv: str) -> list[str]:
    """The command, without the privilege of root to ignore modes."""
    if os.geteuid() != 0:
        return list(argv)
    need("setpriv")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all", *argv]


@pytest.fixture(autouse=True)
def cleared(home: str) -> Iterator[None]:
    """Otherwise pytest, which recurses, fails to remove what a failed test left."""
    yield
    subprocess.run(
        ["rm", "-rf", f"{home}/worktrees", f"{home}/tasks", f"{home}/../top"], check=False, timeout=60
    )


@pytest.fixture
def repo(home: str) -> Repo:
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("a")
    return repo


def test_a_deep_worktree_is_removed(home: str, repo: Repo) -> None:
    words = ("--worktree", "--id", "deep", "--", sys.executable, "-c", _DEEP, ".")
    holdfast("run", *words, cwd=repo.path)
    assert os.path.isdir(os.path.join(home, "worktrees", "deep", "d"))
    done = holdfast("rm", "--force", "deep", cwd=repo.path)
    assert done.returncode == 0, done.stderr
    assert not os.path.lexists(os.path.join(home, "worktrees", "deep"))


def test_a_deep_packet_is_removed(home: str, repo: Repo) -> None:
    script = f"{sys.executable} -c '{_DEEP}' $TASK_TMPDIR"
    holdfast("run", "--id", "deep", "--", "sh", "-c", script, cwd=repo.path)
    done = holdfast("rm", "--force", "deep", cwd=repo.path)
    assert done.returncode == 0, done.stderr
    assert [
        name for name in os.listdir(os.path.join(home, "tasks")) if "gone" in name or name == "deep"
    ] == []


@pytest.mark.parametrize("what", [_CLOSED, f"{sys.executable} -c '{_DEEP}' {{0}}"], ids=("closed", "deep"))
def test_a_tree_is_removed_whatever_its_depth_and_modes(home: str, what: str) -> None:
    top = os.path.join(os.path.dirname(home), "top")
    outside = os.path.join(os.path.dirname(home), "outside")
    os.mkdir(top)
    os.mkdir(outside, 0o500)
    os.symlink(outside, os.path.join(top, "link"))
    subprocess.run(as_a_user("sh", "-c", what.format(top)), check=True, timeout=60)
    done = subprocess.run(as_a_user(sys.executable, "-c", _REMOVE, top), check=False, timeout=60)
    assert done.returncode == 0
    assert not os.path.lexists(top)
    assert os.stat(outside).st_mode & 0o777 == 0o500
