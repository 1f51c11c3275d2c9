"""Pipelines as JSON: the available values, and what a packet resolves to."""

from __future__ import annotations

import os

from holdfast.agents import program, registry
from holdfast.model.roles import ROLES
from holdfast.pipeline.define import one_agent, written_packet
from holdfast.pipeline.define.intents import DIGEST_POLICIES, INTENTS, OPTIONS, WORKSPACES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.pipeline.define.catalog import Catalog
    from holdfast.pipeline.define.written_packet import WrittenPacket


def available(config: Catalog) -> dict[str, Any]:
    """Every value that a manifest may use, as `pipeline list --json` prints them."""
    return {
        "intents": {
            name: {
                "group": intent.group,
                "about": intent.about,
                "stages": list(_profile_stages(config, intent.group, name)),
            }
            for name, intent in INTENTS.items()
        },
        "groups": {
            group.name: {
                "default_profile": group.get("default_profile"),
                "flags": {flag: list(off) for flag, off in group.flags.items()},
                "options": {
                    name: list(option.values)
                    for name, option in OPTIONS.items()
                    if group.name in option.groups
                },
                "profiles": {
                    profile.name: {
                        "stages": [
                            {"parallel": list(batch.stages)} if batch.is_parallel else batch.stages[0]
                            for batch in profile.batches
                        ],
                        "options": {key: leaf.value for key, leaf in profile.below("options").items()},
                        "from": profile.leaves["stages"].label,
                    }
                    for profile in group.profiles.values()
                },
            }
            for group in config.groups.values()
        },
        "agents": {
            agent.name: {
                "default_model": agent.get("default_model"),
                "allowed_models": None if agent.allowed_models is None else list(agent.allowed_models),
                "efforts": list(agent.efforts),
            }
            for agent in config.agents.values()
        },
        "roles": {
            name: {"about": role.about, "purpose": role.purpose, "writes": role.writes}
            for name, role in ROLES.items()
        },
        "digest_policies": list(DIGEST_POLICIES),
        "workspaces": list(WORKSPACES),
    }


def resolved(written: WrittenPacket) -> dict[str, Any]:
    """What a packet resolves to, as `pipeline show --json` prints it."""
    spec, pipeline = written_packet.pipeline_spec(written), written.resolved
    stages: list[dict[str, Any]] = []
    for stage in pipeline.stages:
        start = f"stages.{stage.name}."
        sources = {
            path.removeprefix(start): source
            for path, source in pipeline.sources.items()
            if path.startswith(start)
        }
        stages.append({**stage.to_json(), "max_wallclock_s": spec.max_wallclock_s, "sources": sources})
    return {
        "schema": "holdfast.pipeline/1",
        "task_id": written.manifest.get("task_id"),
        "project_dir": written.project_dir,
        "workspace": written.manifest.get("workspace"),
        "flags": pipeline.flags,
        "options": pipeline.options,
        **spec.to_json(),
        "stages": stages,
        "not_installed": missing_agents(written),
    }


def missing_agents(written: WrittenPacket) -> list[str]:
    """Agents of the packet whose program is not in PATH."""
    path = os.environ.get("PATH", os.defpath)
    agents = dict.fromkeys(stage.agent for stage in written.resolved.stages)
    capabilities = {name: registry.adapter(name).capabilities for name in agents}
    return [name for name, each in capabilities.items() if each.program and program.find(each, path) is None]


def one_agent_notes(written: WrittenPacket) -> list[str]:
    """What one agent for all roles means, and what it cannot do: a line each."""
    name = written.manifest.get("routing.agent")
    if name is None:
        return []
    lacks = one_agent.shortcomings(name, registry.adapter(name).capabilities, written.resolved.stages)
    return [f"note: {line}" for line in (*written.resolved.merged, *lacks)]


def _profile_stages(config: Catalog, group: str, name: str) -> tuple[str, ...]:
    profile = config.groups[group].profiles.get(name) if group in config.groups else None
    return profile.stages if profile is not None else ()
