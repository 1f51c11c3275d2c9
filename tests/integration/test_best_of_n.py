"""Best of N: candidates in worktrees of their own, gates that eliminate, a judge that chooses."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from holdfast.testing import Scenario
from tests.support.packets import REPORTS, WORK, Written, calls, gate, stages_of, summary
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace
from tests.support.tools import need_sandbox

pytestmark = pytest.mark.usefixtures("home")

IMPL, VERIFY, REVIEW, JUDGE = "scripted_impl", "scripted_verify", "scripted_review", "scripted_judge"


def wrote(content: str, *, path: str = WORK) -> Scenario:
    """An implementation that writes this."""
    return Scenario().write(path, content=f"{content}\n").say(REPORTS["impl"]).result("ok")


def chose(text: str) -> Scenario:
    """A judge that says this under its heading."""
    return Scenario().say(f"## Choice\n\n{text}\n\n## Comparison\n\nnothing to say\n").result("ok")


def packet(
    *candidates: Scenario, judge: Scenario | None = None, more: dict[str, Any] | None = None, **manifest: Any
) -> Written:
    """A stage with one attempt per scenario."""
    repo = Repo(os.path.join(workspace(), "project"))
    repo.commit("README.md")
    stages = {**manifest.pop("before", {}), IMPL: None, **(more or {})}
    written = Written(
        stages,
        project=repo,
        workspace="worktree",
        acceptance={"commands": [manifest.pop("command", "grep -q good b.txt")], "criteria": []},
        repairs=manifest.pop("repairs", 0),
        **manifest,
    )
    options = written.manifest["routing"]["options"]
    for number, scenario in enumerate(candidates, start=1):
        scenario.write_to(os.path.join(written.path, f"{number}.json"))
        options[f"{IMPL}-{number}"] = {"scenario": f"{number}.json"}
    (judge or Scenario().exit(1)).write_to(os.path.join(written.path, "judge.json"))
    options[JUDGE] = {"scenario": "judge.json"}
    written.manifest["routing"]["pipeline"]["attempts"] = {IMPL: len(candidates)}
    written.put("manifest.yaml", json.dumps(written.manifest, indent=2))
    return written


def result(task: Task) -> str:
    """The file in the task's worktree."""
    path = os.path.join(os.environ["HOLDFAST_HOME"], "worktrees", task.id, WORK)
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def stage(task: Task, name: str) -> dict[str, Any]:
    """A stage in the manifest."""
    return next(each for each in task.manifest()["stages"] if each["name"] == name)


@pytest.mark.req("GAT-12")
def test_gates_eliminate_and_a_judge_chooses_among_the_rest() -> None:
    written = packet(
        wrote("good one"), wrote("bad"), wrote("good three"), judge=chose("Candidate 3, it is better than 1.")
    )
    task = written.run()
    assert result(task) == "good three"
    assert stage(task, f"{IMPL}-2")["state"] == "eliminated"
    assert stage(task, f"{IMPL}-3")["is_chosen"]
    (eliminated,) = task.events("candidate.eliminated")
    assert "grep -q good b.txt` failed" in eliminated["reasons"][0]
    (chosen,) = task.events("candidate.chosen")
    assert (chosen["candidate"], chosen["by"]) == (3, "judge")
    # Every call counts, and the judge read only what survived.
    assert task.manifest()["paid_calls"] == 4
    (call,) = calls(task, JUDGE)
    prompt = task.read("attempts", f"{call['attempt']:03d}-{JUDGE}", "prompt").decode()
    assert "good one" in prompt
    assert "good three" in prompt
    assert "bad" not in prompt
    assert "grep -q good b.txt" in prompt
    assert f"candidate 1: `{IMPL}-1`" in prompt
    # The user's own tree is as it was, and each candidate can be read.
    assert not os.path.exists(os.path.join(written.project.path, WORK))
    for number, content in ((1, "good one"), (2, "bad"), (3, "good three")):
        done = holdfast("diff", task.id, "--candidate", str(number))
        assert f"+{content}" in done.stdout
    assert "+good three" in holdfast("diff", task.id).stdout
    assert "good three" in task.read("outputs", "_changes.patch").decode()
    assert holdfast("diff", task.id, "--candidate", "4").returncode == 3
    assert "eliminated" in summary(task)
    shown = holdfast("show", task.id).stdout
    assert "eliminated" in shown


