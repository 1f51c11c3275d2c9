"""The index over tasks."""

from __future__ import annotations

import jsonschema
import pytest

from contracts import schema
from holdfast.model.spec import Limits, PipelineSpec, StageSpec, TaskSpec
from holdfast.pipeline.results import task_index

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
def test_the_index_links_runs_sessions_and_policies_of_tasks() -> None:
    manifest = {"status": "running", "started_at": "2026-01-31T00:00:00Z"}
    entry = task_index.task_entry(SPEC, manifest, {"codex_impl": "abc"})
    index = task_index.task_index({"t": entry}, at="2026-01-31T00:00:01Z")
    jsonschema.validate(index, schema.schemas()["task-index"])
    found = index["tasks"]["t"]
    assert found["phases"]["impl"] == [{"stage": "codex_impl", "agent": "codex", "session_id": "abc"}]
    assert found["policies"]["paid_call_budget"] == 10
    assert found["links"] == "tasks/t/state/phase-links.json"
    assert task_index.task_entry(SPEC.evolve(pipeline=None), manifest, {})["policies"] == {}
