"""holdfast new: create a packet."""

from __future__ import annotations

import os
import shlex

from holdfast import ids
from holdfast.errors import HoldfastError, InvalidManifest, UsageError
from holdfast.pipeline.define import from_plan, new_packet, written_packet
from holdfast.pipeline.define.intents import INTENTS
from holdfast.pipeline.define.new_packet import Draft
from holdfast.store import audit, trust
from holdfast.views.cli.create.task_options import PERMISSIONS
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.show import out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.pipeline.define.written_packet import WrittenPacket

COMMAND = Command(
    name="new",
    summary="Create a packet: the input of a pipeline.",
    description="Creates a folder (default: named after the task, here) with a commented manifest.yaml, the "
    "request and a context pack, and prints its path. Edit it, then run 'holdfast pipeline check DIR' and "
    "'holdfast run --packet DIR'. With --from-plan, the request is an approved plan whose goal, Verify "
    "Commands and Acceptance become those of the packet.",
    examples=(
        'holdfast new --intent safe_impl --goal "add retries to the client" --allow src/ '
        '--accept "make test"',
        'holdfast new fix-login --intent one_shot_impl --goal "fix the login"',
        "holdfast new --intent safe_impl --from-plan plan.md",
    ),
    arguments=(Argument(dest="dir", metavar="[DIR]", required=False, completes="folder"),),
    options=(
        Option(flags=("--intent",), dest="intent", choices=tuple(INTENTS), help="Kind of work."),
        Option(flags=("--goal",), dest="goal", metavar="TEXT", help="The goal, in one sentence."),
        Option(flags=("--id",), dest="id", metavar="ID", help="Task id (default: from date and goal)."),
        Option(
            flags=("--project",),
            dest="project",
            metavar="DIR",
            completes="folder",
            help="Directory the agents work in.",
        ),
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
        JSON.evolve(help="Print the path and the id as JSON."),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Check the values, then write the packet."""
    if values["intent"] is None:
        raise UsageError("missing --intent", hint=f"one of {', '.join(INTENTS)}")
    plan = from_plan.read_plan(values["plan"]) if values["plan"] else None
    goal = (values["goal"] or "").strip() or (from_plan.goal_of(plan) if plan else "")
    if not goal:
        raise UsageError("missing --goal", hint='for example --goal "add retries to the client"')
    task_id = ids.new_task_id(goal) if values["id"] is None else ids.check_task_id(values["id"])
    folder = os.path.abspath(values["dir"] or task_id)
    draft = Draft(
        task_id=task_id,
        goal=goal,
        intent=values["intent"],
        project=_project(values["project"], folder),
        allow=tuple(values["allow"]),
        deny=tuple(values["deny"]),
        commands=tuple(values["accept"]),
        profile=values["profile"],
        permissions=values["permissions"],
        plan=plan,
        paid_call_budget=12 if values["intent"] == "post_impl_review" else new_packet.PAID_CALL_BUDGET,
    )
    draft = from_plan.filled(draft)
    written = _check(draft, folder, values["project"])
    new_packet.write(folder, draft)
    if plan is None:
        _trust(folder, written)
    for each in draft.refused:
        out.talk(f"command of the plan left out: {each}")
    if values["json"]:
        out.data({"schema": "holdfast.new/1", "task_id": task_id, "path": folder})
    else:
        print(folder)
        out.talk(f"edit {os.path.join(folder, written_packet.NAME)}, then:")
        out.step(shlex.join(["holdfast", "run", "--packet", folder]), "")
    return 0


def _project(chosen: str | None, folder: str) -> str | None:
    """The project's path for the manifest: relative if that is short, so that both can be moved together."""
    if chosen is None:
        return None
    path = os.path.abspath(chosen)
    relative = os.path.relpath(path, folder)
    return relative if relative.count("..") <= 2 else path


def _trust(folder: str, written: WrittenPacket) -> None:
    """The user typed what the packet has. An edit, by whomever, needs trust again."""
    part = written_packet.part_of(written)
    if not part.needs or not trust.is_in_repository(folder, written.project_dir):
        return
    try:
        trust.accept(folder, [part], by=audit.whoami())
    except (HoldfastError, OSError):
        return  # 'run' asks for it


def _check(draft: Draft, folder: str, project: str | None) -> WrittenPacket:
    """Raises InvalidManifest if the packet would be invalid, before anything is written."""
    written, problems = written_packet.examine(
        new_packet.manifest(draft).encode(), os.path.join(folder, written_packet.NAME), project=project
    )
    if written is None:
        raise InvalidManifest(
            "these values do not make a valid packet",
            details=tuple(str(each.evolve(file=written_packet.NAME, line=0)) for each in problems),
            hint="'holdfast pipeline list' shows the available pipelines",
        )
    return written
