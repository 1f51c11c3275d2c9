"""How lives of fan-outs begin, and what must hold at their ends."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from holdfast.model.spec import FanOutSpec, PlanItem, QualitySpec, QueueSpec, StageSpec, TaskSpec
from holdfast.model.status import ENDS, Status
from holdfast.model.task import Task
from holdfast.packet import load
from holdfast.testing import Scenario as Script
from tests.crash.drive import LIMITS, Case
from tests.support.repos import Repo

#: By item. The second changes a file outside its scope until it is sent back, the last one fails.
WORK = {
    "a": "echo a > a.txt",
    "b": "if [ -e bad.txt ]; then rm bad.txt; else echo b > b.txt; touch bad.txt; fi",
    "c": "exit 1",
}
SCOPE = {"b": ("b.txt",)}


def begin(case: Case) -> None:
    """Three items: one is merged, one is sent back first, and one is left out."""
    arms = " ".join(f"*.{name}) {command} ;;" for name, command in WORK.items())
    _create(case, f'case "$HOLDFAST_TASK" in {arms} esac', WORK)


def begin_endless(case: Case) -> None:
    """One item whose agent never ends, and one that waits for a slot."""
    _create(case, "sleep 300", ("a", "b"))


def begin_split(case: Case) -> None:
    """An agent writes the plan, which is refused once."""
    plan = {"schema": "holdfast.plan/1", "items": [{"id": "a", "title": "a", "prompt": "a"}]}
    work = 'case "$HOLDFAST_TASK" in *.a) echo a > a.txt ;; esac'
    good = Script().tool("sh", command=work).say(f"```json\n{json.dumps(plan)}\n```\n").result("ok")
    bad = Script().tool("sh", command=work).say("no plan yet").result("ok").resumed(good)
    path = str(bad.write_to(os.path.join(case.root, "script.json")))
    child = _child(case, agent="scripted", options={"scenario": path})
    case.create_fan_out(FanOutSpec(ask="all of it", child=child.to_json()))


def check_split(case: Case, task: Task) -> None:
    """The one item of the plan is merged."""
    merges = _git(case, "log", "--first-parent", "--merges", "--format=%s", "holdfast/task")
    assert merges == ["Merge holdfast/task.a: a"], merges
    assert load.fold(case.home.packet("task.plan")).status is Status.COMPLETED


def _child(case: Case, *, agent: str, **fields: Any) -> TaskSpec:
    Repo(case.project).commit("README.md")
    return TaskSpec(
        task_id="child",
        task_name="child",
        goal="crash",
        agent=agent,
        project_dir=case.project,
        stages=(StageSpec(name=f"{agent}_run", agent=agent, writes=True),),
        limits=LIMITS,
        workspace="worktree",
        quality=QualitySpec(accept=("test -e README.md",)),
        queue=QueueSpec(),
        **fields,
    )


def _create(case: Case, script: str, names: object) -> None:
    child = _child(case, agent="command", command=["sh", "-c", script])
    items = tuple(
        PlanItem(id=name, title=name, prompt=name, scope=SCOPE.get(name, ()))
        for name in names  # pyright: ignore
    )
    case.create_fan_out(FanOutSpec(items=items, child=child.to_json()))


def _git(case: Case, *words: str) -> list[str]:
    done = subprocess.run(
        ["git", *words], cwd=case.project, capture_output=True, text=True, timeout=30, check=True
    )
    return done.stdout.split("\n")[:-1]


def check(case: Case, task: Task) -> None:
    """Every item is merged once or left out, and branch and files have the work of those that are merged."""
    with open(case.packet.fan_out, encoding="utf-8") as file:
        record = json.load(file)
    states = {row["id"]: row["state"] for row in record["rows"]}
    assert states == {"a": "merged", "b": "merged", "c": "left_out"}, states
    assert record["merging"] is None
    assert _git(case, "rev-parse", "holdfast/task") == [record["tip"]]
    merges = _git(case, "log", "--first-parent", "--merges", "--format=%s", "holdfast/task")
    assert sorted(merges) == ["Merge holdfast/task.a: a", "Merge holdfast/task.b: b"], merges
    names = _git(case, "ls-tree", "--name-only", "holdfast/task")
    assert names == ["README.md", "a.txt", "b.txt"], names
    worktree = os.path.join(case.home.worktrees, "task")
    assert _git(case, "-C", worktree, "status", "--porcelain") == []
    for name, end in (("a", Status.COMPLETED), ("b", Status.COMPLETED), ("c", Status.FAILED)):
        child = load.fold(case.home.packet(f"task.{name}"))
        assert child.status is end
        assert child.spec.parent == "task"


def _statuses(case: Case) -> list[str]:
    packets = [case.home.packet(f"task.{name}") for name in "ab"]
    return [str(load.read_manifest(each)["status"]) for each in packets if os.path.isdir(each.path)]


def is_at_work(case: Case) -> bool:
    """Whether the first item runs and the second waits."""
    return sorted(_statuses(case)) == [Status.QUEUED, Status.RUNNING]


def are_ended(case: Case) -> bool:
    """Whether the tasks of both items have ended."""
    return all(status in ENDS for status in _statuses(case))


def check_stopped(case: Case, task: Task) -> None:
    """Nobody works for a parent that was stopped."""
    for name in "ab":
        child = load.fold(case.home.packet(f"task.{name}"))
        assert child.status is Status.KILLED, child.status
