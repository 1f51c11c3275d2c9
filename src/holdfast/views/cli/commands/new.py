"""holdfast new: write a packet to begin with."""

from __future__ import annotations

import os
import shlex

from holdfast import ids
from holdfast.errors import InvalidManifest, UsageError
from holdfast.pipeline.define import new_packet, written_packet
from holdfast.pipeline.define.intents import INTENTS
from holdfast.pipeline.define.new_packet import Draft
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.show import out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="new",
    summary="Write a packet: a folder with manifest.yaml, the request and a context pack.",
    description="It makes the folder (default: one named like the task, here), with every choice explained in comments, and "
    "prints its path. Edit it, then 'holdfast pipeline check DIR' and 'holdfast run --packet DIR'. With --from-plan the "
    "request is an approved plan: its goal, its Verify Commands and its Acceptance become those of the packet.",
    examples=(
        'holdfast new --intent safe_impl --goal "add retries to the client" --allow src/ --accept "make test"',
        'holdfast new fix-login --intent one_shot_impl --goal "fix the login"',
        "holdfast new --intent safe_impl --from-plan plan.md",
    ),
    arguments=(Argument(dest="dir", metavar="[DIR]", required=False, completes="folder"),),
    options=(
        Option(flags=("--intent",), dest="intent", choices=tuple(INTENTS), help="What it is for."),
        Option(flags=("--goal",), dest="goal", metavar="TEXT", help="What is wanted, in one sentence."),
        Option(
            flags=("--id",), dest="id", metavar="ID", help="The task's id (default: made from date and goal)."
        ),
        Option(
            flags=("--project",),
            dest="project",
            metavar="DIR",
            completes="folder",
            help="Where the agents will work.",
        ),
        Option(
            flags=("--allow",), dest="allow", kind="many", metavar="PATH", help="A path that may be changed."
        ),
        Option(
            flags=("--deny",),
            dest="deny",
            kind="many",
            metavar="PATH",
            help="A path that must not be changed.",
        ),
        Option(
            flags=("--accept",),
            dest="accept",
            kind="many",
            metavar="COMMAND",
            help="A command that must succeed in the end.",
        ),
        Option(
            flags=("--profile",),
            dest="profile",
            metavar="NAME",
            help="A profile of the pipeline ('pipeline list').",
        ),
        Option(
            flags=("--from-plan",),
            dest="plan",
            metavar="FILE",
            completes="file",
            help="The plan that is to be carried out.",
        ),
        JSON.evolve(help="Print the path and the id as JSON."),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Write it, and prove that it can be run as written."""
    if values["intent"] is None:
        raise UsageError("no intent was given", hint=f"--intent is one of {', '.join(INTENTS)}")
    plan = new_packet.read_plan(values["plan"]) if values["plan"] else None
    goal = (values["goal"] or "").strip() or (new_packet.goal_of(plan) if plan else "")
    if not goal:
        raise UsageError("no goal was given", hint='--goal "what is wanted, in one sentence"')
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
        plan=plan,
        paid_call_budget=12 if values["intent"] == "post_impl_review" else new_packet.PAID_CALL_BUDGET,
    )
    draft = new_packet.from_plan(draft)
    _check(draft, folder, values["project"])
    new_packet.write(folder, draft)
    for each in draft.refused:
        out.talk(f"a command of the plan is left out, {each}")
    if values["json"]:
        out.data({"schema": "holdfast.new/1", "task_id": task_id, "path": folder})
    else:
        print(folder)
        out.talk(f"edit {os.path.join(folder, written_packet.NAME)}, then:")
        out.step(shlex.join(["holdfast", "run", "--packet", folder]), "")
    return 0


def _project(chosen: str | None, folder: str) -> str | None:
    """As the packet will see it: relative where that is short, so that both can move together."""
    if chosen is None:
        return None
    path = os.path.abspath(chosen)
    relative = os.path.relpath(path, folder)
    return relative if relative.count("..") <= 2 else path


def _check(draft: Draft, folder: str, project: str | None) -> None:
    """What is wrong on the command line is told before anything is written."""
    _, problems = written_packet.examine(
        new_packet.manifest(draft).encode(), os.path.join(folder, written_packet.NAME), project=project
    )
    if problems:
        raise InvalidManifest(
            "a packet of these values would not be valid",
            details=tuple(str(each.evolve(file=written_packet.NAME, line=0)) for each in problems),
            hint="'holdfast pipeline list' shows what can be chosen",
        )
