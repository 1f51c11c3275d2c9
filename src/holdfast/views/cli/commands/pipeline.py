"""holdfast pipeline: list pipelines, show or check a packet, or index results."""

from __future__ import annotations

from itertools import groupby

from holdfast import paths
from holdfast.errors import CommandNotFound, HoldfastError, UsageError
from holdfast.model import roles
from holdfast.model.acceptance import accepting
from holdfast.pipeline.define import load_catalog, written_packet
from holdfast.pipeline.define.intents import INTENTS, OPTIONS
from holdfast.pipeline.results import task_index
from holdfast.store.layout import Home
from holdfast.store.trust import TrustCheck
from holdfast.views.cli.parse.command_spec import JSON, Action, Argument, Command, Option, actions_help
from holdfast.views.cli.rows import estimate_rows
from holdfast.views.cli.show import out, wrapped_table
from holdfast.views.facts import estimates, pipelines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from holdfast.model.spec import StageSpec
    from holdfast.pipeline.define.catalog import Catalog, Profile
    from holdfast.pipeline.define.resolve import Resolved
    from holdfast.pipeline.define.written_packet import WrittenPacket

_PROJECT = ("project", "trust_project", "json")
_ACTIONS = (
    Action(
        name="list",
        summary="list the available pipelines (also 'ls')",
        description="With --json: all values that a manifest may have.",
        examples=("holdfast pipeline list", "holdfast pipeline list --json"),
        options=_PROJECT,
    ),
    Action(
        name="show",
        usage="PACKET",
        summary="show its stages, and where each value comes from",
        examples=("holdfast pipeline show my-packet", "holdfast pipeline show my-packet --estimate"),
        options=("estimate", *_PROJECT),
        completes="folder",
    ),
    Action(
        name="check",
        usage="PACKET",
        summary="report all problems; exits 2 if there are any",
        description="All mistakes in the packet's files are reported together, then what 'run --packet' "
        "would refuse here. A missing agent and missing trust are only notes. Nothing is run.",
        examples=("holdfast pipeline check my-packet",),
        options=_PROJECT,
        completes="folder",
    ),
    Action(
        name="index",
        summary="list results by task and phase",
        description="Writes task-index.json into the home.",
        examples=("holdfast pipeline index",),
    ),
)

