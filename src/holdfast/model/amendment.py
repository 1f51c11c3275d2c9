"""What a person may change of an ended task before it goes on (`retry --set`). Pure.

The setup of the acceptance is the only command among it. A request is a file, and a file must not make
holdfast run a command: the runner refuses a retry that no command of holdfast has sent. Not the acceptance
commands, the goal, the agents or the stages: that is another task.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from holdfast.model.spec import TaskSpec

_LIMITS = {
    "budgets.deadline_sec": "limits.deadline_s",
    "budgets.on_limit": "limits.on_limit",
}
_OF_AGENTS = {
    "budgets.budget_usd": "limits.budget_usd",
    "budgets.budget_tokens": "limits.budget_tokens",
    "budgets.max_turns": "limits.max_turns",
}
_OF_ACCEPTANCE = {
    "acceptance.timeout_sec": "quality.timeout_s",
    "routing.pipeline.on_fail.times": "quality.repair_times",
}
_OF_PIPELINES = {
    "budgets.max_wallclock_sec": "pipeline.max_wallclock_s",
    "budgets.retry_budget": "pipeline.retry_budget",
    "budgets.paid_call_budget": "pipeline.paid_call_budget",
    "scope.allow": "pipeline.scope_allow",
    "scope.deny": "pipeline.scope_deny",
    "acceptance.setup": "pipeline.acceptance_setup",
    "acceptance.criteria": "pipeline.acceptance_criteria",
    "acceptance.timeout_sec": "pipeline.acceptance_timeout_s",
    "acceptance.clean_room": "pipeline.acceptance_clean",
    "gate.max_severity": "pipeline.max_severity",
    "gate.ci.timeout_sec": "pipeline.ci_timeout_s",
    "routing.pipeline.on_fail.times": "pipeline.repair_times",
    "context.digest_policy": "pipeline.digest_policy",
}
#: What an agent that continues its session must know.
_FOR_AGENTS = ("scope.", "acceptance.criteria")


def fields(spec: TaskSpec) -> dict[str, str]:
    """The fields of manifest.yaml that may be changed, and where each is in the spec."""
    if spec.pipeline is not None:
        return {**_OF_PIPELINES, **_LIMITS, **_OF_AGENTS}
    known = {"budgets.max_wallclock_sec": "limits.timeout_s", **_LIMITS}
    if spec.agent != "command":
        known |= _OF_AGENTS
    if spec.quality is not None and spec.quality.accept:
        known |= _OF_ACCEPTANCE
    return known


def value(spec: TaskSpec, field: str) -> Any:
    """The value of a field that may be changed."""
    record, _, name = fields(spec)[field].partition(".")
    return getattr(getattr(spec, record), name)


def applied(spec: TaskSpec, changes: Iterable[dict[str, Any]]) -> TaskSpec:
    """The spec with these changes (`field`, `new`). What this version does not know is ignored."""
    for change in changes:
        place = fields(spec).get(change["field"])
        if place is None:
            continue
        record, _, name = place.partition(".")
        new = change["new"]
        if name.endswith("_s") and new is not None:
            new = float(new)
        changed = getattr(spec, record).evolve(**{name: tuple(new) if isinstance(new, list) else new})  # pyright: ignore[reportUnknownArgumentType]
        spec = spec.evolve(**{record: changed})
    return spec


def as_text(change: dict[str, Any]) -> str:
    """`scope.allow: src/ → src/, docs/`."""
    return f"{change['field']}: {_text(change['old'])} → {_text(change['new'])}"


def for_agent(changes: Iterable[dict[str, Any]]) -> str:
    """What a resumed session is told; empty if nothing of it concerns the agent."""
    lines = [
        f"- {change['field']} is now: {_text(change['new'])}"
        for change in changes
        if change["field"].startswith(_FOR_AGENTS)
    ]
    return "\n".join(["A person changed the task:", *lines]) if lines else ""


def _text(shown: Any) -> str:
    if isinstance(shown, list | tuple):
        return ", ".join(map(str, shown)) or "nothing"  # pyright: ignore[reportUnknownArgumentType]
    if shown is None or shown == "":
        return "none"
    return f"{shown:.15g}" if isinstance(shown, float) else str(shown)