def test_an_only_survivor_needs_no_judge() -> None:
    task = packet(wrote("bad"), wrote("good")).run()
    assert result(task) == "good"
    assert calls(task, JUDGE) == []
    (chosen,) = task.events("candidate.chosen")
    assert (chosen["candidate"], chosen["by"]) == (2, "gate")
    assert task.manifest()["paid_calls"] == 2


def test_if_none_survives_the_stage_fails_with_the_evidence_of_each() -> None:
    task = packet(wrote("bad"), wrote("good", path="other.txt")).run(end="failed")
    assert not task.events("candidate.eliminated")
    reason = task.manifest()["status_reason"]
    assert f"{IMPL}-1" in reason
    assert "grep -q good" in reason
    assert f"{IMPL}-2" in reason
    assert "other.txt" in reason
    assert calls(task, JUDGE) == []


def test_if_none_survives_repairs_come_first() -> None:
    again = wrote("good")
    task = packet(wrote("bad").resumed(again), wrote("bad"), repairs=1).run()
    assert result(task) == "good"
    assert [call["mode"] for call in calls(task, f"{IMPL}-1")] == ["fresh", "resume"]


@pytest.mark.parametrize("text", ["Candidate 2", "../../etc"])
def test_a_choice_that_is_no_survivor_is_refused(text: str) -> None:
    judge = chose(text)
    judge.resumed(chose("**Candidate 1**: it is short"))
    task = packet(wrote("good one"), wrote("bad"), wrote("good three"), judge=judge, repairs=1).run()
    assert result(task) == "good one"
    assert [call["mode"] for call in calls(task, JUDGE)] == ["fresh", "resume"]
    (planned,) = task.events("repair.planned")
    assert "must name one of 1, 3" in planned["reasons"][0]
    # The repair was the judge's.
    assert "accept    1 command, passed (" in holdfast("show", task.id).stdout


def test_later_stages_go_on_with_the_chosen_one_and_a_repair_goes_to_it() -> None:
    marker = os.path.join(workspace(), "judged")
    judge = Scenario().tool("sh", command=f"touch {marker}").say("## Choice\n\nCandidate 1\n").result("ok")
    first = (
        Scenario(on_resume="restart")
        .tool("sh", command=f"test -e {marker} && echo good repaired > {WORK} || echo good one > {WORK}")
        .say(REPORTS["impl"])
        .result("ok")
    )
    # It passes for the candidates, fails for the verification, and passes after the repair.
    command = f"grep -q good b.txt && {{ test ! -e {marker} || grep -q repaired b.txt; }}"
    task = packet(
        first,
        wrote("good two"),
        judge=judge,
        more={VERIFY: None, REVIEW: None},
        repairs=1,
        command=command,
    ).run()
    assert result(task) == "good repaired"
    assert [call["mode"] for call in calls(task, f"{IMPL}-1")] == ["fresh", "briefing"]
    assert len(calls(task, f"{IMPL}-2")) == len(calls(task, JUDGE)) == 1
    (review,) = calls(task, REVIEW)
    prompt = task.read("attempts", f"{review['attempt']:03d}-{REVIEW}", "prompt").decode()
    assert "good repaired" in prompt
    assert "good two" not in prompt


def test_a_crash_of_one_candidate_is_resumed_and_delays_the_judge() -> None:
    crashed = Scenario().crash("KILL", tries=1).write(WORK, content="good two\n").say("done").result("ok")
    task = packet(wrote("good one"), crashed, judge=chose("2")).run()
    assert result(task) == "good two"
    assert len(calls(task, f"{IMPL}-2")) == 2
    assert not task.events("candidate.eliminated")


def test_candidates_start_from_the_work_of_earlier_stages() -> None:
    first = Scenario().write("a.txt", content="early\n").say(REPORTS["runbook"]).result("ok")
    both = Scenario().tool("sh", command=f"cat a.txt > {WORK}; echo good >> {WORK}").say("done").result("ok")
    task = packet(
        both,
        wrote("bad"),
        scope={"allow": [WORK, "a.txt"], "deny": []},
        before={"scripted_runbook": first},
        writes=("scripted_runbook",),
    ).run()
    assert result(task) == "early\ngood"