COMMAND = Command(
    name="pipeline",
    summary="List pipelines, show or check a packet, or index results.",
    description=actions_help(_ACTIONS)
    + "\n\nNothing is run. 'holdfast pipeline ACTION --help' explains one.",
    examples=(
        "holdfast pipeline list",
        "holdfast pipeline check my-packet",
        "holdfast pipeline show my-packet --json",
        "holdfast pipeline show my-packet --estimate",
        "holdfast pipeline index",
    ),
    arguments=(
        Argument(
            dest="action",
            metavar="list|show|check|index",
            choices=("list", "show", "check", "index"),
            synonyms={"ls": "list"},
        ),
        Argument(dest="packet", metavar="[PACKET]", required=False, completes="folder"),
    ),
    actions=_ACTIONS,
    options=(
        Option(
            flags=("--project",),
            dest="project",
            metavar="DIR",
            completes="folder",
            help="Project directory (default: here).",
        ),
        Option(
            flags=("--trust-project",),
            dest="trust_project",
            kind="flag",
            help="Include settings of a project that you do not trust.",
        ),
        Option(
            flags=("--estimate",),
            dest="estimate",
            kind="flag",
            help="With show: calls, tokens, cost and time, from the history of this home.",
        ),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Run the action."""
    action = values["action"]
    if values["estimate"] and action != "show":
        raise UsageError("--estimate needs 'pipeline show'", hint="'holdfast pipeline show DIR --estimate'")
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
    project = paths.project(values["project"])
    judge = TrustCheck(project, by_flag=values["trust_project"])
    config = load_catalog.load(project, judge)
    for line in judge.notices():
        out.talk(line)
    if values["json"]:
        out.data({"schema": "holdfast.pipelines/1", **pipelines.available(config)})
        return 0
    rows = [
        (name, intent.group, _stages(config, intent.group, name), intent.about)
        for name, intent in INTENTS.items()
    ]
    wrapped_table.show(("INTENT", "GROUP", "STAGES", "ABOUT"), rows)
    print()
    others = [
        (profile.name, group.name, _stage_names(profile))
        for group in config.groups.values()
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
        for agent in config.agents.values()
    ]
    wrapped_table.show(("AGENT", "MODEL", "ALLOWED"), rows)
    print()
    options = [(name, ", ".join(option.values), ", ".join(option.groups)) for name, option in OPTIONS.items()]
    flags = [(name, "true, false", group.name) for group in config.groups.values() for name in group.flags]
    wrapped_table.show(("OPTION OR FLAG", "VALUES", "GROUP"), [*options, *flags])
    return 0


def _index(values: dict[str, Any]) -> int:
    home = Home(paths.home())
    index = task_index.update(home)
    if values["json"]:
        out.data(index)
        return 0
    rows = [
        (task_id, entry["status"] or "-", name, stage["stage"], stage["artifact"] or "-")
        for task_id, entry in index["tasks"].items()
        for name, stages in entry["phases"].items()
        for stage in stages
    ]
    if rows:
        wrapped_table.show(("TASK", "STATUS", "PHASE", "STAGE", "RESULT"), rows)
    else:
        out.talk("no task has results of stages; 'holdfast new --help' explains how to create a packet")
    return 0


def _stages(config: Catalog, group: str, name: str) -> str:
    profile = config.groups[group].profiles.get(name) if group in config.groups else None
    return _stage_names(profile) if profile is not None else "-"


def _stage_names(profile: Profile) -> str:
    return " → ".join(" + ".join(batch.stages) for batch in profile.batches)


def _show(values: dict[str, Any]) -> int:
    written = written_packet.read(
        values["packet"], project=values["project"], trust_project=values["trust_project"]
    )
    for line in written.judge.notices():
        out.talk(line)
    estimate = estimates.of_packet(Home(paths.home()), written) if values["estimate"] else None
    if values["json"]:
        more = {} if estimate is None else {"estimate": estimate.to_json()}
        out.data({**pipelines.resolved(written), **more})
        return 0
    if estimate is not None:
        wrapped_table.show(estimate_rows.HEAD, estimate_rows.rows(estimate))
        for line in estimate_rows.notes(estimate):
            out.say(line, rest="  ")
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
    out.say(_acceptance(written), rest="  ")
    print()
    sources = {**resolved.sources, **_timeout_sources(resolved, limit)}
    wrapped_table.show(("VALUE", "FROM"), list(sources.items()))
    _print_missing(written)
    return 0


def _timeout_sources(resolved: Resolved, limit: float) -> dict[str, str]:
    """The source of each stage's time limit where the packet's own limit is the shorter one."""
    return {
        f"stages.{stage.name}.timeout_s": "manifest.yaml: budgets.max_wallclock_sec"
        for stage in resolved.stages
        if stage.timeout_s is None or limit <= stage.timeout_s
    }


def _check(values: dict[str, Any]) -> int:
    text, path = written_packet.text_of(values["packet"])
    written, problems = written_packet.examine(
        text, path, project=values["project"], trust_project=values["trust_project"]
    )
    refusal, note = _refusals(values) if written is not None else (None, None)
    if values["json"]:
        out.data(
            {
                "schema": "holdfast.pipeline-check/1",
                "path": path,
                "valid": written is not None,
                "problems": [problem.to_json() for problem in problems],
                "refusal": None if refusal is None else {"message": str(refusal), "hint": refusal.hint},
                "accepted_by": list(accepting(written.resolved.stages)) if written is not None else [],
                "not_installed": pipelines.missing_agents(written) if written is not None else [],
            }
        )
        return 0 if written is not None and refusal is None else 2
    if written is None:
        raise written_packet.invalid(path, problems)
    if refusal is not None:
        raise refusal
    for line in written.judge.notices():
        out.talk(line)
    out.say(f"{path} is valid: {_in_order(written.resolved.stages)}", rest="  ")
    out.say(_acceptance(written), rest="  ")
    _print_missing(written)
    if note is not None:
        out.talk(f"note: 'run' refuses it for now: {note}; {note.hint}")
    return 0


def _in_order(stages: Sequence[StageSpec]) -> str:
    """`codex_impl → codex_review + gemini_review`: those that run in parallel have a plus."""
    groups = groupby(stages, key=lambda stage: stage.group or stage.name)
    return " → ".join(" + ".join(stage.name for stage in group) for _, group in groups)


def _refusals(values: dict[str, Any]) -> tuple[HoldfastError | None, HoldfastError | None]:
    """Why `run --packet` refuses a valid packet, and why it refuses it only on this machine: an agent is not
    installed, or the packet is not trusted. A packet may be checked where it is not run, so the second is
    only a note."""
    found = _refusal(values, trust_project=values["trust_project"])
    if isinstance(found, CommandNotFound):
        return None, None  # noted by name
    if found is None or values["trust_project"]:
        return found, None
    trusted = _refusal(values, trust_project=True)
    return (None, found) if trusted is None or isinstance(trusted, CommandNotFound) else (trusted, None)


def _refusal(values: dict[str, Any], *, trust_project: bool) -> HoldfastError | None:
    from holdfast.views.create import from_packet  # loads every adapter

    chosen = {"project": values["project"], "trust_project": trust_project}
    try:
        from_packet.read(values["packet"], values=chosen, talk=_say_nothing)
    except HoldfastError as error:
        return error
    return None


def _say_nothing(text: str) -> None:
    """The notices of a task that is not created."""


def _acceptance(written: WrittenPacket) -> str:
    """How many acceptance commands there are, and where they run."""
    count, stages = len(written.manifest.get("acceptance.commands")), written.resolved.stages
    where = f"in the gate of {' and '.join(accepting(stages))}"
    later = "; the brief may add some" if any(roles.get(stage.role).is_brief for stage in stages) else ""
    return f"acceptance commands: {f'{count}, {where}' if count else 'none'}{later}"


def _print_missing(written: WrittenPacket) -> None:
    for line in pipelines.one_agent_notes(written):
        out.talk(line)
    for name in pipelines.missing_agents(written):
        out.talk(f"note: {name} is not installed; 'holdfast agent probe {name}' shows more")
