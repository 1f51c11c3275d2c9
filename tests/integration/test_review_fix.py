"""From reviews side by side to fixes in their order; a reviewer who asks for a person; a plan that becomes a
task."""

from __future__ import annotations

import json
import os

import pytest

from tests.support.packets import PACK, REPORTS, StandIns, Written, brief, calls, gate, summary
from tests.support.tasks import Task, holdfast

pytestmark = pytest.mark.usefixtures("home")

STAGES = [
    "gemini_review",
    "codex_review",
    "gemini_security_review",
    "copilot_review_consolidate",
    "codex_fix",
    "codex_verify",
]


def review(findings: str, more: str = "") -> str:
    return REPORTS["review"].replace("nothing to say", findings, 1) + more


def findings(task: Task) -> str:
    return task.read("outputs", "_findings.md").decode()


def prompt(task: Task, stage: str) -> str:
    (call,) = calls(task, stage)
    return task.read("attempts", f"{call['attempt']:03d}-{stage}", "prompt").decode()


@pytest.mark.req("PIP-13")
def test_findings_are_merged_and_fixed_in_their_order() -> None:
    stand_ins = StandIns(
        STAGES,
        gemini_review=review("- minor — b.txt:9 — a typo\n- major — b.txt:3 — it is lost"),
        codex_review=review("- [blocker] b.txt:3: It is lost.\n- token hunter2hunter2 is in a.txt:1"),
        gemini_security_review=review("- major — a.txt:1 — anybody may read it"),
        copilot_review_consolidate=review(
            "- major — a.txt:1 — open to all\n- blocker — b.txt:3 — lost\n- dropped — b.txt:9 — fine"
        ),
    )
    # The input of the consolidation is in the packet before its own report replaces the list.
    kept = os.path.join(stand_ins.folder, "merged.md")
    home = os.environ["HOLDFAST_HOME"]
    stand_ins.tell("copilot_review_consolidate.sh", f"cp {home}/tasks/it/outputs/_findings.md {kept}\n")
    packet = Written(
        intent="safe_impl",
        routing={
            "intent": "safe_impl",
            "pipeline": {"profile": "review_fix", "options": {"security_lens": "always"}},
        },
        security={"redaction_patterns": ["hunter2\\w*"]},
    )
    task = packet.start(env=stand_ins.env)
    task.wait_for("completed", within_s=60)
    assert sorted(event["stage"] for event in calls(task)) == sorted(STAGES)
    with open(kept, encoding="utf-8") as file:
        merged = file.read()
    places = [line.split(" — ")[0] for line in merged.splitlines() if line[:1].isdigit() and " — " in line]
    assert places == [
        "1. **blocker** `b.txt:3`",
        "2. **major** `a.txt:1`",
        "3. **unrated** `a.txt:1`",
        "4. **minor** `b.txt:9`",
    ]
    assert "(gemini_review, codex_review)" in merged
    assert "hunter2" not in merged
    told = prompt(task, "copilot_review_consolidate")
    assert merged.strip() in told
    assert "gemini_security_review.gemini.out" in told
    # The consolidation decides: findings that it dropped are not fixed.
    last = findings(task)
    assert (
        "1. **blocker** `b.txt:3` — lost (copilot_review_consolidate)\n2. **major** `a.txt:1` — open" in last
    )
    assert "b.txt:9" not in last
    told = prompt(task, "codex_fix")
    assert last.strip() in told
    assert "in the order of their numbers" in told
    assert "codex_fix.codex.out" in prompt(task, "codex_verify")
    checks = [check["name"] for check in gate(task, "codex_fix")["checks"]]
    assert checks == ["report", "headings", "patch", "scope"]
    summary(task)


