"""Fan-out: the items of a plan become queued tasks, whose work is merged one by one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.fanouts import MERGES, agent, item, plan, project, rows, start, together
from tests.support.loops import up
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast
from tests.support.waiting import eventually

WITHIN_S = 60


@pytest.fixture(autouse=True)
def _loop(home: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A keeper with two slots."""
    monkeypatch.delenv("HOLDFAST_KEEPER")
    up("--slots", "2")
    yield
    holdfast("down")


def on_branch(repo: Repo, path: str) -> str:
    return repo.git("show", f"holdfast/f1:{path}")


def children(task: Task, *names: str) -> list[Task]:
    return [Task(f"{task.packet}.{name}") for name in names]


@pytest.mark.req("GAT-13")
def test_items_are_worked_on_apart_and_merged_together() -> None:
    repo = project()
    scenario = agent(("a", "echo a > a.txt"), ("b", "echo b > b.txt"), ("c", "cat a.txt b.txt > c.txt"))
    items = (item("a"), item("b"), item("c", depends_on=["a", "b"]))
    task = start(repo, scenario, plan(*items), "--accept", "test -e a.txt || test -e b.txt")
    task.wait_for("completed", within_s=WITHIN_S)
    assert {name: row["state"] for name, row in rows(task).items()} == dict.fromkeys("abc", "merged")
    assert on_branch(repo, "c.txt") == "a\nb\n"
    # The user's own branch has none of it, and the three are tasks of the queue.
    assert not os.path.exists(os.path.join(repo.path, "a.txt"))
    for child in children(task, "a", "b", "c"):
        assert child.status() == "completed"
        spec = child.events("task.created")[0]["spec"]
        assert (spec["parent"], spec["queue"]["pool"]) == (task.id, "default")
    assert holdfast("apply", task.id).returncode == 0
    assert os.path.exists(os.path.join(repo.path, "c.txt"))


@pytest.mark.req("GAT-13")
def test_a_conflict_goes_back_to_its_agent_and_is_merged_then() -> None:
    repo = project()
    scenario = agent(
        ("a", f"{together()}; echo a > shared.txt"),
        ("b", f"{together()}; echo b > shared.txt"),
        again=f"{MERGES}; echo ab > shared.txt",
    )
    task = start(repo, scenario, plan(item("a"), item("b")), "--accept", "grep -q . shared.txt")
    task.wait_for("completed", within_s=WITHIN_S)
    assert on_branch(repo, "shared.txt") == "ab\n"
    returned = [row for row in rows(task).values() if row["returned"]]
    assert [row["returned"] for row in returned] == [1]
    child = Task(f"{task.packet}.{returned[0]['id']}")
    _, second = child.memory().starts()
    assert second.is_resume
    assert "conflicts with what is merged: shared.txt" in second.prompt
    assert "git merge holdfast/f1" in second.prompt
    assert "sent back (1 of 2)" in task.log()


@pytest.mark.req("GAT-13")
def test_what_breaks_the_others_is_left_out_and_told() -> None:
    repo = project()
    scenario = agent(("a", f"{together()}; echo a > a.txt"), ("b", f"{together()}; echo b > b.txt"))
    # Each passes alone.
    accept = "test ! -e a.txt || test ! -e b.txt"
    items = (item("a"), item("b"), item("c", depends_on=["b"]))
    task = start(repo, scenario, plan(*items), "--accept", accept, "--send-back", "1", "--priority", "high")
    task.wait_for("failed", within_s=WITHIN_S)
    states = {name: row["state"] for name, row in rows(task).items()}
    assert sorted(states.values()) == ["left_out", "left_out", "merged"], states
    assert states["c"] == "left_out"
    refused = next(row for row in rows(task).values() if row["returned"])
    assert accept in refused["reason"]
    assert task.manifest()["status_reason"]
    assert not os.path.exists(children(task, "c")[0].packet)
    assert accept in task.read("outputs", f"{refused['id']}.merge.md").decode()


def test_a_scope_holds_for_the_merge() -> None:
    repo = project()
    scenario = agent(("a", "echo a > a.txt; echo x > other.txt"), again="rm other.txt")
    task = start(repo, scenario, plan(item("a", scope=["a.txt"])))
    task.wait_for("completed", within_s=WITHIN_S)
    assert "outside its scope: other.txt" in task.log()
    assert on_branch(repo, "a.txt") == "a\n"
    assert "other.txt" not in repo.git("ls-tree", "--name-only", "holdfast/f1")


def test_a_stop_of_the_parent_stops_its_tasks() -> None:
    repo = project()
    scenario = agent(("a", "sleep 300"), ("b", "sleep 300"))
    task = start(repo, scenario, plan(item("a"), item("b")))
    first, second = children(task, "a", "b")
    eventually(lambda: os.path.exists(second.path("manifest.json")), 20, "both tasks exist")
    task.stop()
    for child in (first, second):
        child.wait_for("killed", within_s=20)
        assert task.id in child.manifest()["status_reason"]


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([item("../x")], "id must have"),
        ([item("a", scope=["/etc"])], "without wildcards"),
        ([item("a", depends_on=["b"]), item("b", depends_on=["a"])], "cycle"),
        ([item(f"i{n}") for n in range(21)], "1 to 20 items"),
    ],
)
def test_a_bad_plan_changes_nothing(items: list[dict[str, object]], words: str) -> None:
    done = holdfast("fan-out", plan(*items), "--agent", "scripted", cwd=project().path)
    assert done.returncode == 2
    assert words in done.stderr
    assert not os.listdir(os.path.join(os.environ["HOLDFAST_HOME"], "tasks"))
