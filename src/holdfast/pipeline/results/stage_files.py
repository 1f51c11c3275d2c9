"""The files that a pipeline's stages leave beside their output: meta.json, stats.json, last_failure.json.

Pure builders. All three are derived from the journal and can be made again; their field names are those of the task packet
that other programs read.
"""

from __future__ import annotations

from holdfast import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from holdfast.pipeline.next_action import NextAction
    from holdfast.pipeline.triage import Failure, Triage


def meta(
    stage: str,
    tool: str,
    *,
    exit_code: int | None,
    start: str,
    end: str,
    prompt_sha256: str | None,
    role: str = "",
    model: str | None = None,
    attempt: int | None = None,
    outcome: str = "",
) -> dict[str, Any]:
    """outputs/<stage>.<tool>.meta.json, for a call that succeeded or failed alike. `prompt_sha256` is null where the call
    had no prompt, `exit_code` where the end was never seen."""
    return {
        "schema": "holdfast.meta/1",
        "stage": stage,
        "tool": tool,
        "role": role,
        "model": model,
        "attempt": attempt,
        "outcome": outcome,
        "exit_code": exit_code,
        "start": start,
        "end": end,
        # A wall clock can be set back while a call lasts; a call does not take less than no time.
        "duration_sec": round(max(0.0, clock.parse_iso(end) - clock.parse_iso(start)), 3),
        "prompt_sha256": prompt_sha256,
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
    """state/stats.json. `signatures`: how often each failure was seen, its class, the first and the last time."""
    return {
        "schema": "holdfast.stats/1",
        "task_id": task_id,
        "updated_at": updated_at,
        "paid_calls": paid_calls,
        "paid_call_budget": paid_call_budget,
        "retry_budget": retry_budget,
        "completed_stages": list(completed_stages),
        "signatures": {name: dict(seen) for name, seen in signatures.items()},
    }


def last_failure(
    facts: Failure, found: Triage, action: NextAction, *, attempt: int | None, at: str, count: int = 1
) -> dict[str, Any]:
    """state/last_failure.json: the triage of the latest failure. `count`: how often its signature has been seen by now."""
    gate = {"failed": facts.gate_failed, "reasons": list(facts.gate_reasons)} if facts.gate_failed else None
    return {
        "schema": "holdfast.last-failure/1",
        "at": at,
        "stage": facts.stage,
        "tool": facts.agent,
        "role": facts.role,
        "attempt": attempt,
        "class": found.failure_class,
        "signature": found.signature,
        "count": count,
        "outcome": facts.outcome,
        "detail": facts.detail,
        "exit_code": facts.exit_code,
        "gate_result": gate,
        "suggested_actions": list(found.suggested_actions),
        "next_action": action.to_json(),
    }
