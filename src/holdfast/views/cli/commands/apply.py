"""holdfast apply: bring what a task did in its worktree into the project."""

from __future__ import annotations

from holdfast import paths
from holdfast.errors import NotPossible
from holdfast.model.status import ENDS, Status
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views.cli.parse.command_spec import JSON, TASK, Command, Option
from holdfast.views.cli.show import amounts, out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="apply",
    summary="Bring what a task did in its worktree into your own tree.",
    description="What is uncommitted in the worktree is committed there, and what is checked out there, on whatever branch, is merged into the "
    "branch that you have checked out; commits in submodules come too. Of a packet, only what is in its scope comes over, and what is left out is named. Where that would be a conflict, or files of yours are in the way, nothing is changed. No hook runs.",
    examples=("holdfast apply 20260131-fix", "holdfast apply 20260131-fix --patch"),
    arguments=(TASK,),
    options=(
        Option(
            flags=("--patch",),
            dest="patch",
            kind="flag",
            help="Change the files only, and commit nothing.",
        ),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Apply, and say what came over."""
    from holdfast.workspace.worktrees.apply import apply, named

    packet = load.find(Home(paths.home()), values["task"])
    manifest = load.read_manifest(packet)
    state = manifest["status"]
    if state not in ENDS and state != Status.INTERRUPTED:
        raise NotPossible(
            f"{packet.task_id} has not ended: it is {state}",
            hint=f"'holdfast wait {packet.task_id}' waits for it, 'holdfast stop {packet.task_id}' ends it",
        )
    # The words of a command are no title: they are long, and may hold anything.
    goal = manifest.get("task_name") if manifest.get("agent") == "command" else manifest.get("goal")
    applied = apply(packet, goal=goal or "", as_patch=values["patch"])
    if values["json"]:
        out.data({"schema": "holdfast.apply/1", "task_id": packet.task_id, **applied.to_json()})
        return 0
    files = amounts.plural(len(applied.paths), "file")
    if applied.how == "merge":
        out.talk(f"merged {packet.task_id} into {applied.branch} of {applied.into}: {files}")
    else:
        out.talk(f"changed {files} in {applied.into}, nothing is committed")
    if applied.squashed:
        out.talk(
            "its commits came as one: they changed what is outside the scope, which was taken back since"
        )
    if applied.submodules:
        which = " ".join(applied.submodules)
        out.talk(
            f"'git submodule update --recursive {which}' checks out what is new in {named(applied.submodules)}"
        )
    if applied.left_out:
        out.talk(f"left out, outside the scope: {named(applied.left_out)}")
    return 0
