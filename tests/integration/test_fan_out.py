"""Fan-out: the items of a plan become queued tasks, whose work is merged one by one."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

import holdfast as holdfast_api
from holdfast.packet import archive
from holdfast.store.layout import Packet
from holdfast.testing import Scenario
from tests.support import keepers, kin
from tests.support.fanouts import MERGES, agent, item, plan, project, rows, start, together
from tests.support.loops import up
from tests.support.mcp import Client
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.tools import need_sandbox
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
    accept = "accept    1 command, passed at 3 merges (outputs/ITEM.merge.md)"
    assert accept in holdfast("show", task.id).stdout
    (told,) = [
        row for row in json.loads(holdfast("report", "--json").stdout)["ended"] if row["task_id"] == task.id
    ]
    assert told["accepted"] == "accepted"
    # The user's own branch has none of it, and the three are tasks of the queue.
    assert not os.path.exists(os.path.join(repo.path, "a.txt"))
    for child in children(task, "a", "b", "c"):
        assert child.status() == "completed"
        spec = child.events("task.created")[0]["spec"]
        assert (spec["parent"], spec["queue"]["pool"]) == (task.id, "default")
    listed = holdfast("ls", "-q", "--label", "fan-out=f1").stdout.split()
    assert sorted(listed) == ["f1", "f1.a", "f1.b", "f1.c"]
    # As many as 'git log' lists, not only those that are on no branch of an item.
    ahead = repo.git("rev-list", "--count", "HEAD..holdfast/f1").strip()
    assert f"unmerged work: {ahead} commits on holdfast/f1" in holdfast("rm", task.id).stderr
    applied = holdfast("apply", task.id)
    assert applied.returncode == 0
    assert f"  holdfast rm --items {task.id}   remove the task and its items" in applied.stderr
    assert os.path.exists(os.path.join(repo.path, "c.txt"))
    # Without --items, the tasks of the items stay, and are named.
    removed = holdfast("rm", task.id)
    assert removed.stderr.splitlines() == [
        f"removed {task.id}",
        "the tasks of its items stay: f1.a, f1.b, f1.c",
        "  holdfast rm --label fan-out=f1   remove them, too",
    ]
    assert holdfast("rm", "--label", "fan-out=f1").returncode == 0
    assert holdfast("ls", "-q").stdout == ""


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
    assert f"git merge {repo.git('rev-parse', 'holdfast/f1~1').strip()}" in second.prompt
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
    reason = task.manifest()["status_reason"]
    assert reason.startswith("1 of 3 merged; left out: ")
    assert f"{refused['id']}: " in reason
    assert not os.path.exists(children(task, "c")[0].packet)
    assert accept in task.read("outputs", f"{refused['id']}.merge.md").decode()
    # What was merged can be looked at.
    assert "next      holdfast diff f1         show what was merged\n" in holdfast("show", "f1").stdout
    assert "→ holdfast diff f1 (show what was merged)" in holdfast("report").stdout
    assert "- command: `holdfast diff f1`" in task.read("outputs", "_summary.md").decode()
    # Its own acceptance passed, but every view says that it was left out, and it is not merged alone.
    child, why = refused["task"], f"left out of the fan-out f1: {refused['reason']}"
    shown = holdfast("show", child).stdout
    assert "left out  of the fan-out f1: together with what is merged" in shown
    assert "holdfast apply" not in shown
    assert "holdfast apply" not in holdfast("show", child, "--summary").stdout
    assert f"[{why}" in holdfast("ls").stdout
    (told,) = [line for line in holdfast("report").stdout.splitlines() if f"  {child}  completed" in line]
    assert f": {why}" in told
    assert "accepted" not in told
    done = holdfast("apply", child)
    assert done.returncode == 3
    assert f"{child} was {why}" in done.stderr
    assert f"'holdfast apply --force {child}' merges it anyway" in done.stderr
    assert holdfast("pr", child).returncode == 3
    # Nor is what a person let its agent do since: its fan-out can merge that.
    again = Task(os.path.join(os.path.dirname(task.packet), child))
    again.ask_patiently("retry", "--from", "scripted_run", "-m", "once more")
    eventually(lambda: len(again.events("run.opened")) == 2 and again.status() == "completed", 30, "it ended")
    shown = holdfast("show", child).stdout
    assert "left out  of the fan-out f1 before this run: 'holdfast retry f1' merges it" in shown
    assert "next      holdfast retry f1" in shown
    assert "before this run: 'holdfast retry f1' merges it" in holdfast("report").stdout
    assert "'holdfast retry f1' merges it" in holdfast("apply", child).stderr
    # Whatever an agent writes into the record: the journal of the fan-out knows it.
    os.unlink(task.path("state", "fan-out.json"))
    assert holdfast("apply", child).returncode == 3
    assert holdfast("apply", "--force", child).returncode == 0


def test_a_scope_holds_for_the_merge() -> None:
    repo = project()
    scenario = agent(("a", "echo a > a.txt; echo x > other.txt"), again="rm other.txt")
    task = start(repo, scenario, plan(item("a", scope=["a.txt"])))
    task.wait_for("completed", within_s=WITHIN_S)
    assert "outside its scope: other.txt" in task.log()
    assert "Change only: a.txt" in children(task, "a")[0].memory().starts()[0].prompt
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


@pytest.mark.req("GAT-13")
def test_sandboxed_agents_commit_and_are_merged() -> None:
    need_sandbox()
    repo = project()
    commit = "git add -A; git -c user.name=A -c user.email=a@example.org commit -qm work"
    scenario = agent(("a", f"echo a > a.txt; {commit}"), ("b", "cat a.txt > b.txt"))
    task = start(repo, scenario, plan(item("a"), item("b", depends_on=["a"])), "--sandbox")
    task.wait_for("completed", within_s=WITHIN_S)
    assert on_branch(repo, "b.txt") == "a\n"
    # The conductor itself is ours.
    assert task.events("task.created")[0]["spec"]["sandbox"] is None
    assert children(task, "a")[0].events("task.created")[0]["spec"]["sandbox"] is not None


# ── a plan of an agent ──


def planner(*answers: str) -> Scenario:
    """An agent that answers with these plans, one after the other, and writes a file for each item."""
    work = 'case "$HOLDFAST_TASK" in *.plan) ;; *) echo x > ${HOLDFAST_TASK#f1.}.txt ;; esac'
    scenario = None
    for text in reversed(answers):
        once = Scenario().tool("sh", command=work).say(text).result("ok")
        scenario = once if scenario is None else once.resumed(scenario)
    assert scenario is not None
    return scenario


def answer(*items: dict[str, object]) -> str:
    data = json.dumps({"schema": "holdfast.plan/1", "items": list(items)}, indent=2)
    return f"Here is the plan.\n\n```json\n{data}\n```\n"


def split(scenario: Scenario, *flags: str) -> Task:
    return start(project(), scenario, None, "--split", "Write some files.", *flags)


@pytest.mark.req("GAT-13")
def test_an_agent_writes_the_plan_and_a_bad_one_goes_back_to_it() -> None:
    bad, good = answer(item("../a")), answer(item("a"), item("b", depends_on=["a"]))
    task = split(planner(bad, good), "--budget-tokens", "8000")
    task.wait_for("completed", within_s=WITHIN_S)
    assert {name: row["state"] for name, row in rows(task).items()} == dict.fromkeys("ab", "merged")
    (asked,) = children(task, "plan")
    first, second = asked.memory().starts()
    assert "Write some files." in first.prompt
    assert "holdfast.plan/1" in first.prompt
    assert "items[0].id must have" in second.prompt
    spec = asked.events("task.created")[0]["spec"]
    assert spec["stages"][0]["permissions"] == "read"
    # A quarter is for the plan, the rest is divided.
    assert spec["limits"]["budget_tokens"] == 2000
    assert children(task, "a")[0].events("task.created")[0]["spec"]["limits"]["budget_tokens"] == 3000
    assert "plan (f1.plan): completed" in holdfast("show", task.id).stdout


def test_without_a_plan_nothing_is_started_and_a_retry_asks_again() -> None:
    bad, good = answer(item("A")), answer(item("a"))
    task = split(planner(bad, good), "--send-back", "0")
    task.wait_for("failed", within_s=WITHIN_S)
    assert "there is no plan: f1.plan completed: items[0].id" in task.log()
    assert rows(task) == {}
    assert task.ask("retry").returncode == 0
    task.wait_for("completed", within_s=WITHIN_S)
    assert list(rows(task)) == ["a"]


# ── what a person does ──


def test_an_item_that_was_stopped_is_left_out_until_the_parent_is_retried() -> None:
    repo = project()
    waits = f"until [ -e {workspace()}/go ]; do sleep 0.05; done"
    scenario = agent(("a", "echo a > a.txt"), ("b", "sleep 300"), again=f"{waits}; echo b > b.txt")
    task = start(repo, scenario, plan(item("a"), item("b")))
    (child,) = children(task, "b")
    eventually(lambda: os.path.exists(child.packet) and child.status() == "running", 30, "b runs")
    child.stop()
    task.wait_for("failed", within_s=WITHIN_S)
    assert rows(task)["b"]["state"] == "left_out"
    assert "stopped by" in rows(task)["b"]["reason"]
    assert "b (f1.b): left out" in task.read("outputs", "_summary.md").decode()
    # Its task stays with it.
    done = holdfast("archive", "f1.b")
    assert done.returncode == 3
    assert "'holdfast archive f1 f1.b' archives both" in done.stderr
    done = holdfast("archive", "--all-ended")
    assert "and is not archived: f1.a, f1.b\n" in done.stderr
    assert done.stderr.endswith("0 tasks archived, 3 not\n")
    # As an older version could do it.
    archive.archive(Packet(child.packet))
    assert task.ask("retry").returncode == 0
    restore = "holdfast archive --restore f1.b"
    eventually(lambda: restore in task.manifest()["status_reason"], 30, "it says what to type")
    assert holdfast(*restore.split()[1:]).returncode == 0
    # One that was stopped again after a person retried it alone, too.
    assert child.ask("retry").returncode == 0
    eventually(lambda: child.status() == "running", 30, "b runs again")
    child.stop()
    kin.go()
    assert task.ask("retry").returncode == 0
    task.wait_for("completed", within_s=WITHIN_S)
    assert on_branch(repo, "b.txt") == "b\n"
    assert "a (f1.a): merged, 1 file changed" in holdfast("show", task.id).stdout
    assert holdfast("show", child.id).stdout.count("parent    f1") == 1


def test_a_fan_out_whose_items_wait_for_a_person_says_so() -> None:
    repo = project()
    asks = Scenario().tool("sh", command=f"until [ -e {workspace()}/go ]; do sleep 0.05; done")
    asks = asks.usage(input_tokens=500, output_tokens=500, cost_usd=0.25).interrupt_request("which?")
    asks = asks.result("ok").resumed(Scenario().tool("sh", command="echo b > b.txt").say("done").result("ok"))
    task = start(repo, asks, plan(item("a"), item("b", depends_on=["a"])))
    (child,) = children(task, "a")
    eventually(lambda: os.path.exists(child.packet) and child.status() == "running", 30, "a runs")
    before = json.loads(holdfast("digest", "--json").stdout)["cursor"]
    kin.go()
    eventually(lambda: child.status() == "interrupted", 30, "a asks")
    waited = holdfast("wait", task.id, "--timeout", "30s")
    assert (waited.returncode, waited.stdout) == (4, "f1 running\n"), waited.stderr
    assert "f1 waits for a person, with f1.a; 'holdfast show f1.a' says what to do" in waited.stderr
    shown = holdfast("show", task.id).stdout
    assert "waits     for a person, with f1.a" in shown
    assert "next      holdfast resume f1.a -m 'ANSWER'" in shown
    assert "cost $0.25 (all items together)" in shown
    (row,) = [row for row in json.loads(holdfast("ls", "--json").stdout) if row["task_id"] == task.id]
    # The item needs you; the fan-out works, and says which item waits.
    assert (row["group"], row["asking"]) == ("working", ["f1.a"])
    assert "[waits for a person, with f1.a]" in holdfast("ls").stdout
    report = json.loads(holdfast("report", "--json").stdout)
    assert [need["task_id"] for need in report["needs"]] == ["f1.a"]
    assert [(each["task_id"], each["waits"]) for each in report["active"]] == [
        ("f1", "waits for a person, with f1.a")
    ]
    told = json.loads(holdfast("digest", "f1", "--since", before, "--json").stdout)
    assert told["asking"] == {"count": 1, "tasks": ["f1"]}
    assert [(each["asking"], each["waits"]) for each in told["tasks"]] == [
        (["f1.a"], "waits for a person, with f1.a")
    ]
    assert "1 running (asking: f1)" in holdfast("digest", "f1").stdout
    with Client() as client:
        for since, is_new in ((None, True), (before, True), (told["cursor"], False)):
            cursor = {"since": since} if since else {}
            assert client.call("wait", tasks=["f1"], timeout_s=0, **cursor)["finished"] == is_new, since
        assert client.call("wait", labels={"fan-out": "f1"}, until="all", timeout_s=0)["finished"]
    task.stop()


def test_a_retry_grants_items_their_part_of_the_budget_again() -> None:
    repo = project()
    scenario = Scenario().usage(input_tokens=500, output_tokens=500).tool("sh", command="touch wrong.txt")
    scenario = scenario.say("done").result("ok")
    right = Scenario().tool("sh", command="mv wrong.txt right.txt").say("done").result("ok")
    task = start(
        *(repo, scenario.resumed(right), plan(item("a", scope=["right.txt"]))),
        *("--budget-tokens", "100"),
    )
    task.wait_for("failed", within_s=WITHIN_S)
    assert rows(task)["a"]["state"] == "left_out"
    assert task.ask("retry").returncode == 0
    task.wait_for("completed", within_s=WITHIN_S)
    (child,) = children(task, "a")
    assert child.events("request.refused") == []


def test_a_task_that_was_removed_is_not_made_again_before_a_retry() -> None:
    repo = project()
    scenario = agent(("a", "echo a > a.txt"), ("b", f"{together()}; echo b > b.txt"))
    task = start(repo, scenario, plan(item("a"), item("b")))
    (child,) = children(task, "b")
    eventually(lambda: os.path.exists(child.packet) and child.status() == "running", 30, "b runs")
    conductor = task.agent_pid()
    os.kill(conductor, signal.SIGSTOP)  # it does not see that the task was stopped first
    assert holdfast("rm", "--force", child.id).returncode == 0
    os.kill(conductor, signal.SIGCONT)
    task.wait_for("failed", within_s=WITHIN_S)
    assert rows(task)["b"]["reason"] == "its task was removed"
    shown = holdfast("show", task.id).stdout
    assert f"holdfast retry {task.id}" in shown, shown
    with open(os.path.join(workspace(), "together", "x"), "ab"):
        pass
    assert task.ask("retry").returncode == 0
    task.wait_for("completed", within_s=WITHIN_S)
    assert f"holdfast apply {task.id}" in holdfast("show", task.id).stdout
    # Its new task was accepted at once.
    assert child.events("run.opened") == []


def test_a_branch_that_somebody_moved_is_not_overwritten() -> None:
    repo = project()
    go = os.path.join(workspace(), "go")
    scenario = agent(("a", "echo a > a.txt"), ("b", f"until [ -e {go} ]; do sleep 0.1; done; echo b > b.txt"))
    task = start(repo, scenario, plan(item("a"), item("b")))
    task.wait_for_log("a: merged", within_s=WITHIN_S)
    old = repo.git("rev-parse", "holdfast/f1").strip()
    repo.git("update-ref", "refs/heads/holdfast/f1", "main")
    with open(go, "ab"):
        pass
    task.wait_for("failed", within_s=WITHIN_S)
    assert "was moved from outside" in task.log()
    assert repo.git("rev-parse", "holdfast/f1") == repo.git("rev-parse", "main")
    repo.git("update-ref", "refs/heads/holdfast/f1", old)
    assert task.ask("retry").returncode == 0
    task.wait_for("completed", within_s=WITHIN_S)


def test_kills_of_runner_conductor_and_keeper_lose_nothing(home: str) -> None:
    repo = project()
    names = ("a", "b", "c")
    scenario = agent(*((name, f"sleep 1; echo {name} > {name}.txt") for name in names))
    task = start(repo, scenario, plan(*map(item, names)))
    eventually(lambda: os.path.exists(f"{task.packet}.c"), 30, "its tasks exist")
    conductor = task.agent_pid()
    os.kill(conductor, signal.SIGKILL)
    task.kill_runner()
    keepers.kill(home)
    task.wait_for("completed", within_s=WITHIN_S)
    merges = repo.git("log", "--first-parent", "--merges", "--format=%s", "holdfast/f1").splitlines()
    assert sorted(merges) == [f"Merge holdfast/f1.{name}: do {name}" for name in names]


def test_a_fan_out_of_the_python_api_is_removed_with_its_tasks() -> None:
    repo = project()
    scenario = agent(("a", "echo a > a.txt"), ("b", "echo b > b.txt"))
    path = scenario.write_to(os.path.join(workspace(), "scenario.json"))
    items = {"schema": "holdfast.plan/1", "items": [item("a"), item("b")]}
    task = holdfast_api.fan_out(
        items,
        id="f1",
        agent="scripted",
        options={"scenario": str(path)},
        project=repo.path,
        send_back=1,
    )
    holdfast_api.wait([task], timeout_s=WITHIN_S)
    assert sorted(each.id for each in holdfast_api.tasks(labels={"fan-out": "f1"})) == ["f1", "f1.a", "f1.b"]
    with pytest.raises(holdfast_api.HoldfastError, match="cannot be used"):
        holdfast_api.fan_out({"items": []}, agent="scripted")
    # The work of an item that was merged is on the branch, which stays with its fan-out. An archived item is
    # removed like the others.
    assert holdfast("archive", "f1.a").returncode == 0
    done = holdfast("rm", "--items", "f1")
    assert done.returncode == 3, done.stderr
    assert sorted(each.id for each in holdfast_api.tasks()) == ["f1"]
    assert holdfast("ls", "--archived", "-q").stdout == ""
    done = holdfast("rm", "--items", "--force", "f1")
    assert done.returncode == 0, done.stderr
    assert holdfast_api.tasks() == []
