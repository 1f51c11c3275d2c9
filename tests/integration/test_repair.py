"""Work that a gate refuses goes back to the agent's session with the evidence, within budgets."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest

from holdfast import clock
from holdfast.testing import Scenario
from tests.support.packets import REPORTS, WORK, Written, calls, gate, played
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace

pytestmark = pytest.mark.usefixtures("home")

IMPL, VERIFY = "scripted_impl", "scripted_verify"


def project() -> Repo:
    repo = Repo(os.path.join(workspace(), "project"))
    repo.commit("README.md")
    return repo


def wrong_then(*contents: str) -> Scenario:
    """An implementation that writes the next of these in each of its calls."""
    counter = os.path.join(workspace(), "calls")
    command = (
        f"n=$(cat {counter} || echo 0); echo $((n + 1)) > {counter}; "
        f"set -- {' '.join(contents)}; shift $n; echo $1 > {WORK}"
    )

    return Scenario(on_resume="restart").tool("sh", command=command).say(REPORTS["impl"]).result("ok")


def prompts(task: Task, stage: str) -> list[str]:
    """The prompts of a stage's calls, in order."""
    numbers = [call["attempt"] for call in calls(task, stage)]
    folders = [path for path in task.attempts() if int(os.path.basename(path)[:3]) in numbers]
    found: list[str] = []
    for folder in folders:
        with open(os.path.join(folder, "prompt"), encoding="utf-8") as file:
            found.append(file.read())
    return found


def packet(stages: dict[str, Any], command: str = "cat b.txt; grep -q good b.txt", **more: Any) -> Written:
    return Written(
        stages,
        project=project(),
        repairs=more.pop("repairs", 2),
        acceptance={"commands": [command], "criteria": []},
        **more,
    )


@pytest.mark.req("GAT-10")
def test_failed_acceptance_goes_back_to_the_session_of_the_implementation() -> None:
    task = packet({IMPL: wrong_then("bad", "good"), VERIFY: None, "scripted_review": None}).run()
    first, second = calls(task, IMPL)
    assert (second["mode"], second["session_id"]) == ("resume", first["session_id"])
    told = prompts(task, IMPL)[1]
    assert "`cat b.txt; grep -q good b.txt` failed with exit status 1" in told
    assert "$ cat b.txt; grep -q good b.txt\nbad" in told
    assert task.path("outputs", f"{VERIFY}.artifact.md") in told
    # The verification judges what is new, in a new session.
    assert [call["mode"] for call in calls(task, VERIFY)] == ["fresh", "fresh"]
    assert len(calls(task, "scripted_review")) == 1
    (planned,) = task.events("repair.planned")
    assert (planned["stage"], planned["failed_stage"], planned["number"]) == (IMPL, VERIFY, 1)
    assert task.manifest()["paid_calls"] == 5
    # Someone who follows it reads why the implementation begins again.
    refused = "refused the work (repair 1): `cat b.txt; grep -q good b.txt` failed with exit status 1: bad"
    marks = [line for line in task.log().splitlines() if line.startswith("--- ")]
    assert marks == [
        f"--- attempt 1 ({IMPL}, fresh) ---",
        f"--- attempt 2 ({VERIFY}, fresh) ---",
        f"--- the gate of {VERIFY} {refused} ---",
        f"--- attempt 3 ({IMPL}, resume) ---",
        f"--- attempt 4 ({VERIFY}, fresh) ---",
        "--- attempt 5 (scripted_review, fresh) ---",
    ]
    assert task.log().startswith(marks[0])


def test_a_repair_that_crashes_is_announced_once() -> None:
    counter = os.path.join(workspace(), "calls")
    command = (
        f"n=$(cat {counter} || echo 0); echo $((n + 1)) > {counter}; "
        f"case $n in 0) echo bad > {WORK};; 1) kill -9 $PPID;; *) echo good > {WORK};; esac"
    )
    impl = Scenario(on_resume="restart").tool("sh", command=command).say(REPORTS["impl"]).result("ok")
    task = packet({IMPL: impl}).run()
    assert [call["mode"] for call in calls(task, IMPL)] == ["fresh", "resume", "resume"]
    marks = [line for line in task.log().splitlines() if line.startswith("--- ")]
    assert [mark.split()[1:4] for mark in marks] == [
        ["the", "gate", "refused"],
        ["attempt", "2", "(resume)"],
        ["attempt", "2", "ended:"],
        ["attempt", "3", "(resume)"],
    ]


