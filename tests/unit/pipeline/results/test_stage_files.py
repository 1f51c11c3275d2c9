"""meta.json, stats.json, last_failure.json and phase-links.json match their schemas."""

from __future__ import annotations

import json

import jsonschema
import pytest

from contracts import schema
from holdfast.model import next_action
from holdfast.model.next_action import TaskFacts
from holdfast.model.spec import StageSpec
from holdfast.pipeline.results import stage_files
from holdfast.pipeline.triage import Failure, triage

SCHEMAS = schema.schemas()
START, END = "2026-02-18T12:00:00.000Z", "2026-02-18T12:01:30.500Z"


def check(name: str, data: dict[str, object]) -> None:
    jsonschema.validate(json.loads(json.dumps(data)), SCHEMAS[name])


@pytest.mark.req("PKT-14")
@pytest.mark.parametrize(("exit_code", "prompt"), [(0, "ab" * 32), (1, "ab" * 32), (None, None)])
def test_meta_has_the_fields_of_the_packet_for_any_end(exit_code: int | None, prompt: str | None) -> None:
    call = stage_files.Call(
        stage="gemini_brief",
        tool="gemini",
        exit_code=exit_code,
        start=START,
        end=END,
        prompt_sha256=prompt,
        attempt=3,
    )
    data = stage_files.meta(call)
    wanted = {"stage", "tool", "exit_code", "start", "end", "duration_sec", "prompt_sha256", "schema"}
    assert wanted <= data.keys()
    assert (data["duration_sec"], data["exit_code"], data["prompt_sha256"]) == (90.5, exit_code, prompt)
    check("meta", data)


def test_a_clock_that_was_set_back_gives_no_negative_time() -> None:
    call = stage_files.Call(stage="s", tool="t", exit_code=0, start=END, end=START, prompt_sha256=None)
    data = stage_files.meta(call)
    assert data["duration_sec"] == 0.0


def stats(signatures: dict[str, dict[str, object]]) -> dict[str, object]:
    return stage_files.stats(
        "t1",
        paid_calls=3,
        paid_call_budget=10,
        retry_budget=2,
        completed_stages=["gemini_brief"],
        signatures=signatures,
        updated_at=END,
    )


@pytest.mark.req("PKT-15")
def test_stats_have_calls_stages_and_signatures() -> None:
    seen: dict[str, object] = {"count": 2, "class": "transient", "first_seen": START, "last_seen": END}
    data = stats({"a" * 16: seen})
    assert (data["paid_calls"], data["completed_stages"]) == (3, ["gemini_brief"])
    assert data["signatures"] == {"a" * 16: seen}
    check("stats", data)
    check("stats", stats({}))


@pytest.mark.req("PKT-15", "GAT-10")
@pytest.mark.parametrize(
    "facts",
    [
        Failure(stage="codex_impl", agent="codex", outcome="crashed", detail="exit status 1", exit_code=1),
        Failure(
            stage="codex_impl",
            agent="codex",
            role="impl",
            outcome="success",
            exit_code=0,
            gate_failed="scope",
            gate_reasons=("src/x.py is outside scope.allow",),
        ),
    ],
)
def test_the_last_failure_has_class_signature_and_what_to_do(facts: Failure) -> None:
    found = triage(facts)
    action = next_action.for_task(
        TaskFacts(task_id="t1", status="failed", remedy=found.next_action, agent="codex")
    )
    data = stage_files.last_failure(facts, found, action, attempt=4, at=END, count=2)
    assert (data["class"], data["signature"]) == (found.failure_class, found.signature)
    assert data["next_action"]["name"] == action.name
    assert data["gate_result"] == (
        {"failed": "scope", "reasons": ["src/x.py is outside scope.allow"]} if facts.gate_failed else None
    )
    assert data["suggested_actions"]
    check("last-failure", data)


STAGES = (
    StageSpec(name="gemini_brief", agent="gemini", role="brief"),
    StageSpec(name="codex_impl", agent="codex", role="impl"),
    StageSpec(name="codex_verify", agent="codex", role="verify"),
    StageSpec(name="gemini_review", agent="gemini", role="review"),
)


@pytest.mark.req("PKT-19")
def test_each_phase_links_to_the_result_of_its_last_finished_stage() -> None:
    links = stage_files.phase_links("t", STAGES, {"gemini_brief", "codex_verify"}, at="2026-01-31T00:00:00Z")
    jsonschema.validate(links, schema.schemas()["phase-links"])
    assert {name: phase["canonical"] for name, phase in links["phases"].items()} == {
        "plan": "outputs/gemini_brief.gemini.out",
        "impl": None,
        "verify": "outputs/codex_verify.artifact.md",
        "review": None,
    }
    assert links["phases"]["impl"]["stages"] == {"codex_impl": {"artifact": None, "done": False}}
