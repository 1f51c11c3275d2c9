"""holdfast apply: merge the work in a task's worktree into the project."""

from __future__ import annotations

import shlex
import sys

from holdfast import paths
from holdfast.model import concerns
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views import delivery
from holdfast.views.cli.parse.command_spec import JSON, TASK, Command, Option
from holdfast.views.cli.show import out, prompt, terminal
from holdfast.views.text import amounts, describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Packet

COMMAND = Command(
    name="apply",
    summary="Merge the work in a task's worktree into the project.",
    description="Commits what is uncommitted in the worktree and merges its HEAD into your current branch, "
    "including commits in submodules. For a packet, only changes inside its scope are merged; the others "
    "are listed. On a conflict, or if your own files are in the way, nothing is changed. Hooks are not run. "
    "Work that a gate refused, such as its acceptance, or that a fan-out left out, is merged only with "
    "--force, or after a question on a terminal; that of a task that failed otherwise, or that reviewers "
    "object to, with a warning.",
    examples=("holdfast apply 20260131-fix", "holdfast apply 20260131-fix --patch"),
    arguments=(TASK,),
    options=(
        Option(
            flags=("--patch",),
            dest="patch",
            kind="flag",
            help="Change the files, but commit nothing.",
        ),
        Option(flags=("--force",), dest="force", kind="flag", help="Merge work that was refused."),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Apply, and print what was merged."""
    from holdfast.workspace.snapshots.changes import few

    packet = load.find(Home(paths.home()), values["task"])
    applied = delivery.apply(
        packet,
        as_patch=values["patch"],
        force=values["force"] or _is_confirmed(packet),
        warn=lambda text: out.talk(f"warning: {text}"),
    )
    if values["json"]:
        out.data({"schema": "holdfast.apply/1", "task_id": packet.task_id, **applied.to_json()})
        return 0
    files = amounts.plural(len(applied.paths), "file")
    if applied.was_there:
        out.talk(f"the work of {packet.task_id} is in {applied.into} already: {files}")
    elif applied.how == "merge":
        out.talk(f"merged {packet.task_id} into {applied.branch} of {applied.into}: {files}")
    else:
        out.talk(f"changed {files} in {applied.into}; nothing committed")
    if applied.squashed:
        out.talk("its commits were squashed: some changed files outside the scope, which was reverted later")
    if applied.submodules:
        which = " ".join(map(shlex.quote, applied.submodules))
        out.talk(f"'git submodule update --recursive {which}' updates {few(applied.submodules)}")
    if applied.left_out:
        out.talk(f"left out (outside the scope): {few(applied.left_out)}")
    for path in applied.unreadable:
        out.talk(f"warning: {path} cannot be read, so what is in it was not applied; 'chmod u+rx' opens it")
    if applied.unjudged:
        out.talk(f"warning: changed after the last gate passed, and not checked: {few(applied.unjudged)}")
    manifest = load.derived(packet)
    if manifest["status"] != Status.COMPLETED:
        out.talk(
            f"warning: {packet.task_id} did not complete: {manifest['status_reason'] or manifest['status']}"
        )
    if objections := manifest.get("concerns"):
        out.talk(f"warning: there are objections: {concerns.all_as_text(objections)}")
    if applied.how == "merge" and not applied.left_out:
        if describe.is_fan_out(manifest):
            what = "remove the task and its items, with their worktrees and branches"
            out.step(f"holdfast rm --items {packet.task_id}", what)
        else:
            out.step(f"holdfast rm {packet.task_id}", "remove the task, its worktree and its branch")
    return 0


def _is_confirmed(packet: Packet) -> bool:
    """Whether a person on the terminal merges work that was refused."""
    if not (sys.stdin.isatty() and terminal.is_terminal(sys.stderr)):
        return False
    if not (refused := delivery.refusal(packet, load.derived(packet))):
        return False
    out.talk(refused)
    return prompt.is_confirmed("Merge it anyway?")