def test_the_agent_is_told_how_the_output_began_and_how_it_ended() -> None:
    """Test runners print their summary at the end."""
    long = "seq -f 'line %g' 100; echo; echo '====== 1 failed in 3s ======'; grep -q good b.txt"
    task = packet({IMPL: wrong_then("bad", "good"), VERIFY: None}, command=long).run()
    told = prompts(task, IMPL)[1]
    assert "failed with exit status 1: 1 failed in 3s\n" in told
    assert "\nline 1\nline 2\n" in told
    assert "\n[… 72 lines left out …]\n" in told
    assert "\nline 83\n" in told
    assert "\nline 100\n\n====== 1 failed in 3s ======\n" in told


@pytest.mark.req("GAT-10")
def test_without_a_verify_stage_the_stage_that_wrote_repairs_its_own_work() -> None:
    task = packet({IMPL: wrong_then("bad", "good")}).run()
    assert [call["mode"] for call in calls(task, IMPL)] == ["fresh", "resume"]


def test_a_missing_heading_goes_back_to_the_one_who_wrote_the_report() -> None:
    review = Scenario().say("## Findings\n\nnone\n").result("ok")
    review.resumed(Scenario().say(REPORTS["review"]).result("ok"))
    task = packet({IMPL: wrong_then("good"), "scripted_review": review}).run()
    assert [call["mode"] for call in calls(task, "scripted_review")] == ["fresh", "resume"]
    assert len(calls(task, IMPL)) == 1
    assert "Test gaps" in prompts(task, "scripted_review")[1]


def test_repairs_end_after_their_number_and_the_recommended_command_sends_it_back_again() -> None:
    written = packet({IMPL: wrong_then("bad", "worse", "worst", "good"), VERIFY: None})
    task = written.run(end="failed")
    assert len(calls(task, IMPL)) == 3
    assert len(task.events("repair.planned")) == 2
    failure = task.json("state", "last_failure.json")
    assert failure["next_action"]["name"] == "fix_contract"
    words = failure["next_action"]["then"].replace("'WHAT IS MISSING'", "make-it-good").split()[1:]
    done = holdfast(*words)
    assert done.returncode == 0, done.stderr
    task.wait_for("completed", within_s=40)
    last = prompts(task, IMPL)[-1]
    assert calls(task, IMPL)[-1]["mode"] == "resume"
    assert "make-it-good" in last
    assert "grep -q good b.txt` failed" in last


def test_all_views_agree_on_what_the_gates_refused_and_how_long_the_stages_took() -> None:
    again = Scenario().tool("sh", command=f"rm -f {WORK}").say(REPORTS["impl"]).result("ok")
    impl = Scenario().tool("sh", command=f"echo bad > {WORK}").say(REPORTS["impl"]).result("ok")
    written = packet({IMPL: impl.resumed(again), VERIFY: None})
    done = holdfast("run", "--packet", written.path, cwd=written.project.path)
    assert done.returncode == 1, done.stderr
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "it"))
    # The gate of the verification ran the commands; that of the implementation then found no change.
    assert [judged["stage"] for judged in task.events("gate.judged")] == [IMPL, VERIFY, IMPL, IMPL, IMPL]
    assert task.manifest()["status_reason"].startswith(f"the gate of {IMPL} did not pass after 2 repairs: ")
    assert task.manifest()["status_reason"].endswith(" (contract_violation)")
    # Without a terminal, too, a line says why the work goes back.
    back = f"it: the gate of {VERIFY} refused the work, which goes back to {IMPL}: `cat b.txt; grep"
    assert sum(line.startswith(back) for line in done.stderr.splitlines()) == 1
    assert f"it: the gate of {IMPL} refused the work: " in done.stderr
    shown = holdfast("show", "it").stdout
    assert f"accept    1 command, failed in {VERIFY}, not run since (outputs/{VERIFY}.artifact.md)" in shown
    # One definition of a stage's time: with its gates, in all of its calls.
    lived_s = 0.0
    opened = {event["attempt"]: event["stage"] for event in task.events("attempt.opened")}
    for event in task.events("attempt.ended"):
        lived_s += event["lived_s"] if opened[event["attempt"]] == IMPL else 0.0
    (row,) = (stage for stage in task.manifest()["stages"] if stage["name"] == IMPL)
    assert row["worked_s"] == pytest.approx(lived_s, abs=0.01)
    took = clock.duration_text(row["worked_s"])
    assert re.search(rf"{IMPL} +failed +{re.escape(took)} +4 calls", shown), shown
    assert f"exit 0, {took}, 4 attempts, " in task.read("outputs", "_summary.md").decode()
    told = [float(seconds) for seconds in re.findall(rf"{IMPL} \w+ after ([\d.]+)s", done.stderr)]
    assert sum(told) == pytest.approx(row["worked_s"], abs=0.2)


