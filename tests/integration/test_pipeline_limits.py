"""Limits of a packet: retries, paid calls, time, approvals; and a summary at every stop."""

from __future__ import annotations

import json
import os
from typing import Any

import jsonschema
import pytest

from contracts import schema
from holdfast.store import lock as locks
from holdfast.testing import Scenario
from tests.support import keepers, loops
from tests.support.packets import PACK, WORK, Written, calls, gate, played, summary
from tests.support.tasks import Task, holdfast, workspace
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("home")

RESET = "Error: read ECONNRESET"


def reviewing(scenario: Scenario, **manifest: Any) -> Written:
    """A packet of one review."""
    return Written(
        {"scripted_review": played("review", before=scenario)},
        intent="review_only",
        group="review",
        **manifest,
    )


def failing(text: str, times: int = 9, *, scenario: Scenario | None = None) -> Scenario:
    """It says so on stderr and exits, in this many first processes of the session."""
    return (
        (scenario or Scenario(on_resume="restart"))
        .print(f"{text}\n", stream="stderr", times=times)
        .crash(exit=1, times=times)
    )


def _lines(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


# ── retries ──


@pytest.mark.req("BUD-3", "GAT-9", "PKT-15")
def test_retries_are_counted_for_each_signature() -> None:
    scenario = failing("Error: socket hang up", 4, scenario=failing(RESET, 2))
    task = reviewing(scenario, budgets={"retry_budget": 2}).run()
    # Four failures and a budget of two: but no more than two are of one kind.
    assert len(calls(task)) == 5
    signatures = task.json("state", "stats.json")["signatures"]
    assert sorted((seen["count"], seen["class"]) for seen in signatures.values()) == [(2, "transient")] * 2


@pytest.mark.req("BUD-3", "GAT-9", "GAT-10", "PKT-14", "PKT-15")
def test_the_same_failure_is_tried_again_as_often_as_allowed() -> None:
    task = reviewing(failing(RESET), budgets={"retry_budget": 1}).run(end="failed")
    assert len(calls(task)) == 2
    failure = task.json("state", "last_failure.json")
    assert (failure["class"], failure["count"]) == ("transient", 2)
    assert failure["suggested_actions"]
    # Failed ones leave their files too; the report of none is taken for a result.
    meta = task.json("outputs", "scripted_review.scripted.meta.json")
    assert (meta["exit_code"], meta["attempt"]) == (1, calls(task)[-1]["attempt"])
    assert len(meta["prompt_sha256"]) == 64
    assert not os.path.exists(task.path("outputs", "scripted_review.scripted.out"))
    text = summary(task)
    assert f"- error: transient, signature `{failure['signature']}`" in text
    assert "- next_action: **retry**" in text
    assert RESET in text


@pytest.mark.req("GAT-9")
@pytest.mark.parametrize(
    ("scenario", "kind", "count"),
    [
        (failing("Error: 401 Unauthorized"), "auth", 1),
        (failing("sh: jq: command not found"), "tooling", 1),
        (failing("it went wrong"), "unknown", 2),
        (failing("prompt is too long: 210000 tokens > 200000 maximum"), "prompt_too_large", 2),
    ],
    ids=("auth", "tooling", "unknown", "prompt_too_large"),
)
def test_the_class_decides(scenario: Scenario, kind: str, count: int) -> None:
    packet = reviewing(scenario)
    packet.put("inputs/context_pack.md", PACK.replace("said by the brief", "a line\n" * 60))
    task = packet.start()
    task.wait_for("interrupted" if kind == "auth" else "failed")
    assert task.json("state", "last_failure.json")["class"] == kind
    assert len(calls(task)) == count
    log = task.read("outputs", "scripted_review.scripted.compose.log").decode()
    assert ("aggressive" in log) == (kind == "prompt_too_large")
    if kind == "auth":
        task.stop()


# ── paid calls ──


@pytest.mark.req("BUD-4", "W-B5")
@pytest.mark.parametrize("point", ["attempt.opened", "attempt.forked", "step.record_end"])
def test_a_killed_runner_makes_no_extra_call(point: str) -> None:
    ran = os.path.join(workspace(), "ran")
    packet = reviewing(
        Scenario().write(ran, content="call\n", append=True),
        budgets={"paid_call_budget": 1, "retry_budget": 5},
    )
    once = os.path.join(workspace(), "once")
    task = packet.start(env={"HOLDFAST_FAILPOINT": f"{point}=kill", "HOLDFAST_FAILPOINT_ONCE": once})
    eventually(lambda: os.path.exists(once), 20, f"it was killed at {point}")
    task.start_runner()
    task.wait_for("completed")
    assert _lines(ran) == ["call"]
    assert task.json("state", "stats.json")["paid_calls"] == 1


@pytest.mark.req("BUD-4", "W-B5", "GAT-10")
def test_a_budget_that_is_used_up_asks_and_a_resume_grants_it_again() -> None:
    packet = Written({"scripted_brief": None, "scripted_impl": None}, budgets={"paid_call_budget": 1})
    done = holdfast("run", "--packet", packet.path, cwd=packet.project.path)
    assert done.returncode == 4
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", packet.task_id))
    manifest = task.manifest()
    assert (manifest["status"], manifest["paid_calls"]) == ("interrupted", 1)
    assert len(calls(task)) == 1
    text = summary(task)
    assert "- next_action: **raise_budget**" in text
    assert "- paid calls: 1 of 1" in text
    assert task.json("state", "last_failure.json")["class"] == "budget"
    assert task.ask("resume").returncode == 0
    task.wait_for("completed")
    stats = task.json("state", "stats.json")
    assert (stats["paid_calls"], stats["paid_call_budget"]) == (2, 2)


@pytest.mark.req("BUD-4", "W-B5")
def test_failed_calls_count_and_a_task_may_end_at_its_limit() -> None:
    packet = Written(
        {"scripted_brief": played("brief", before=failing(RESET, 1)), "scripted_impl": None},
        budgets={"paid_call_budget": 2, "on_limit": "end"},
    )
    task = packet.run(end="failed")
    assert [event["stage"] for event in calls(task)] == ["scripted_brief", "scripted_brief"]
    assert "its 2 paid calls are used up" in task.manifest()["status_reason"]
    text = summary(task)
    assert "failed" in text.splitlines()[0]
    assert "- paid calls: 2 of 2" in text


@pytest.mark.req("BUD-4")
def test_a_retry_that_cannot_be_paid_is_not_made() -> None:
    task = reviewing(failing(RESET), budgets={"paid_call_budget": 1, "retry_budget": 5}).start()
    manifest = task.wait_for("interrupted")
    assert "paid calls are used up" in manifest["status_reason"]
    assert len(calls(task)) == 1
    task.stop()


@pytest.mark.req("BUD-4")
def test_stages_side_by_side_need_a_call_each() -> None:
    order = [{"parallel": ["scripted_review", "scripted_security_review"], "timeout_sec": 30}]
    packet = Written(
        {"scripted_review": None, "scripted_security_review": None},
        intent="review_cross",
        group="review",
        waves=order,
        budgets={"paid_call_budget": 1},
    )
    task = packet.start()
    manifest = task.wait_for("interrupted")
    assert "need 2 paid calls, and 1 of 1 left" in manifest["status_reason"]
    assert calls(task) == []
    assert task.ask("resume").returncode == 0
    task.wait_for("completed")
    assert task.json("state", "stats.json")["paid_calls"] == 2


@pytest.mark.req("BUD-4")
def test_money_that_is_spent_stops_the_next_call_and_a_resume_grants_it_again() -> None:
    dear = Scenario().usage(input_tokens=1, output_tokens=1, cost_usd=5.0).write(WORK, content="hello\n")
    packet = Written(
        {"scripted_impl": played("impl", before=dear), "scripted_review": None}, budgets={"budget_usd": 1.0}
    )
    task = packet.start()
    manifest = task.wait_for("interrupted")
    assert "$5.00 of $1.00" in manifest["status_reason"]
    assert [event["stage"] for event in calls(task)] == ["scripted_impl"]
    assert "- next_action: **raise_budget**" in summary(task)
    assert task.ask("resume").returncode == 0
    task.wait_for("completed")
    assert "cost: $5.00 of $6.00" in summary(task)
    assert task.json("state", "stats.json")["paid_call_budget"] == 20


# ── time ──


@pytest.mark.req("BUD-2", "BUD-8", "W-B2", "TST-7")
def test_the_time_of_a_call_is_always_limited() -> None:
    routing = {"intent": "review_only", "pipeline": {"options": {"timeout_mode": "wait_done"}}}
    packet = reviewing(Scenario().say("thinking").hang(), budgets={"max_wallclock_sec": 1, "retry_budget": 0})
    routing["options"] = packet.manifest["routing"]["options"]
    packet.manifest["routing"] = routing
    packet.put("manifest.yaml", json.dumps(packet.manifest))
    task = packet.start()
    manifest = task.wait_for("interrupted")
    assert "(budgets.max_wallclock_sec)" in manifest["status_reason"]
    # No question was asked: `resume` grants the same time again.
    shown = task.ask("show").stdout
    assert "holdfast resume it go on, for the same time again" in " ".join(shown.split())
    assert "ANSWER" not in shown
    (ended,) = [
        event for event in task.events("attempt.ended") if event["attempt"] == calls(task)[0]["attempt"]
    ]
    assert (ended["outcome"], 1 <= ended["lived_s"] < 6) == ("timeout", True)
    assert task.json("state", "last_failure.json")["class"] == "timeout"
    assert task.json("outputs", "scripted_review.scripted.meta.json")["outcome"] == "timeout"
    text = summary(task)
    assert "- error: timeout" in text
    assert "- next_action: **raise_time**" in text
    task.stop()


@pytest.mark.req("BUD-8", "BUD-2")
@pytest.mark.parametrize("mode", ["enforce", "wait_done"])
def test_the_softer_limit_holds_where_it_is_enforced(mode: str) -> None:
    go = os.path.join(workspace(), "go")
    packet = reviewing(
        Scenario(on_resume="restart").say("thinking").wait_file(go), budgets={"retry_budget": 0}
    )
    packet.project.write(
        ".holdfast/agents/scripted.yaml",
        json.dumps({"version": 1, "agent": "scripted", "defaults": {"timeout_sec": 1, "timeout_mode": mode}}),
    )
    task = packet.start()
    if mode == "enforce":
        manifest = task.wait_for("interrupted")
        assert "the call of scripted" in manifest["status_reason"]
        task.stop()
        return
    eventually(lambda: _age_s(task) > 2, 20, "it lives on behind the limit")
    with open(go, "w", encoding="utf-8"):
        pass
    task.wait_for("completed")
    assert len(calls(task)) == 1


def _age_s(task: Task) -> float:
    """How long the one attempt has lived, by the heartbeat."""
    from holdfast import clock

    started = task.events("attempt.started")[0]["started_at"]
    return clock.parse_iso(task.manifest()["last_checked_at"]) - clock.parse_iso(started)


@pytest.mark.req("BUD-2")
def test_a_timeout_is_tried_again_in_its_session_and_may_end_the_task() -> None:
    packet = reviewing(
        Scenario().say("thinking").hang(),
        budgets={"max_wallclock_sec": 1, "retry_budget": 1, "on_limit": "end"},
    )
    task = packet.run(end="abandoned")
    assert [event["mode"] for event in calls(task)] == ["fresh", "resume"]
    assert task.moves()[-2:] == ["timeout", "abandoned"]
    assert "- error: timeout" in summary(task)


# ── what is missing ──


@pytest.mark.req("W-B5", "PIP-11")
def test_a_template_that_is_gone_stops_the_stage_before_its_call() -> None:
    spoil = 'mkdir -p "$HOLDFAST_PACKET/inputs/templates"; : > "$HOLDFAST_PACKET/inputs/templates/review.md"'
    stages = {
        "scripted_brief": played("brief", before=Scenario().tool("sh", command=spoil)),
        "scripted_review": None,
    }
    task = Written(stages, intent="review_only", group="review").run(end="failed")
    assert calls(task, "scripted_review") == []
    assert task.json("state", "stats.json")["paid_calls"] == 1
    failure = task.json("state", "last_failure.json")
    assert (failure["stage"], failure["class"], failure["outcome"]) == (
        "scripted_review",
        "tooling",
        "compose_failed",
    )
    text = summary(task)
    assert "failed" in text.splitlines()[0]
    assert "review.md" in text


@pytest.mark.req("CON-2", "CON-3", "TST-7")
def test_the_summary_of_six_failed_stages() -> None:
    roles = ("brief", "review", "static_verify", "test_design", "verify", "runbook")
    noise = "".join(f"{RESET} number {number} of a long story\n" for number in range(200))
    stages = {
        f"scripted_{role}": Scenario().print(noise.replace("story", role), stream="stderr").crash(exit=1)
        for role in roles
    }
    packet = Written(
        stages,
        intent="review_only",
        group="review",
        waves=[{"parallel": list(stages)}],
        budgets={"retry_budget": 0},
    )
    task = packet.run(end="failed")
    text = summary(task)
    lines = text.splitlines()
    assert "failed" in lines[0]
    assert lines[2].startswith("The task failed (0 of 6 stages done)")
    assert lines[4].startswith("- next_action: **retry**")
    assert all(any(stage in line and "failed" in line for line in lines) for stage in stages)
    assert "number 0 of a long" in text
    assert "number 199 of a long" in text
    assert len(task.json("state", "stats.json")["signatures"]) == 6


# ── approvals ──


def approving() -> Written:
    return Written({"scripted_brief": None, "scripted_impl": None}, approval=["scripted_impl"])


def test_a_stage_waits_for_approval() -> None:
    packet = approving()
    done = holdfast("run", "--packet", packet.path, cwd=packet.project.path)
    assert done.returncode == 4
    assert "holdfast approve it" in done.stderr
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", packet.task_id))
    assert task.manifest()["interrupt"]["approval"] == "scripted_impl"
    assert calls(task, "scripted_impl") == []
    assert "- next_action: **approve**" in summary(task)
    # Resuming is not approving.
    refused = task.ask("resume")
    assert (refused.returncode, "'holdfast approve' or 'holdfast reject'" in refused.stderr) == (3, True)
    agreed = task.ask("approve", "-m", "but gently")
    assert (agreed.returncode, agreed.stdout) == (0, "")
    task.wait_for("completed")
    (given,) = task.events("approval.given")
    assert given["stage"] == "scripted_impl"
    (call,) = calls(task, "scripted_impl")
    assert "but gently" in task.read("attempts", f"{call['attempt']:03d}-scripted_impl", "prompt").decode()
    assert gate(task, "scripted_impl")["passed"]


@pytest.mark.req("INT-1", "INT-2")
def test_removing_the_interrupt_file_does_not_stand_in_for_an_approval(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    loops.up()
    task = approving().start()
    task.wait_for("interrupted")
    eventually(lambda: not locks.is_held(task.path("runner.lock")), what="its runner has left")
    os.remove(task.path("state", "interrupt-request.txt"))
    before = task.read("events.jsonl")

    def is_parked() -> bool:
        loops.ring(home)
        return task.read("events.jsonl") == before and os.listdir(task.path("inbox")) == []

    # The keeper looks at the task each time, and neither starts a runner nor asks it to resume.
    keepers.stays(is_parked, 1.0, "the task waits for its approval")
    assert task.ask("approve").returncode == 0
    task.wait_for("completed")
    assert [event["verb"] for event in task.events("request.")] == ["approve"]


def test_an_approval_is_asked_for_once_and_again_when_what_was_agreed_to_changes() -> None:
    packet = approving()
    task = packet.start()
    task.wait_for("interrupted")
    jsonschema.validate(json.loads(task.ask("approve", "--json").stdout), schema.schemas()["manifest"])
    task.wait_for("completed")
    os.unlink(os.path.join(packet.project.path, WORK))
    assert task.ask("retry", "--from", "scripted_brief").returncode == 0
    task.wait_for_event("run.opened")
    task.wait_for("interrupted")
    jsonschema.validate(json.loads(task.ask("reject", "--json").stdout), schema.schemas()["manifest"])
    task.wait_for("killed")


def test_a_stage_is_rejected() -> None:
    task = approving().start()
    task.wait_for("interrupted")
    done = task.ask("reject", "-m", "not this way")
    assert (done.returncode, done.stdout) == (0, "")
    manifest = task.wait_for("killed")
    assert manifest["status_reason"].endswith(": not this way")
    assert calls(task, "scripted_impl") == []
    summary(task)
    for verb in ("approve", "reject"):
        refused = task.ask(verb)
        assert (refused.returncode, "waits for no approval" in refused.stderr) == (3, True)
        assert holdfast(verb, "nobody").returncode == 3
        assert holdfast(verb).returncode == 2
