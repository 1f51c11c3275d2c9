"""holdfast new: create a packet."""

from __future__ import annotations

import os
import shlex
import sys

from holdfast import ids, paths
from holdfast.config import needs
from holdfast.errors import HoldfastError, InvalidManifest, UsageError
from holdfast.packet import asker, load
from holdfast.pipeline.define import from_plan, new_packet, written_packet
from holdfast.pipeline.define.intents import INTENTS
from holdfast.pipeline.define.new_packet import Draft
from holdfast.store import audit, foreign, trust
from holdfast.store.layout import Home
from holdfast.views import option_values
from holdfast.views.cli.commands import run as run_verb
from holdfast.views.cli.parse import command_spec
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.parse.task_options import LABEL, PERMISSIONS, PROJECT, TRUST_PROJECT
from holdfast.views.cli.show import out, prompt
from holdfast.views.create import agent_options
from holdfast.views.facts import pipelines
from holdfast.views.text import next_steps
from holdfast.views.text.fit_text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.pipeline.define.written_packet import WrittenPacket

#: The kind of work that people usually want.
DEFAULT_INTENT = "safe_impl"

COMMAND = Command(
    name="new",
    summary="Create a packet, the input of a pipeline, and optionally run it.",
    description="Creates a folder (default: named after the task, here) with a commented manifest.yaml, the "
    "request and a context pack, and prints its path. Edit it, then run 'holdfast pipeline check DIR' and "
    "'holdfast run --packet DIR'. With --run it is run at once, in a new git worktree if the project is a "
    "repository, and no folder is kept unless you name one. With --from-plan, the request is an approved "
    "plan whose goal, Verify Commands and Acceptance become those of the packet; commands of a plan inside a "
    "project run only after you trusted them. A template has options of this command, with variables; it is "
    "a file in ~/.config/holdfast/templates/ or, if you trust the project, in .holdfast/templates/.",
    examples=(
        'holdfast new --agent claude --goal "make the tests pass" --accept "pytest -x" --run',
        'holdfast new --intent safe_impl --goal "add retries to the client" --allow src/ '
        '--accept "make test"',
        'holdfast new fix-login --intent one_shot_impl --goal "fix the login"',
        "holdfast new --intent safe_impl --from-plan plan.md",
        "holdfast new --template failing-test --var test=tests/test_login.py --run",
    ),
    arguments=(Argument(dest="dir", metavar="[DIR]", required=False, completes="folder"),),
    options=(
        Option(
            flags=("--intent",),
            dest="intent",
            choices=tuple(INTENTS),
            help="Kind of work (default: safe_impl).",
        ),
        Option(flags=("--goal",), dest="goal", metavar="TEXT", help="The goal, in one sentence."),
        Option(
            flags=("--agent",),
            dest="agent",
            metavar="NAME",
            completes="agent",
            help="One agent for all roles (default: those of the profile).",
        ),
        Option(flags=("--id",), dest="id", metavar="ID", help="Task id (default: from date and goal)."),
        PROJECT.evolve(help="Directory the agents work in."),
        Option(
            flags=("--allow",),
            dest="allow",
            kind="many",
            metavar="PATH",
            help="Path that may be changed; repeatable.",
        ),
        Option(
            flags=("--deny",),
            dest="deny",
            kind="many",
            metavar="PATH",
            help="Path that must not be changed; repeatable.",
        ),
        Option(
            flags=("--accept",),
            dest="accept",
            kind="many",
            metavar="COMMAND",
            help="Command that must succeed at the end; repeatable.",
        ),
        Option(
            flags=("--profile",),
            dest="profile",
            metavar="NAME",
            help="Pipeline profile (see 'pipeline list').",
        ),
        PERMISSIONS,
        Option(
            flags=("--from-plan",),
            dest="plan",
            metavar="FILE",
            completes="file",
            help="Plan to carry out.",
        ),
        Option(
            flags=("--template",),
            dest="template",
            metavar="NAME",
            help="Use the options of a template; those given here replace them.",
        ),
        Option(
            flags=("--var",),
            dest="var",
            kind="many",
            metavar="KEY=VALUE",
            help="Variable of the template; repeatable.",
        ),
        Option(
            flags=("--worktree",),
            dest="worktree",
            kind="flag",
            help="Work in a separate git worktree ('holdfast apply' or 'pr' takes the result from there).",
        ),
        Option(flags=("--in-place",), dest="in_place", kind="flag", help="Work in the project itself."),
        Option(flags=("--run",), dest="run", kind="flag", help="Run it now, and follow it like 'run'."),
        Option(flags=("-d", "--detach"), dest="detach", kind="flag", help="With --run: do not follow it."),
        LABEL,
        TRUST_PROJECT,
        JSON.evolve(help="Print the path and the id as JSON; with --run, the final manifest."),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Check the values, then write the packet, or run it."""
    _check_options(values)
    project = paths.project(values["project"])
    judge = trust.TrustCheck(project, by_flag=values["trust_project"])
    values = _with_template(values, project, judge)
    plan = _plan(values["plan"], project)
    goal = (values["goal"] or "").strip() or (from_plan.goal_of(plan) if plan else "")
    if not goal:
        raise UsageError("missing --goal", hint='for example --goal "add retries to the client"')
    intent = values["intent"] or DEFAULT_INTENT
    task_id = ids.new_task_id(goal) if values["id"] is None else ids.check_task_id(values["id"])
    folder = os.path.abspath(values["dir"] or task_id)
    is_kept = not values["run"] or values["dir"] is not None
    draft = Draft(
        task_id=task_id,
        goal=goal,
        intent=intent,
        project=_project(values["project"], folder) if is_kept else project,
        allow=tuple(values["allow"]),
        deny=tuple(values["deny"]),
        commands=tuple(values["accept"]),
        criteria=tuple(values.get("criteria") or ()),
        agent=values["agent"],
        profile=values["profile"],
        permissions=values["permissions"],
        labels=tuple(f"{key}={text}" for key, text in option_values.labels(values["label"]).items()),
        workspace=_workspace(values, project, changes=INTENTS[intent].changes),
        request=values.get("request") or "",
        plan=plan,
        paid_call_budget=values.get("paid_call_budget")
        or (12 if intent == "post_impl_review" else new_packet.PAID_CALL_BUDGET),
        max_wallclock_s=values.get("max_wallclock_sec") or new_packet.MAX_WALLCLOCK_S,
    )
    draft = from_plan.filled(
        draft,
        is_foreign=plan is not None and foreign.is_foreign(values["plan"], project, paths.project(None)),
    )
    written = _check(draft, folder, values["project"], trust_project=values["trust_project"])
    for line in (*judge.notices(), *pipelines.one_agent_notes(written)):
        out.talk(line)
    for each in draft.refused:
        out.talk(f"command of the plan left out: {each}")
    if values["run"] and not is_kept:
        with new_packet.temporary(draft) as place:
            return _run(place, draft, values)
    foreign.refuse_way_out(folder, project)
    new_packet.write(folder, draft)
    is_trusted = _trust(folder, written, draft, values)
    if values["run"]:
        return _run(folder, draft, values)
    if values["json"]:
        out.data({"schema": "holdfast.new/1", "task_id": task_id, "path": folder})
    else:
        print(folder)
        out.talk(f"edit {os.path.join(folder, written_packet.NAME)}, then:")
        if not is_trusted:
            out.step(shlex.join(["holdfast", "trust", folder]), "")
        out.step(shlex.join(["holdfast", "run", "--packet", folder]), "")
    return 0


def _check_options(values: dict[str, Any]) -> None:
    option_values.only_one(values, "worktree", "in_place")
    if values["detach"] and not values["run"]:
        raise UsageError("--detach needs --run", hint="'holdfast new --run -d …' starts it in the background")
    if values["run"] and values["plan"]:
        raise UsageError(
            "--run and --from-plan exclude each other",
            hint="a plan contains commands: create the packet, read it, then run it",
        )
    if values["var"] and not values["template"]:
        raise UsageError("--var needs --template", hint="'holdfast new --template NAME --var KEY=VALUE'")


def _with_template(values: dict[str, Any], project: str, judge: trust.TrustCheck) -> dict[str, Any]:
    """The values with those of the template. What the command line has replaces them."""
    if values["template"] is None:
        return values
    from holdfast.pipeline.define import packet_template

    given = dict(agent_options.pair("--var", text) for text in values["var"])
    filled = packet_template.load(values["template"], project, judge).filled(given)
    workspace = filled.pop("workspace", None)
    if workspace is not None and not (values["worktree"] or values["in_place"]):
        filled["worktree" if workspace == "worktree" else "in_place"] = True
    return {**filled, **{name: value for name, value in values.items() if value or name not in filled}}


def _workspace(values: dict[str, Any], project: str, *, changes: bool) -> str:
    """Where the agents work. With --run, a worktree if there can be one: it ends as a branch.

    Raises UsageError if files that were not committed would be missing there.
    """
    if values["worktree"] or values["in_place"] or not (values["run"] and changes):
        return "worktree" if values["worktree"] else "in_place"
    from holdfast.workspace import changed_files, git
    from holdfast.workspace.snapshots.changes import few

    try:
        repository = git.find(project)
        if repository is None or git.head(repository) is None:
            out.talk(
                f"note: {project} is not a git repository with a commit, so the agents work on your files"
            )
            return "in_place"
        with git.within(git.VIEW_S):
            missing = changed_files.listed(repository)
    except HoldfastError:
        return "in_place"  # 'run' reports what is wrong with git
    if missing:
        raise UsageError(
            f"the agents work in a new worktree, which would lack what is not committed: {few(missing)}",
            hint="commit it, or choose: --in-place works on your files, --worktree without these changes",
        )
    return "worktree"


def _run(folder: str, draft: Draft, values: dict[str, Any]) -> int:
    """Run the packet and follow it; at its end, say what to do with the work."""
    chosen = {name: values[name] for name in ("project", "trust_project", "json", "detach")}
    chosen["project"] = paths.project(values["project"])
    chosen["manifest"] = new_packet.manifest(draft).encode()
    status = run_verb.run({**command_spec.defaults(run_verb.COMMAND), **chosen, "packet": folder})
    if status == 0 and not values["detach"] and draft.workspace == "in_place":
        packet = Home(paths.home()).packet(draft.task_id)
        action = next_steps.read(packet, load.read_manifest(packet), workspace=draft.workspace)
        out.steps([(step.command, step.does) for step in action.choices])
    return status


def _project(chosen: str | None, folder: str) -> str | None:
    """The project's path for the manifest: relative if that is short, so that both can be moved together."""
    if chosen is None:
        return None
    path = os.path.abspath(chosen)
    relative = os.path.relpath(path, folder)
    return relative if relative.count("..") <= 2 else path


def _trust(folder: str, written: WrittenPacket, draft: Draft, values: dict[str, Any]) -> bool:
    """Trust what the user typed, unless it was an agent, and commands of another's plan if the user says so.
    Inside a project, an edit, by whomever, needs trust again. Returns whether the packet may be run."""
    part = written_packet.part_of(written)
    is_agent = asker.find().kind == "agent"
    if draft.needs_trust:
        out.talk("commands of the plan, which is inside a project:")
        for command in draft.commands:
            out.talk(f"  {visible(needs.text(command))}")
        if not values["trust_project"] and (is_agent or values["json"] or not _is_confirmed()):
            return False
    if is_agent:
        return not part.needs
    try:
        trust.accept(folder, [part], by=audit.whoami(), is_new=True)
    except (HoldfastError, OSError):
        return not part.needs  # 'run' asks for it
    return True


def _is_confirmed() -> bool:
    return sys.stdin.isatty() and prompt.is_confirmed("Trust these commands?")


def _plan(name: str | None, project: str) -> str | None:
    """The text of the plan, if there is one."""
    if not name:
        return None
    foreign.refuse_way_out(name, project)
    return from_plan.read_plan(name)


def _check(draft: Draft, folder: str, project: str | None, *, trust_project: bool) -> WrittenPacket:
    """Raises InvalidManifest if the packet would be invalid, before anything is written."""
    written, problems = written_packet.examine(
        new_packet.manifest(draft).encode(),
        os.path.join(folder, written_packet.NAME),
        project=project,
        trust_project=trust_project,
    )
    if written is None:
        raise InvalidManifest(
            "these values do not make a valid packet",
            details=tuple(str(each.evolve(file=written_packet.NAME, line=0)) for each in problems),
            hint="'holdfast pipeline list' shows the available pipelines",
        )
    return written