def test_a_repair_is_a_paid_call() -> None:
    budgets = {"retry_budget": 2, "paid_call_budget": 2, "max_wallclock_sec": 60}
    task = packet({IMPL: wrong_then("bad", "good"), VERIFY: None}, budgets=budgets).start()
    manifest = task.wait_for("interrupted", within_s=40)
    assert "paid calls" in manifest["interrupt"]["reason"]
    # The budget does not hide what was refused; and a repair that did not begin is none.
    refused = f"the gate of {VERIFY} refused the work: `cat b.txt; grep -q good b.txt` failed"
    assert refused in manifest["interrupt"]["reason"]
    assert repairs_of(task) == (0, 0, False)
    assert len(calls(task)) == 2
    # The recommended command grants as much again, and the repair continues.
    assert task.ask("resume").returncode == 0
    task.wait_for("completed", within_s=40)
    assert calls(task, IMPL)[-1]["mode"] == "resume"
    assert repairs_of(task) == (1, 1, True)
    assert "(repair 1)" in task.log()
    assert "repairs: 1" in task.read("outputs", "_summary.md").decode()


def repairs_of(task: Task) -> tuple[int, int, bool]:
    """The repairs of a task: in the manifest, in the report, and whether `show` has a row of them."""
    report = json.loads(holdfast("report", "--json").stdout)
    rows = [row["repairs"] for row in report["ended"] if row["task_id"] == task.id]
    shown = any(line.startswith("repairs") for line in holdfast("show", task.id).stdout.splitlines())
    return len(task.manifest().get("repairs") or ()), sum(rows), shown


def test_a_plain_task_names_budget_and_refusal() -> None:
    scenario = Scenario().usage(cost_usd=2.0).result("done")
    task = Task.play(scenario, "--accept", "grep -q good b.txt", "--budget-usd", "1", project=project().path)
    reason = task.wait_for("interrupted", within_s=40)["interrupt"]["reason"]
    assert reason.startswith("its budget is used up: $2.00 of $1.00, and the gate of scripted_run refused")
    assert "grep -q good b.txt" in reason
    assert repairs_of(task) == (0, 0, False)
    task.stop()


def test_a_profile_or_a_packet_may_turn_it_off() -> None:
    task = packet({IMPL: wrong_then("bad", "good"), VERIFY: None}, repairs=0).run(end="failed")
    assert len(calls(task, IMPL)) == 1
    assert gate(task, VERIFY)["failed"] == "acceptance"


def test_back_to_names_a_stage_that_writes() -> None:
    stages = {IMPL: played("impl"), VERIFY: None}
    written = packet(stages, routing={"intent": "safe_impl", "pipeline": {"on_fail": {"back_to": VERIFY}}})
    done = holdfast("pipeline", "check", written.path)
    assert done.returncode == 2
    assert "routing.pipeline.on_fail.back_to" in done.stderr
