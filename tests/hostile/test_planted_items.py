"""A packet that an agent plants in the place of an item's task: its fan-out does not take it for its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from tests.hostile.planting import write
from tests.support.fanouts import agent, item, plan, project, rows, start
from tests.support.loops import up
from tests.support.tasks import holdfast, workspace

#: A copy of the packet of another item, which has ended, and a worktree with work.
_PLANT = """
import os, shutil, subprocess, sys, time
repo, tasks = sys.argv[1], os.path.dirname(os.environ["HOLDFAST_PACKET"])
old, new = tasks + "/f1.a", tasks + "/f1.b"
while not os.path.exists(old + "/done/_task.done"):
    time.sleep(0.05)
shutil.copytree(old, tasks + "/.copy", symlinks=True, ignore=shutil.ignore_patterns("*.lock", "bell"))
for folder, _, names in os.walk(tasks + "/.copy"):
    for name in names:
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            data = file.read()
        if b"f1.a" in data:
            with open(path, "wb") as file:
                file.write(data.replace(b"f1.a", b"f1.b"))
tree = os.path.dirname(tasks) + "/worktrees/f1.b"
words = ["git", "-C", repo, "worktree", "add", "-q", "-b", "holdfast/f1.b", tree, "main"]
subprocess.run(words, check=True)
with open(tree + "/planted.txt", "w") as file:
    file.write("planted")
os.rename(tasks + "/.copy", new)
"""


@pytest.fixture(autouse=True)
def _loop(home: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    up("--slots", "2")
    yield
    holdfast("down")


def test_a_planted_task_is_not_merged_as_an_item() -> None:
    repo, script = project(), os.path.join(workspace(), "plant.py")
    write(script, _PLANT)
    scenario = agent(("a", "echo a > a.txt"), ("c", f"{sys.executable} {script} {repo.path}; sleep 3"))
    items = (item("a"), item("c"), item("b", depends_on=["c"]))
    task = start(repo, scenario, plan(*items), "--accept", "true")
    task.wait_for("completed", "failed", within_s=60)
    assert rows(task)["b"]["state"] != "merged"
    assert "planted.txt" not in repo.git("ls-tree", "--name-only", "holdfast/f1")
    assert "there is another task f1.b" in holdfast("logs", task.id).stdout + holdfast("show", "f1").stdout
