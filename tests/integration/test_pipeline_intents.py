"""Each intent runs its own stages to the end, with stand-ins for the programs; and what the stages leave and
hand on."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

import pytest

from holdfast.testing import Scenario
from tests.support.manifests import STAGES
from tests.support.packets import (
    PACK,
    REPORTS,
    WORK,
    StandIns,
    Written,
    brief,
    calls,
    gate,
    played,
    role_of,
    stages_of,
    summary,
)
from tests.support.tasks import Task, holdfast

pytestmark = pytest.mark.usefixtures("home")

#: Profiles that no intent is named after: intent, group's profile, stages.
PROFILES = {
    "codex_only": ("safe_impl", ["codex_brief", "codex_impl", "codex_verify", "codex_review"]),
    "review_fix": (
        "safe_impl",
        ["gemini_review", "codex_review", "copilot_review_consolidate", "codex_fix", "codex_verify"],
    ),
    "strict_review": (
        "review_cross",
        [
            "gemini_review",
            "codex_review",
            "copilot_review",
            "gemini_static_verify",
            "codex_verify",
            "copilot_review_consolidate",
        ],
    ),
    "plan": (
        "design_only",
        [
            "copilot_plan_draft",
            "codex_plan_enrich",
            "gemini_plan_enrich",
            "codex_plan_review",
            "copilot_plan_consolidate",
        ],
    ),
}


def prompt_of(task: Task, stage: str) -> str:
    tool, _, role = stage.partition("_")
    return task.read("inputs", "prompt", f"{tool}.{role}.md").decode()


def check_stage(task: Task, stage: str) -> None:
    """Everything that a stage that passed leaves."""
    tool = stage.partition("_")[0]

    def output(kind: str) -> bytes:
        return task.read("outputs", f"{stage}.{tool}.{kind}")

    (call,) = calls(task, stage)
    meta: dict[str, Any] = json.loads(output("meta.json"))
    assert (meta["stage"], meta["tool"], meta["role"]) == (stage, tool, role_of(stage))
    assert (meta["exit_code"], meta["outcome"], meta["attempt"]) == (0, "success", call["attempt"])
    assert meta["start"] <= meta["end"]
    assert meta["duration_sec"] >= 0
    directory = task.path("attempts", f"{call['attempt']:03d}-{stage}")
    with open(os.path.join(directory, "prompt"), "rb") as file:
        given = file.read()
    assert meta["prompt_sha256"] == hashlib.sha256(given).hexdigest()
    assert prompt_of(task, stage).encode() == given
    assert meta["prompt_sha256"] in output("compose.log").decode()
    assert output("out").decode().strip() == REPORTS[role_of(stage)].strip()
    assert f"({call['attempt_id']}) of {stage} by " in output("wrapper.log").decode()
    assert output("err") is not None
    verdict = gate(task, stage)
    assert (verdict["passed"], verdict["attempt"]) == (True, call["attempt"])
    kinds = [(event["type"], event.get("stage")) for event in task.events()]
    assert kinds.index(("gate.judged", stage)) < kinds.index(("stage.done", stage))
    assert task.json("done", f"{stage}.done")["attempt"] == call["attempt"]


@pytest.mark.req("PKT-14", "PKT-15", "PIP-2", "PIP-3", "GAT-1", "CON-2", "CON-3", "TST-7")
@pytest.mark.parametrize("intent", STAGES)
def test_an_intent_runs_its_stages(intent: str) -> None:
    stages = STAGES[intent]
    stand_ins = StandIns(stages)
    packet = Written(intent=intent, acceptance={"commands": ["test -d ."]})
    assert [stage["name"] for stage in stages_of(packet.path, stand_ins.env)] == stages
    done = holdfast("run", "--packet", packet.path, env=stand_ins.env, cwd=packet.project.path)
    assert done.returncode == 0, done.stderr
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", packet.task_id))
    assert [event["stage"] for event in calls(task)] == stages
    for stage in stages:
        assert stand_ins.times(stage) == 1
        check_stage(task, stage)
        # The person sees progress, and no output of the agent.
        assert len(stages) == 1 or f"{stage} started" in done.stderr
        assert len(stages) == 1 or f"{stage} completed" in done.stderr
    assert "nothing to say" not in done.stdout + done.stderr
    stats = task.json("state", "stats.json")
    assert (stats["paid_calls"], stats["completed_stages"]) == (len(stages), stages)
    assert stats["signatures"] == {}
    text = summary(task)
    for stage in stages:
        assert f"### {stage} ({stage.partition('_')[0]}/{role_of(stage)}) — done" in text
    assert f"- paid calls: {len(stages)} of 20" in text
    assert "\x1b" not in text + done.stdout + done.stderr


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_runs_its_stages(profile: str) -> None:
    intent, stages = PROFILES[profile]
    stand_ins = StandIns(stages)
    routing = {"intent": intent, "pipeline": {"profile": profile}}
    packet = Written(intent=intent, routing=routing, acceptance={"commands": ["test -d ."]})
    task = packet.start(env=stand_ins.env)
    task.wait_for("completed", within_s=40)
    assert sorted(event["stage"] for event in calls(task)) == sorted(stages)
    for stage in stages:
        check_stage(task, stage)
    summary(task)


# ── what is handed on ──


@pytest.mark.req("PIP-8", "GAT-2")
def test_a_brief_rewrites_the_pack_and_the_commands() -> None:
    report = brief("test -e b.txt", "grep -q hello b.txt", pack=PACK.replace("said by the brief", "NEW PACK"))
    packet = Written({"scripted_brief": report, "scripted_impl": None, "scripted_verify": None})
    packet.put("inputs/context_pack.md", PACK.replace("said by the brief", "OLD PACK"))
    task = packet.run()
    assert "NEW PACK" in task.read("inputs", "context_pack.md").decode()
    assert task.read("state", "acceptance.commands.override") == b"test -e b.txt\ngrep -q hello b.txt\n"
    assert "OLD PACK" in prompt_of(task, "scripted_brief")
    assert "NEW PACK" in prompt_of(task, "scripted_impl")
    assert "OLD PACK" not in prompt_of(task, "scripted_impl")
    artifact = task.read("outputs", "scripted_verify.artifact.md").decode()
    assert "## $ grep -q hello b.txt" in artifact
    assert "proposed by the brief" in artifact
    # The inputs were not changed.
    with open(os.path.join(packet.path, "inputs", "context_pack.md"), encoding="utf-8") as file:
        assert "OLD PACK" in file.read()


@pytest.mark.req("PIP-9")
def test_a_brief_without_commands_drops_stale_ones() -> None:
    packet = Written(
        {
            "scripted_brief": played("brief", brief("test -e b.txt")),
            "scripted_impl": None,
            "scripted_verify": None,
        }
    )
    task = packet.run()
    override = task.path("state", "acceptance.commands.override")
    assert os.path.exists(override)
    # The scenario is read when the stage starts: this brief proposes nothing.
    played("brief").write_to(os.path.join(packet.path, "scripted_brief.json"))
    os.unlink(os.path.join(packet.project.path, WORK))
    assert task.ask("retry", "--from", "scripted_brief").returncode == 0
    task.wait_for_event("run.opened")
    task.wait_for("completed", within_s=30)
    assert not os.path.exists(override)
    # A stage that runs again starts a new session: its prompt may have changed.
    assert [event["mode"] for event in calls(task, "scripted_brief")] == ["fresh", "fresh"]
    assert "from the manifest" in task.read("outputs", "scripted_verify.artifact.md").decode()


@pytest.mark.req("PIP-2")
def test_a_consolidation_gets_the_reviews_before_it() -> None:
    stages = STAGES["review_cross"]
    reports = {
        "gemini_review": REPORTS["review"].replace("nothing to say", "the wide view", 1),
        "codex_review": REPORTS["review"].replace("nothing to say", "the close view", 1),
    }
    stand_ins = StandIns(stages, **reports)
    packet = Written(intent="review_cross", acceptance={"commands": []})
    task = packet.start(env=stand_ins.env)
    task.wait_for("completed", within_s=30)
    told = prompt_of(task, "copilot_review_consolidate")
    assert "the wide view" in told
    assert "the close view" in told
    assert "gemini_review.gemini.out" in told
    assert "the wide view" not in prompt_of(task, "codex_review")


# ── side by side ──


@pytest.mark.req("PIP-13", "SUP-17")
def test_stages_side_by_side_overlap_and_are_joined() -> None:
    stages = PROFILES["strict_review"][1]
    stand_ins = StandIns(stages)
    tools = ("gemini", "codex", "copilot")
    everybody = " && ".join(f"test -e {stand_ins.folder}/here-{tool}" for tool in tools)
    for tool in tools:
        # Each exits only when all have started: in sequence they would wait for ever.
        wait = f"touch {stand_ins.folder}/here-{tool}\nuntil {everybody}; do sleep 0.02; done\n"
        stand_ins.tell(f"{tool}_review.sh", wait)
    routing = {"intent": "review_cross", "pipeline": {"profile": "strict_review"}}
    packet = Written(intent="review_cross", routing=routing, acceptance={"commands": ["test -d ."]})
    task = packet.start(env=stand_ins.env)
    task.wait_for("completed", within_s=40)
    metas = [task.json("outputs", f"{tool}_review.{tool}.meta.json") for tool in tools]
    assert max(meta["start"] for meta in metas) < min(meta["end"] for meta in metas)
    # The barrier: later stages start when all three have passed their gates.
    kinds = [(event["type"], event.get("stage")) for event in task.events()]
    behind = kinds.index(("attempt.opened", "gemini_static_verify"))
    assert all(kinds.index(("stage.done", f"{tool}_review")) < behind for tool in tools)
    for tool in tools:
        assert f"{tool}_review.{tool}.out" in prompt_of(task, "copilot_review_consolidate")


@pytest.mark.req("SUP-17", "W-B2")
def test_a_straggler_is_stopped_at_the_barrier() -> None:
    stages = {"scripted_review": None, "scripted_static_verify": Scenario().say("thinking").hang()}
    waves = [{"parallel": list(stages), "timeout_sec": 2}]
    packet = Written(
        stages,
        intent="review_only",
        group="review",
        waves=waves,
        budgets={"retry_budget": 0, "on_limit": "end"},
    )
    task = packet.start()
    task.wait_for("abandoned", "failed", within_s=30)
    (late,) = calls(task, "scripted_static_verify")
    ended = next(event for event in task.events("attempt.ended") if event["attempt"] == late["attempt"])
    assert ended["outcome"] == "timeout"
    # The stage that finished in time keeps its result.
    assert gate(task, "scripted_review")["passed"]
    assert os.path.exists(task.path("done", "scripted_review.done"))
    assert not os.path.exists(task.path("done", "scripted_static_verify.done"))
    assert "timeout" in summary(task)
    # If one of two is done, a retry runs only the other one, with its full time limit.
    played("static_verify", before=Scenario(on_resume="restart")).write_to(
        os.path.join(packet.path, "scripted_static_verify.json")
    )
    assert task.ask("retry").returncode == 0
    task.wait_for_event("run.opened")
    task.wait_for("completed", within_s=30)
    assert len(calls(task, "scripted_review")) == 1
