"""JSON files that describe stages: meta.json, stats.json, last_failure.json, phase-links.json.

These functions only build the content. All four files are derived from the journal and can be rebuilt. Other
programs read them, so field names do not change.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.model import roles
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any

    from holdfast.model.next_action import NextAction
    from holdfast.model.spec import StageSpec
    from holdfast.pipeline.triage import Failure, Triage


class Call(Record):
    """A call of an agent that succeeded or failed."""

    stage: str
    tool: str
    role: str = ""
    model: str | None = None
    attempt: int | None = None
    outcome: str = ""
    #: None if the exit status is unknown.
    exit_code: int | None
    start: str
    end: str
    #: None if the call had no prompt.
    prompt_sha256: str | None


def meta(call: Call) -> dict[str, Any]:
    """outputs/<stage>.<tool>.meta.json."""
    return {
        "schema": "holdfast.meta/1",
        "stage": call.stage,
        "tool": call.tool,
        "role": call.role,
        "model": call.model,
        "attempt": call.attempt,
        "outcome": call.outcome,
        "exit_code": call.exit_code,
        "start": call.start,
        "end": call.end,
        # The wall clock can be set back during a call.
        "duration_sec": round(max(0.0, clock.parse_iso(call.end) - clock.parse_iso(call.start)), 3),
        "prompt_sha256": call.prompt_sha256,
    }


def stats(
    task_id: str,
    *,
    paid_calls: int,
    paid_call_budget: int | None,
    retry_budget: int | None,
    completed_stages: Iterable[str],
    signatures: Mapping[str, Mapping[str, Any]],
    updated_at: str,
) -> dict[str, Any]:
    """state/stats.json.

    `signatures`: for each failure signature its count, its class, and the first and last time.
    """
    return {
        "schema": "holdfast.stats/1",
        "task_id": task_id,
        "updated_at": updated_at,
        "paid_calls": paid_calls,
        "paid_call_budget": paid_call_budget,
        "retry_budget": retry_budget,
        "completed_stages": list(completed_stages),
        "signatures": {signature: dict(facts) for signature, facts in signatures.items()},
    }


def last_failure(
    facts: Failure, triage: Triage, action: NextAction, *, attempt: int | None, at: str, count: int = 1
) -> dict[str, Any]:
    """state/last_failure.json: the triage of the latest failure.

    `count`: how often its signature occurred so far.
    """
    gate = {"failed": facts.gate_failed, "reasons": list(facts.gate_reasons)} if facts.gate_failed else None
    return {
        "schema": "holdfast.last-failure/1",
        "at": at,
        "stage": facts.stage,
        "tool": facts.agent,
        "role": facts.role,
        "attempt": attempt,
        "class": triage.failure_class,
        "signature": triage.signature,
        "count": count,
        "outcome": facts.outcome,
        "detail": facts.detail,
        "exit_code": facts.exit_code,
        "gate_result": gate,
        "suggested_actions": list(triage.suggested_actions),
        "next_action": action.to_json(),
    }


def artifact(stage: StageSpec) -> str:
    """The path of a stage's main result in the packet: the artifact of its commands, or its report."""
    if "acceptance" in roles.get(stage.role).checks:
        return f"outputs/{stage.name}.artifact.md"
    return f"outputs/{stage.name}.{stage.agent}.out"


def phase_links(
    task_id: str,
    stages: Iterable[StageSpec],
    done: Collection[str],
    *,
    at: str,
    sessions: Mapping[str, str | None] | None = None,
) -> dict[str, Any]:
    """state/phase-links.json: the stages of each phase, and its canonical result (of the last stage done).

    `stages` have the agents that really played them; `sessions` has the agents' own session ids.
    """
    phases: dict[str, dict[str, Any]] = {}
    for stage in stages:
        entry = phases.setdefault(roles.get(stage.role).phase, {"canonical": None, "stages": {}})
        is_done = stage.name in done
        entry["stages"][stage.name] = {"artifact": artifact(stage) if is_done else None, "done": is_done}
        if sessions is not None:
            entry["stages"][stage.name].update(agent=stage.agent, session_id=sessions.get(stage.name))
        if is_done:
            entry["canonical"] = artifact(stage)
    return {"schema": "holdfast.phase-links/1", "task_id": task_id, "updated_at": at, "phases": phases}