def test_the_packet_is_checked() -> None:
    written = packet(wrote("good"), wrote("good"), more={VERIFY: None})
    assert [each["name"] for each in stages_of(written.path)] == [f"{IMPL}-1", f"{IMPL}-2", JUDGE, VERIFY]
    pipeline = written.manifest["routing"]["pipeline"]
    pipeline["judge"] = "nobody"
    pipeline["attempts"] = {VERIFY: 2}
    written.manifest["workspace"] = "in_place"
    written.put("manifest.yaml", json.dumps(written.manifest))
    done = holdfast("pipeline", "check", written.path)
    assert done.returncode == 2
    assert "unknown agent 'nobody'" in done.stderr
    assert f"{VERIFY} does not write" in done.stderr
    pipeline["attempts"] = {IMPL: 2}
    del pipeline["judge"]
    written.put("manifest.yaml", json.dumps(written.manifest))
    done = holdfast("pipeline", "check", written.path)
    assert "need a worktree each" in done.stderr


def test_removing_the_task_removes_the_worktrees_of_all_candidates() -> None:
    written = packet(wrote("good one"), wrote("good two"), judge=chose("1"))
    task = written.run()
    folder = os.path.join(os.environ["HOLDFAST_HOME"], "worktrees")
    assert len(os.listdir(folder)) == 3
    assert holdfast("rm", task.id).returncode != 0  # the work is not merged
    assert len(os.listdir(folder)) == 3
    assert holdfast("rm", "--force", task.id).returncode == 0
    assert os.listdir(folder) == []
    assert "holdfast/" not in written.project.git("branch", "--list")
    assert len(written.project.git("worktree", "list").splitlines()) == 1


def test_a_judge_again_chooses_another_one() -> None:
    written = packet(wrote("good one"), wrote("good two"), judge=chose("1"))
    task = written.run()
    assert result(task) == "good one"
    spec = task.events("task.created")[0]["spec"]
    options = next(each["options"] for each in spec["stages"] if each["name"] == JUDGE)
    chose("2").write_to(options["scenario"])
    assert holdfast("retry", task.id, "--from", JUDGE).returncode == 0
    task.wait_for("completed", within_s=40)
    assert result(task) == "good two"
    assert len(calls(task, f"{IMPL}-1")) == len(calls(task, f"{IMPL}-2")) == 1


def test_gate_result_names_the_tree() -> None:
    task = packet(wrote("good one"), wrote("good two"), judge=chose("1")).run()
    assert gate(task, f"{IMPL}-1")["tree"] == task.events("candidate.chosen")[0]["tree"]


def test_a_stop_ends_all_candidates_and_a_retry_continues_each_in_its_worktree() -> None:
    go = os.path.join(workspace(), "go")
    waiting = [
        Scenario().say("begun").wait_file(go).write(WORK, content=f"good {number}\n").say("done").result("ok")
        for number in (1, 2)
    ]
    written = packet(*waiting, judge=chose("2"))
    task = written.start()
    task.wait_for_event("agent.text", count=2, within_s=30)
    task.stop()
    task.wait_for("killed", within_s=30)
    with open(go, "w", encoding="utf-8"):
        pass
    assert holdfast("retry", task.id).returncode == 0
    task.wait_for("completed", within_s=60)
    assert result(task) == "good 2"
    assert [call["mode"] for call in calls(task, f"{IMPL}-1")] == ["fresh", "resume"]


def test_a_candidate_that_cannot_be_adopted_is_eliminated() -> None:
    nested = (
        Scenario()
        .tool("sh", command=f"echo good > {WORK}; git init -q inner; echo x > inner/x; git -C inner add x")
        .say("done")
        .result("ok")
    )
    task = packet(nested, wrote("good two"), scope={"allow": [WORK, "inner/"], "deny": []}).run()
    assert result(task) == "good two"
    (eliminated,) = task.events("candidate.eliminated")
    assert "cannot be adopted: inner" in eliminated["reasons"][0]


@pytest.mark.timeout(180)
def test_candidates_run_in_sandboxes() -> None:
    need_sandbox()
    other = os.path.join(os.environ["HOLDFAST_HOME"], "worktrees", "it.c1")
    peek = f"ls {other} > peeked.txt 2>&1; echo good two > {WORK}; rm peeked.txt; test ! -e {other}"
    second = Scenario().tool("sh", command=peek).say("done").result("ok")
    task = packet(wrote("good one"), second, judge=chose("2"), sandbox="on").run(within_s=120)
    assert result(task) == "good two"
