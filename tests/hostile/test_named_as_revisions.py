"""Files whose names are revisions: git must not ask which one is meant."""

from __future__ import annotations

import os

from tests.support.repos import Repo
from tests.support.tasks import holdfast, workspace


def test_files_that_are_named_as_revisions_change_nothing(home: str) -> None:
    project = Repo(os.path.join(workspace(), "project"))
    project.commit(project.commit("HEAD", "main", "holdfast", "--"))
    work = "echo a > new; cp new $(git rev-parse HEAD); cp new $(git rev-parse HEAD:); echo b > HEAD"
    for task_id in ("one", "two"):
        ran = holdfast("run", "--worktree", "--id", task_id, "--", "sh", "-c", work, cwd=project.path)
        assert ran.returncode == 0, ran.stderr
    for words in (
        ("diff", "one", "--stat"),
        ("apply", "one"),
        ("archive", "one"),
        ("rm", "one"),
        ("rm", "--force", "two"),
    ):
        done = holdfast(*words, cwd=project.path)
        assert done.returncode == 0, (words, done.stderr)
    assert project.git("show", "HEAD:HEAD", "--") == "b\n"