@pytest.mark.req("PIP-13")
def test_a_reviewer_has_a_person_asked_before_the_next_stage() -> None:
    reports = {
        "scripted_review": review("- blocker — a.txt:1 — gone", "STOP_AND_CONFIRM: the data may be gone\n"),
        "scripted_static_verify": None,
        "scripted_fix": None,
        "scripted_verify": None,
    }
    waves = [{"parallel": ["scripted_review", "scripted_static_verify"]}, "scripted_fix", "scripted_verify"]
    packet = Written(reports, waves=waves)
    task = packet.start()
    manifest = task.wait_for("interrupted", within_s=40)
    assert manifest["interrupt"]["approval"] == "scripted_fix"
    assert "scripted_review asks to stop and confirm: the data may be gone" in manifest["status_reason"]
    assert calls(task, "scripted_fix") == []
    assert "- next_action: **approve**" in summary(task)
    assert task.ask("resume").returncode == 3
    assert task.ask("approve", "-m", "go on, there is a copy").returncode == 0
    # Once: the stage after the next one is not asked about again.
    task.wait_for("completed", within_s=40)
    assert len(task.events("approval.given")) == 1
    assert "there is a copy" in prompt(task, "scripted_fix")
    # After another review, the question is a new one.
    os.unlink(os.path.join(packet.project.path, "b.txt"))
    assert task.ask("retry", "--from", "scripted_review").returncode == 0
    task.wait_for_event("run.opened")
    task.wait_for("interrupted", within_s=40)
    assert task.ask("reject", "-m", "no").returncode == 0
    task.wait_for("killed")


@pytest.mark.req("PIP-11", "PKT-18")
def test_what_the_plan_pipeline_writes_becomes_a_task() -> None:
    plan = (
        "# Plan: say hello\n\n## Goal\n\nb.txt says hello.\n\n## Scope\n\nb.txt\n\n"
        "## Steps\n\n1. Write it.\n\n"
        "## Acceptance\n\n- b.txt says hello\n\n## Verify Commands\n\n```bash\ngrep -q hello b.txt\n```\n"
    )
    planning = [
        "copilot_plan_draft",
        "codex_plan_enrich",
        "gemini_plan_enrich",
        "codex_plan_review",
        "copilot_plan_consolidate",
    ]
    doing = ["gemini_brief", "codex_impl", "codex_verify", "gemini_review"]
    stand_ins = StandIns(
        [*planning, *doing],
        copilot_plan_consolidate=plan,
        gemini_brief=brief("grep -q hello b.txt", pack=PACK),
    )
    packet = Written(
        intent="design_only",
        routing={"intent": "design_only", "pipeline": {"profile": "plan"}},
        acceptance={"commands": []},
    )
    task = packet.start(env=stand_ins.env)
    task.wait_for("completed", within_s=60)
    for stage in planning[:4]:
        assert f"{stage}.{stage.partition('_')[0]}.out" in prompt(task, "copilot_plan_consolidate")
    written = task.path("outputs", "copilot_plan_consolidate.copilot.out")
    folder = os.path.join(os.path.dirname(packet.path), "packet-done")
    words = ("--id", "done", "--intent", "safe_impl", "--from-plan", written, "--allow", "b.txt")
    made = holdfast("new", folder, *words, "--project", packet.project.path)
    assert made.returncode == 0, made.stderr
    shown = json.loads(holdfast("pipeline", "show", folder, "--json", env=stand_ins.env).stdout)
    assert shown["acceptance_commands"] == ["grep -q hello b.txt"]
    assert shown["acceptance_criteria"] == ["b.txt says hello"]
    # An agent wrote the plan, and so its commands.
    assert holdfast("trust", folder, "--yes", env=stand_ins.env, cwd=packet.project.path).returncode == 0
    done = holdfast("run", "--packet", folder, env=stand_ins.env, cwd=packet.project.path)
    assert done.returncode == 0, done.stderr
    second = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "done"))
    assert "1. Write it." in prompt(second, "codex_impl")
    assert "say hello" in summary(second).splitlines()[0]
    with open(os.path.join(packet.project.path, "b.txt"), encoding="utf-8") as file:
        assert file.read() == "hello\n"
