"""holdfast agent: list agents, probe one, or replay a recorded run."""

from __future__ import annotations

import os

from holdfast import files
from holdfast.agents import probe, program, registry
from holdfast.errors import BadPlugin, NotFound, UnreadableFile, UsageError
from holdfast.views.cli.parse.command_spec import JSON, Action, Argument, Command, Option, actions_help
from holdfast.views.cli.show import out, wrapped_table
from holdfast.views.create import check_agent
from holdfast.views.text import fit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.agents.base import Adapter, Capabilities

#: Abilities that `probe` prints; JSON and docs/agents.md have all.
_SHOWN = (
    "can_resume", "chooses_session_id", "locks_session", "stdin_prompt", "appends_system_prompt",
    "usage_scope", "reports_cost", "stale_s", "memory_mb",
)  # fmt: skip
#: Fields that `replay --json` prints.
_REPLAY_FIELDS = (
    "outcome", "session_id", "tools_started", "tools_finished", "input_tokens", "output_tokens", "cost_usd",
    "final_text", "retries_seen",
)  # fmt: skip

_ACTIONS = (
    Action(name="list", summary="list agents (also 'ls')", examples=("holdfast agent list",)),
    Action(
        name="probe",
        usage="AGENT",
        summary="show path, version, signs of a login, abilities",
        description="Exits 3 if the agent is not installed.",
        examples=("holdfast agent probe claude",),
        completes="agent",
    ),
    Action(
        name="replay",
        usage="AGENT STDOUT_FILE",
        summary="show how holdfast reads a run's recorded stdout",
        examples=("holdfast agent replay codex run.stdout.jsonl --stderr run.stderr.txt --exit 1 --json",),
        options=("stderr", "exit", "json"),
        completes="agent",
    ),
)

COMMAND = Command(
    name="agent",
    summary="List agents, probe one, or replay a recorded run.",
    description=actions_help(_ACTIONS) + "\n\n'holdfast agent ACTION --help' explains one.",
    examples=(
        "holdfast agent list",
        "holdfast agent probe claude",
        "holdfast agent replay codex run.stdout.jsonl --stderr run.stderr.txt --exit 1 --json",
    ),
    arguments=(
        Argument(
            dest="action",
            metavar="list|probe|replay",
            choices=("list", "probe", "replay"),
            synonyms={"ls": "list"},
        ),
        Argument(dest="agent", metavar="[AGENT]", required=False, completes="agent"),
        Argument(dest="file", metavar="[STDOUT_FILE]", required=False, completes="file"),
    ),
    actions=_ACTIONS,
    options=(
        Option(
            flags=("--stderr",),
            dest="stderr",
            metavar="FILE",
            completes="file",
            help="For replay: file with the run's stderr.",
        ),
        Option(
            flags=("--exit",),
            dest="exit",
            metavar="N",
            help="For replay: exit status (0); -9 means killed by signal 9.",
        ),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Run the action."""
    action = values["action"]
    if action == "list":
        return _list(values)
    if not values["agent"]:
        raise UsageError(
            f"'agent {action}' needs an agent",
            hint=f"'holdfast agent {action} claude'; 'holdfast agent list' lists them",
        )
    adapter = registry.adapter(values["agent"])
    return _probe(adapter, values) if action == "probe" else _replay(adapter, values)


def _list(values: dict[str, Any]) -> int:
    adapters, broken = _adapters()
    if values["json"]:
        rows = [{"agent": each.name, "path": _path(each), **each.capabilities.to_json()} for each in adapters]
        rows += [{"agent": name, "path": None, "problem": why} for name, why in broken.items()]
        out.data({"schema": "holdfast.agents/1", "agents": rows})
        return 0
    wrapped_table.show(
        ("AGENT", "RESUMES", "COST", "PROGRAM"),
        [
            *((each.name, *_abilities(each.capabilities), _where(each)) for each in adapters),
            *((name, "-", "-", why) for name, why in broken.items()),
        ],
    )
    return 0


def _adapters() -> tuple[list[Adapter], dict[str, str]]:
    """All adapters, and the errors of broken plug-ins: one must not hide the others."""
    adapters: list[Adapter] = []
    broken: dict[str, str] = {}
    for name in registry.names():
        try:
            adapters.append(registry.adapter(name))
        except BadPlugin as error:
            broken[name] = str(error)
    return adapters, broken


def _abilities(capabilities: Capabilities) -> tuple[str, str]:
    resumes = "session" if capabilities.can_resume else "again"
    return resumes, "reported" if capabilities.reports_cost else "unknown"


def _where(adapter: Adapter) -> str:
    if not adapter.capabilities.program:
        return "-"
    return _path(adapter) or f"{adapter.capabilities.program} is not in PATH"


def _path(adapter: Adapter) -> str | None:
    capabilities = adapter.capabilities
    return program.find(capabilities, os.environ.get("PATH", os.defpath)) if capabilities.program else None


def _probe(adapter: Adapter, values: dict[str, Any]) -> int:
    able = adapter.capabilities
    probed = probe.probe(adapter, os.environ, asks=True)
    is_missing = bool(able.program) and probed.path is None
    if values["json"]:
        out.data({"schema": "holdfast.agent/1", **probed.to_json(), **able.to_json()})
        return 3 if is_missing else 0
    if is_missing:
        raise NotFound(
            f"{able.program} is not in PATH",
            hint=f"{check_agent.how_to_install(adapter)}, then: {able.login}",
        )
    facts: dict[str, object] = {
        "agent": probed.agent,
        "path": probed.path,
        "in PATH as": probed.found if probed.is_native else None,
        "version": probed.version,
        "login seen": ", ".join(probed.login_seen)
        or (f"none; log in with: {able.login}" if able.login else None),
        **{name.replace("_", " "): getattr(able, name) for name in _SHOWN},
        "aliases": ", ".join(f"{short} = {long}" for short, long in able.aliases.items()),
        "stop": ", ".join(f"{step.signal} {step.pause_s:g}s" for step in able.stop),
    }
    facts |= {f"permissions {each.profile}": each.means for each in able.permissions}
    for name, value in facts.items():
        if value is not None and value != "":
            out.fact(name, _text(value), at=23)
    return 0


def _replay(adapter: Adapter, values: dict[str, Any]) -> int:
    from holdfast.agents.replay import replay

    if not values["file"]:
        raise UsageError(
            "'agent replay' needs the file with the run's stdout",
            hint="'holdfast agent replay AGENT STDOUT_FILE'",
        )
    try:
        exit = int(values["exit"]) if values["exit"] is not None else None
    except ValueError:
        raise UsageError(
            f"--exit {values['exit']!r} is not a number", hint="-9 means killed by signal 9"
        ) from None
    stderr = _bytes(values["stderr"]).decode("utf-8", "replace") if values["stderr"] else ""
    result = replay(adapter, _bytes(values["file"]), stderr, exit)
    if values["json"]:
        out.data({name: result[name] for name in _REPLAY_FIELDS})
        return 0
    for name, value in result.items():
        out.fact(name, _text(value), at=16)
    return 0


def _bytes(path: str) -> bytes:
    try:
        return files.read_argument(path)
    except OSError as error:
        raise UnreadableFile(
            f"cannot read {path}: {error.strerror}", hint="check path and permissions"
        ) from None


def _text(value: object) -> str:
    if value is None or value == "":
        return "-"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else fit_text.printable(str(value))
