"""holdfast pipeline: what can be chosen, what a packet resolves to, and whether it is valid."""

from __future__ import annotations

import os

from holdfast import paths
from holdfast.agents import program, registry
from holdfast.errors import UsageError
from holdfast.model.roles import ROLES
from holdfast.pipeline.define import catalog, written_packet
from holdfast.pipeline.define.intents import DIGEST_POLICIES, INTENTS, OPTIONS, WORKSPACES
from holdfast.pipeline.results import task_index
from holdfast.store.layout import Home
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.show import out, wrapped_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.pipeline.define.catalog import Config, Profile
    from holdfast.pipeline.define.resolve import Resolved
    from holdfast.pipeline.define.written_packet import Written

COMMAND = Command(
    name="pipeline",
    summary="List intents and profiles, show or check a packet, or index results.",
    description="'list' shows what a manifest can choose from (--json: every allowed value). 'show PACKET' prints the stages with "
    "agent, model, effort and time limit, and where each value came from. 'check PACKET' tells every problem of its "
    "manifest.yaml and of the files of agents and pipelines, and exits 2 when there is one. 'index' shows the tasks of this home "
    "by phase, with the main result of each, and writes task-index.json. Nothing is run.",
    examples=(
        "holdfast pipeline list",
        "holdfast pipeline check my-packet",
        "holdfast pipeline show my-packet --json",
        "holdfast pipeline index",
    ),
    arguments=(
        Argument(dest="action", metavar="list|show|check|index", choices=("list", "show", "check", "index")),
        Argument(dest="packet", metavar="PACKET", required=False, completes="folder"),
    ),
    options=(
        Option(
            flags=("--project",),
            dest="project",
            metavar="DIR",
            completes="folder",
            help="The project whose files hold (default: here).",
        ),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """One of the four."""
    action = values["action"]
    if action in ("list", "index"):
        if values["packet"]:
            raise UsageError(
                f"'pipeline {action}' takes no packet", hint=f"'holdfast pipeline show {values['packet']}'"
            )
        return _list(values) if action == "list" else _index(values)
    if not values["packet"]:
        raise UsageError(f"'pipeline {action}' needs a packet", hint=f"'holdfast pipeline {action} DIR'")
    return _show(values) if action == "show" else _check(values)


def _list(values: dict[str, Any]) -> int:
    found = catalog.load(paths.project(values["project"]))
    if values["json"]:
        out.data({"schema": "holdfast.pipelines/1", **choices(found)})
        return 0
    rows = [
        (name, intent.group, _stages(found, intent.group, name), intent.about)
        for name, intent in INTENTS.items()
    ]
    wrapped_table.show(("INTENT", "GROUP", "STAGES", "ABOUT"), rows)
    print()
    others = [
        (profile.name, group.name, _words(profile))
        for group in found.groups.values()
        for profile in group.profiles.values()
        if INTENTS.get(profile.name) is None or INTENTS[profile.name].group != group.name
    ]
    wrapped_table.show(("OTHER PROFILE", "GROUP", "STAGES"), others)
    print()
    rows = [
        (
            agent.name,
            agent.get("default_model") or "-",
            "any" if agent.allowed_models is None else ", ".join(agent.allowed_models),
        )
        for agent in found.agents.values()
    ]
    wrapped_table.show(("AGENT", "MODEL", "ALLOWED"), rows)
    print()
    options = [(name, ", ".join(option.values), ", ".join(option.groups)) for name, option in OPTIONS.items()]
    flags = [(name, "true, false", group.name) for group in found.groups.values() for name in group.flags]
    wrapped_table.show(("OPTION OR FLAG", "VALUES", "GROUP"), [*options, *flags])
    return 0


def _index(values: dict[str, Any]) -> int:
    home = Home(paths.home())
    found = task_index.update(home)
    if values["json"]:
        out.data(found)
        return 0
    rows = [
        (task_id, entry["status"] or "-", name, stage["stage"], stage["artifact"] or "-")
        for task_id, entry in found["tasks"].items()
        for name, stages in entry["phases"].items()
        for stage in stages
    ]
    if rows:
        wrapped_table.show(("TASK", "STATUS", "PHASE", "STAGE", "RESULT"), rows)
    else:
        out.talk("no task here has stages with results; 'holdfast new --help' says how to write a packet")
    return 0


def choices(found: Config) -> dict[str, Any]:
    """Every value that a manifest may choose."""
    return {
        "intents": {
            name: {
                "group": intent.group,
                "about": intent.about,
                "stages": list(_profile(found, intent.group, name)),
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
                            {"parallel": list(wave.stages)} if wave.is_parallel else wave.stages[0]
                            for wave in profile.waves
                        ],
                        "options": {key: leaf.value for key, leaf in profile.below("options").items()},
                        "from": profile.leaves["stages"].label,
                    }
                    for profile in group.profiles.values()
                },
            }
            for group in found.groups.values()
        },
        "agents": {
            agent.name: {
                "default_model": agent.get("default_model"),
                "allowed_models": None if agent.allowed_models is None else list(agent.allowed_models),
                "efforts": list(agent.efforts),
            }
            for agent in found.agents.values()
        },
        "roles": {
            name: {"about": role.about, "purpose": role.purpose, "writes": role.writes}
            for name, role in ROLES.items()
        },
        "digest_policies": list(DIGEST_POLICIES),
        "workspaces": list(WORKSPACES),
    }


