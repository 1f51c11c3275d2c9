"""A directory among the tasks whose name is no id is no task: it breaks nobody, and `doctor` names it."""

from __future__ import annotations

import os

import pytest

from tests.hostile.test_bad_files import outcomes
from tests.support.tasks import Task, holdfast, workspace

NAMES = (b"\xff\xfe", b"a\nb", b"\x1b[31mred", b"-rf", b"x" * 200, b"a b", b"\xe2\x80\xaeabc")


def test_names_that_are_no_ids_break_nothing(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    good = Task.start("--id", "good", "--", "true")
    good.wait_for("completed")
    for folder in (b"tasks", b"archive", b"admitted", b"seals", b"outbox", b"schedules", b"worktrees"):
        for name in NAMES:
            path = os.path.join(os.fsencode(home), folder, name)
            os.makedirs(path)
            with open(os.path.join(path, b"events.jsonl"), "w", encoding="utf-8") as file:
                file.write("{}\n")
    for name in NAMES:
        os.makedirs(os.path.join(os.fsencode(good.packet), b"attempts", b"002-" + name[:100]))
    verbs = ("ls", "ls --all", "ls --json", "status", "report", "queue ls", "digest", "metrics", "show good")
    found, complaints = outcomes(*verbs)
    assert set(found.values()) == {0}, (found, complaints)
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("up").returncode == 0
    assert holdfast("submit", "--id", "queued", "--", "true", cwd=workspace()).returncode == 0
    assert holdfast("wait", "queued", "--timeout", "30s").returncode == 0, "the keeper works"
    assert "not a task" in holdfast("doctor").stdout
    assert holdfast("rm", "good").returncode == 0
    assert holdfast("down", "--now").returncode == 0
