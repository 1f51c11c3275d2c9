"""One agent for all roles (`routing.agent`): the stages of a profile, played by it. Pure.

Stages that differ only in their agent become one. If only one review is left, nothing has to be merged, so
its consolidation is left out.
"""

from __future__ import annotations

from holdfast.model.roles import ROLES, split
from holdfast.pipeline.define.catalog_file import Batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from holdfast.agents.base import Capabilities
    from holdfast.model.spec import StageSpec

    #: Stage → the stages of the profile that it stands for.
    Origins = dict[str, tuple[str, ...]]


def played_by(
    agent: str, batches: Sequence[Batch], agents: Collection[str]
) -> tuple[tuple[Batch, ...], Origins]:
    """The batches with every stage played by one agent, and what each of them stands for."""
    origins: Origins = {}
    kept: list[Batch] = []
    for batch in batches:
        stages: list[str] = []
        for stage in batch.stages:
            parts = split(stage, agents)
            name = stage if parts is None else f"{agent}_{parts[1]}"
            if name not in origins:
                stages.append(name)
            origins[name] = (*origins.get(name, ()), stage)
        if stages:
            is_parallel = batch.is_parallel and len(stages) > 1
            kept.append(batch.evolve(stages=tuple(stages), is_parallel=is_parallel))
    merges = [name for name in origins if (role := _role(agent, name)) and ROLES[role].joins_findings]
    reviews = [name for name in origins if (role := _role(agent, name)) and ROLES[role].has_findings]
    # Merging is worth a call only if its agents were several, and several reports are left.
    if merges and len(reviews) - len(merges) < 2:
        kept = [batch for batch in kept if not set(batch.stages) & set(merges)]
        for name in merges:
            del origins[name]
    return tuple(kept), origins


def _role(agent: str, name: str) -> str | None:
    parts = split(name, (agent,))
    return None if parts is None else parts[1]


def merged(profile_stages: Sequence[str], origins: Origins) -> list[str]:
    """What became of stages that are not there any more, a line each."""
    lines = [f"{' and '.join(of)} become one stage, {name}" for name, of in origins.items() if len(of) > 1]
    there = {stage for of in origins.values() for stage in of}
    lines += [
        f"{stage} is left out: there is only one review" for stage in profile_stages if stage not in there
    ]
    return lines


def shortcomings(agent: str, capabilities: Capabilities, stages: Sequence[StageSpec]) -> list[str]:
    """What the stages need and the agent cannot do, a line each."""
    lines: list[str] = []
    writers = [stage.name for stage in stages if stage.agent == agent and stage.writes]
    readers = [stage.name for stage in stages if stage.agent == agent and not stage.writes]
    judges = [stage.name for stage in stages if stage.agent == agent and ROLES[stage.role].has_findings]
    if writers and judges:
        lines.append(f"{agent} reviews its own work: {', '.join(judges)}")
    if readers and not any(each.profile == "read" for each in capabilities.permissions):
        lines.append(f"{agent} cannot be kept from writing: {', '.join(readers)} should only read")
    if writers and not capabilities.can_resume:
        lines.append(f"{agent} cannot continue a session: a repair by {writers[-1]} starts a new one")
    if stages and not capabilities.reports_cost:
        lines.append(f"{agent} does not report its cost: budgets.budget_usd cannot stop it")
    for need in capabilities.needs:
        lacking = [stage.name for stage in stages if stage.agent == agent and need not in stage.options]
        if lacking:
            lines.append(f"{agent} needs the option {need}: {', '.join(lacking)}")
    return lines