def _profile(found: Config, group: str, name: str) -> tuple[str, ...]:
    profile = found.groups[group].profiles.get(name) if group in found.groups else None
    return profile.stages if profile is not None else ()


def _stages(found: Config, group: str, name: str) -> str:
    profile = found.groups[group].profiles.get(name) if group in found.groups else None
    return _words(profile) if profile is not None else "-"


def _words(profile: Profile) -> str:
    return " → ".join(" + ".join(wave.stages) for wave in profile.waves)


def _show(values: dict[str, Any]) -> int:
    written = written_packet.read(values["packet"], project=values["project"])
    if values["json"]:
        out.data(shown(written))
        return 0
    resolved = written.resolved
    where = f"group {resolved.group}, profile {resolved.profile}"
    out.say(f"{written.manifest.get('task_id')}: {resolved.intent} ({where})", rest="  ")
    limit = written.manifest.get("budgets.max_wallclock_sec")
    rows: list[tuple[str, ...]] = []
    for stage in resolved.stages:
        marks = [stage.group or "", "writes" if stage.writes else "", "approval" if stage.approval else ""]
        timeout = f"{limit}s" if stage.timeout_s is None else f"{min(stage.timeout_s, limit):g}s"
        note = ", ".join(mark for mark in marks if mark) or "-"
        rows.append((stage.name, stage.agent, stage.model or "-", stage.effort or "-", timeout, note))
    wrapped_table.show(("STAGE", "AGENT", "MODEL", "EFFORT", "TIMEOUT", "NOTES"), rows)
    print()
    sources = {**resolved.sources, **_of_the_packet(resolved, limit)}
    wrapped_table.show(("VALUE", "FROM"), list(sources.items()))
    _talk_of_missing(written)
    return 0


def _of_the_packet(resolved: Resolved, limit: float) -> dict[str, str]:
    """Where the time limit of a stage comes from, where the packet's own is the shorter one: it always holds."""
    return {
        f"stages.{stage.name}.timeout_s": "manifest.yaml: budgets.max_wallclock_sec"
        for stage in resolved.stages
        if stage.timeout_s is None or limit <= stage.timeout_s
    }


def shown(written: Written) -> dict[str, Any]:
    """What a packet resolves to, for programs."""
    spec, resolved = written_packet.pipeline_spec(written), written.resolved
    stages: list[dict[str, Any]] = []
    for stage in resolved.stages:
        start = f"stages.{stage.name}."
        sources = {
            path.removeprefix(start): said
            for path, said in resolved.sources.items()
            if path.startswith(start)
        }
        stages.append({**stage.to_json(), "max_wallclock_s": spec.max_wallclock_s, "sources": sources})
    return {
        "schema": "holdfast.pipeline/1",
        "task_id": written.manifest.get("task_id"),
        "project_dir": written.project_dir,
        "workspace": written.manifest.get("workspace"),
        "flags": resolved.flags,
        "options": resolved.options,
        **spec.to_json(),
        "stages": stages,
        "not_installed": _missing(written),
    }


def _check(values: dict[str, Any]) -> int:
    text, path = written_packet.text_of(values["packet"])
    written, problems = written_packet.examine(text, path, project=values["project"])
    if values["json"]:
        out.data(
            {
                "schema": "holdfast.pipeline-check/1",
                "path": path,
                "valid": written is not None,
                "problems": [each.to_json() for each in problems],
                "not_installed": _missing(written) if written is not None else [],
            }
        )
        return 0 if written is not None else 2
    if written is None:
        raise written_packet.invalid(path, problems)
    out.say(f"{path} is valid: {' → '.join(stage.name for stage in written.resolved.stages)}", rest="  ")
    _talk_of_missing(written)
    return 0


def _missing(written: Written) -> list[str]:
    path = os.environ.get("PATH", os.defpath)
    agents = dict.fromkeys(stage.agent for stage in written.resolved.stages)
    able = {name: registry.adapter(name).capabilities for name in agents}
    return [name for name, each in able.items() if each.program and program.find(each, path) is None]


def _talk_of_missing(written: Written) -> None:
    for name in _missing(written):
        out.talk(f"note: {name} is not installed here; 'holdfast agent probe {name}' says more")
