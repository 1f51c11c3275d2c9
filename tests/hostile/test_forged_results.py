"""Results of chores that the agent of another task replaces while their runner looks at them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.testing import Scenario
from tests.hostile.planting import write
from tests.support import repos
from tests.support.gh import Gh
from tests.support.packets import Written, played
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

EAGER = ("--base-interval", "0.2s", "--stale", "none")
#: As soon as a chore of a kind has written its result, change it.
_REPLACE = """
import glob, json, os, sys
tasks, kind, changes = sys.argv[1:]
done = set()
while os.getppid() > 1:
    for path in glob.glob(f"{tasks}/*/attempts/*.{kind}/result.json"):
        if path in done:
            continue
        with open(path) as file:
            data = json.load(file)
        with open(path + ".new", "w") as file:
            json.dump(data | json.loads(changes), file)
        os.rename(path + ".new", path)
        done.add(path)
"""


@contextmanager
def replacing(home: str, kind: str, **changes: object) -> Iterator[None]:
    words = [os.path.join(home, "tasks"), kind, json.dumps(changes)]
    process = subprocess.Popen([sys.executable, "-c", _REPLACE, *words])
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("where", ["in place", "worktree"])
def test_no_result_chooses_where_a_command_runs(home: str, where: str) -> None:
    repo, root = Repo(workspace()), os.path.dirname(home)
    proof, other = os.path.join(root, "ran"), os.path.join(root, "other")
    repo.write("run.sh", "true\n")
    repo.commit("run.sh")
    write(os.path.join(other, "run.sh"), f"touch {proof}\n")
    flags = ("--worktree",) if where == "worktree" else ("--accept", "true")
    with replacing(home, "prepare", path=other):
        for _ in range(3):
            task = Task.start(*EAGER, *flags, "--max-retries", "0", "--", "sh", "run.sh")
            task.wait_for("completed", "failed", "abandoned", "interrupted", within_s=40)
    assert not os.path.exists(proof)


@pytest.mark.parametrize("planted", ["--web", "https://other.example/o/n/pull/1"])
def test_no_result_chooses_what_gh_is_asked_about(home: str, planted: str) -> None:
    """It would be an option of gh, or a server to which gh sends a token."""
    project = repos.pushed_project(repos.bare_remote())
    gh = Gh()
    gh.answer([{"name": "test", "bucket": "pending", "link": ""}])
    impl = played("impl", before=Scenario().write("b.txt", content="x\n"))
    packet = Written(
        {"scripted_impl": impl, "scripted_review": None},
        project=project,
        workspace="worktree",
        gate={"ci": {"pull_request": "draft"}},
    )
    with replacing(home, "ci", pull_request=planted):
        task = packet.start(env=gh.env)
        eventually(lambda: len(ended_looks(task)) >= 3, within_s=90.0)
    holdfast("stop", "--now", task.id)
    task.wait_for("killed")
    assert not [call["argv"] for call in gh.calls() if planted in call["argv"]]


def ended_looks(task: Task) -> list[str]:
    return [
        name
        for name in os.listdir(task.path("attempts"))
        if name.endswith(".ci") and os.path.exists(task.path("attempts", name, "attempt.json"))
    ]
