"""Where the results are."""

from __future__ import annotations

import jsonschema
import pytest

from contracts import schema
from holdfast.model.spec import Limits, PipelineSpec, StageSpec, TaskSpec
from holdfast.pipeline.results import phases

STAGES = (
    StageSpec(name="gemini_brief", agent="gemini", role="brief"),
    StageSpec(name="codex_impl", agent="codex", role="impl"),
    StageSpec(name="codex_verify", agent="codex", role="verify"),
    StageSpec(name="gemini_review", agent="gemini", role="review"),
)
SPEC = TaskSpec(
    task_id="t", task_name="t", goal="g", agent="gemini", project_dir="/w", stages=STAGES, limits=Limits(),
    pipeline=PipelineSpec(intent="safe_impl", group="impl", profile="safe_impl"),
)  # fmt: skip


@pytest.mark.req("PKT-19")
def test_each_phase_links_to_the_result_of_its_last_finished_stage() -> None:
    links = phases.phase_links("t", STAGES, {"gemini_brief", "codex_verify"}, at="2026-01-31T00:00:00Z")
    jsonschema.validate(links, schema.schemas()["phase-links"])
    assert {name: phase["canonical"] for name, phase in links["phases"].items()} == {
        "plan": "outputs/gemini_brief.gemini.out",
        "impl": None,
        "verify": "outputs/codex_verify.artifact.md",
        "review": None,
    }
    assert links["phases"]["impl"]["stages"] == {"codex_impl": {"artifact": None, "done": False}}


@pytest.mark.req("PKT-19")
def test_the_index_links_runs_sessions_and_policies_of_tasks() -> None:
    manifest = {"status": "running", "started_at": "2026-01-31T00:00:00Z"}
    entry = phases.task_entry(SPEC, manifest, {"codex_impl": "abc"})
    index = phases.task_index({"t": entry}, at="2026-01-31T00:00:01Z")
    jsonschema.validate(index, schema.schemas()["task-index"])
    found = index["tasks"]["t"]
    assert found["phases"]["impl"] == [{"stage": "codex_impl", "agent": "codex", "session_id": "abc"}]
    assert found["policies"]["paid_call_budget"] == 10
    assert found["links"] == "tasks/t/state/phase-links.json"
    assert phases.task_entry(SPEC.evolve(pipeline=None), manifest, {})["policies"] == {}


@pytest.mark.req("PIP-3")
def test_results_of_a_post_implementation_review_have_their_known_names() -> None:
    names = [
        phases.result_name(stage, "post_impl_review")
        for stage in ("gemini_review", "gemini_test_design", "gemini_static_verify", "codex_review", "codex_test_impl", "codex_verify")
    ]  # fmt: skip
    assert names == [
        "gemini_review.md", "test_matrix.md", "verification_checklist.md", "codex_precision_review.md",
        "test_implementation_report.md", "verification_report.md",
    ]  # fmt: skip
    assert phases.result_name("pi_review", "review_cross") == "pi_review.md"
