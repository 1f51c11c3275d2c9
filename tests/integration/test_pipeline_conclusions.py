"""What reviewers and verifiers conclude reaches every reader, and reviewers get the facts."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.testing import Scenario
from tests.support.packets import REPORTS, Written, calls, gate, summary
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, workspace

pytestmark = pytest.mark.usefixtures("home")


def review(findings: str, more: str = "") -> str:
    return REPORTS["review"].replace("nothing to say", findings, 1) + more


def prompt(task: Task, stage: str) -> str:
    (call,) = calls(task, stage)
    return task.read("attempts", f"{call['attempt']:03d}-{stage}", "prompt").decode()


@pytest.mark.parametrize(
    ("last", "report", "text"),
    [
        ("scripted_review", review("- blocker — b.txt:1 — it is lost\n- minor — b.txt:1 — x"), "1 blocker"),
        ("scripted_review", review("None.", "STOP_AND_CONFIRM: is there a copy?\n"), "is there a copy?"),
        ("scripted_static_verify", REPORTS["static_verify"].replace("nothing", "No-Go. Nothing"), "no-go"),
        ("scripted_verify", "## Verdict\n\nfailed: b.txt is empty\n", "failed"),
    ],
)
def test_an_objection_is_told_everywhere(last: str, report: str, text: str) -> None:
    packet = Written({"scripted_impl": None, last: report}, workspace="worktree")
    packet.project.commit()
    task = packet.start()
    manifest = task.wait_for("completed", within_s=40)
    (concern,) = manifest["concerns"]
    assert concern["stage"] == last
    assert text in concern["text"]
    assert holdfast("wait", task.id).returncode == 4
    assert text in holdfast("wait", task.id).stdout
    assert text in holdfast("ls", env={"COLUMNS": "250"}).stdout
    shown = holdfast("show", task.id, env={"COLUMNS": "250"}).stdout
    assert f"{last}: {concern['text']}" in shown
    assert "next      holdfast show it --findings" in shown
    assert "apply" not in shown
    assert text in holdfast("report").stdout
    text_of_summary = summary(task)
    assert "- next_action: **read_findings**" in text_of_summary
    assert concern["text"] in text_of_summary
    # What is recommended works.
    findings = holdfast("show", task.id, "--findings")
    assert findings.returncode == 0
    assert "outputs/" in findings.stdout
    # A person may apply it all the same, and is told.
    applied = holdfast("apply", task.id, cwd=packet.project.path)
    assert applied.returncode == 0, applied.stderr
    assert f"warning: there are objections: {last}: {concern['text']}" in applied.stderr


def test_a_finding_that_is_no_objection_is_among_the_next_commands() -> None:
    stages = {"scripted_impl": None, "scripted_review": review("- minor — b.txt:1 — a typo")}
    task = Written(stages).start()
    assert "concerns" not in task.wait_for("completed", within_s=40)
    assert holdfast("wait", task.id).returncode == 0
    assert "holdfast show it --findings   read what its reviewers found" in holdfast("show", task.id).stdout
    assert "a typo" in holdfast("show", task.id, "--findings").stdout


def test_an_approval_that_was_given_is_no_open_question() -> None:
    task = Written({"scripted_brief": None, "scripted_impl": None}, approval=["scripted_impl"]).start()
    task.wait_for("interrupted", within_s=40)
    assert "holdfast approve it" in holdfast("show", "it").stdout
    task.ask_patiently("approve")
    task.wait_for("completed", within_s=40)
    texts = (summary(task), holdfast("report").stdout, holdfast("show", "it").stdout, task.log())
    for text in texts:
        words = " ".join(text.split())
        assert "scripted_impl waited for approval" in words
        assert "approved by" in words
        assert "holdfast approve" not in words


def test_what_was_fixed_is_history() -> None:
    stages = {
        "scripted_review": review("- blocker — a.txt:1 — it is lost"),
        "scripted_fix": None,
        "scripted_verify": "## Verdict\n\npassed\n",
    }
    task = Written(stages).start()
    manifest = task.wait_for("completed", within_s=40)
    assert "concerns" not in manifest
    assert [stage.get("findings") for stage in manifest["stages"]] == [{"blocker": 1}, None, None]
    assert manifest["stages"][2]["decision"] == "passed"
    assert holdfast("wait", task.id).returncode == 0


@pytest.mark.parametrize(("limit", "status"), [("major", "failed"), (None, "completed")])
def test_a_packet_may_limit_the_severity_of_findings(limit: str | None, status: str) -> None:
    stages = {"scripted_impl": None, "scripted_review": review("- blocker — b.txt:1 — it is lost")}
    more = {"gate": {"max_severity": limit}} if limit else {}
    task = Written(stages, **more).start()
    manifest = task.wait_for(status, within_s=40)
    assert gate(task, "scripted_review")["passed"] is (limit is None)
    if limit:
        assert gate(task, "scripted_review")["failed"] == "severity"
        assert "findings worse than major: 1 blocker" in manifest["status_reason"]


def test_a_reviewer_gets_the_diff_and_the_results_of_the_commands() -> None:
    project = Repo(os.path.join(workspace(), "repository"))
    project.write("below/a.txt", "one\n")
    project.commit()
    below = Repo.__new__(Repo)
    below.path = os.path.join(project.path, "below")
    scenario = Scenario().write("b.txt", content="hello from the agent\n")
    scenario.say("Done.").result("ok")
    stages = {"scripted_impl": scenario, "scripted_verify": None, "scripted_review": None}
    packet = Written(
        stages, project=below, acceptance={"commands": ["echo proof-of-$((40 + 2))"], "criteria": []}
    )
    task = packet.start()
    task.wait_for("completed", within_s=40)
    told = prompt(task, "scripted_review")
    assert "+hello from the agent" in told
    assert "proof-of-42" in told
    assert "+hello from the agent" in prompt(task, "scripted_verify")
    assert "_changes.patch" in told


def test_a_task_that_changed_nothing_is_not_said_to_have_changed_files() -> None:
    scenario = Scenario().say("No changes required.").result("ok")
    task = Written({"scripted_impl": scenario}, acceptance={"commands": [], "criteria": []}).start()
    task.wait_for("completed", within_s=40)
    assert "- next_action: **none**" in summary(task)
    assert "changed files" not in summary(task)


def test_a_failed_task_does_not_speak_of_exit_code_0() -> None:
    scenario = Scenario().say("I did nothing.").result("ok")
    task = Written({"scripted_impl": scenario}, budgets={"retry_budget": 0}).start()
    task.wait_for("failed", within_s=40)
    assert json.loads(holdfast("show", task.id, "--json").stdout)["exit_code"] == 0
    for text in (holdfast("show", task.id).stdout, summary(task), holdfast("attach", task.id).stderr):
        assert "exit code 0" not in text


def test_the_summary_shows_what_a_failing_command_printed_and_where_the_rest_is() -> None:
    command = "for n in $(seq 1 300); do echo line-$n of the test; done; exit 3"
    packet = Written(
        {"scripted_impl": None, "scripted_verify": None},
        acceptance={"commands": [command], "criteria": []},
        budgets={"retry_budget": 0},
    )
    task = packet.start()
    task.wait_for("failed", within_s=60)
    text = summary(task)
    assert "line-1 of the test" in text
    assert "`outputs/scripted_verify.artifact.md`" in text
    assert "line-300 of the test" in task.read("outputs", "scripted_verify.artifact.md").decode()
