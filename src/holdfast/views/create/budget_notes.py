"""Budgets that an agent's program cannot keep, because it does not report what it uses."""

from __future__ import annotations

from holdfast.agents import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.spec import TaskSpec
    from holdfast.views.create.new_task import Talk


def noted(spec: TaskSpec, *, talk: Talk) -> TaskSpec:
    """The spec with a note for each budget that does not apply to an agent; the notes are printed, too."""
    limits = spec.limits
    if limits.budget_usd is None and limits.budget_tokens is None:
        return spec
    notes: list[str] = []
    for name in dict.fromkeys((*(stage.agent for stage in spec.stages), *spec.failover)):
        able = registry.adapter(name).capabilities
        if name == "command":
            continue
        if limits.budget_usd is not None and not able.reports_cost and "usd" not in able.own_limits:
            notes.append(
                f"{name} does not report its cost: the budget of ${limits.budget_usd:.2f} ignores it"
            )
        if limits.budget_tokens is not None and able.usage_scope == "none":
            notes.append(f"{name} does not report tokens: the budget of {limits.budget_tokens} ignores it")
    for note in notes:
        talk(f"note: {note}")
    return spec.evolve(notes=(*spec.notes, *notes)) if notes else spec
