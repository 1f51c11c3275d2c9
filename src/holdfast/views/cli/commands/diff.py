"""holdfast diff: show what a task changed in its workspace."""

from __future__ import annotations

import os
import sys

from holdfast import paths
from holdfast.errors import NotFound
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views.cli.parse.command_spec import JSON, TASK, Command, Option
from holdfast.views.cli.show import fit_text, out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Packet
    from holdfast.workspace.base import Base

COMMAND = Command(
    name="diff",
    summary="Show a task's changes as a patch.",
    description="Compares the working tree with the snapshot taken when the task started, so earlier "
    "changes of yours are not included. Changes outside a packet's scope, such as files its acceptance "
    "commands left, are hidden. Only tasks with a scope or a worktree have a snapshot.",
    examples=(
        "holdfast diff 20260131-fix",
        "holdfast diff 20260131-fix --stat",
        "holdfast diff 20260131-fix --stage codex_impl",
        "holdfast diff 20260131-fix --candidate 2",
        "holdfast diff 20260131-fix --all",
    ),
    arguments=(TASK,),
    options=(
        Option(
            flags=("--stage",),
            dest="stage",
            metavar="STAGE",
            help="Only changes between the start of this stage and the next.",
        ),
        Option(
            flags=("--candidate",),
            dest="candidate",
            metavar="N",
            help="The changes of one candidate of a stage with attempts.",
        ),
        Option(flags=("--all",), dest="all", kind="flag", help="Include changes outside the task's scope."),
        Option(
            flags=("--stat",),
            dest="stat",
            kind="flag",
            help="Print files and line counts instead of the patch.",
        ),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Print the patch as git's bytes."""
    from holdfast.workspace import base as bases
    from holdfast.workspace import scope
    from holdfast.workspace.snapshots import changes
    from holdfast.workspace.snapshots.trees import Trees

    packet = load.find(Home(paths.home()), values["task"], archived=True)
    base, trees = bases.require(packet), Trees.of(packet)
    if values["candidate"] is not None:
        old, new = _of_candidate(packet, base, values["candidate"])
    else:
        old, new = _sides(packet, base, values["stage"])
    limit = None if values["all"] else scope.of(packet)
    new, left_out = changes.within(trees, old, new, scope=limit, prefix=base.place.prefix)
    if values["json"]:
        out.data(
            {
                "schema": "holdfast.diff/1",
                "task_id": packet.task_id,
                "stage": values["stage"],
                "candidate": values["candidate"],
                "path": base.place.directory,
                "old_tree": old,
                "new_tree": new,
                "changes": [change.to_json() for change in changes.changed(trees, old, new)],
                "left_out": list(left_out),
                "patch": os.fsdecode(changes.patch(trees, old, new)),
            }
        )
        return 0
    old, new = changes.opened(trees, old, new)
    text = changes.stat(trees, old, new) if values["stat"] else changes.patch(trees, old, new)
    if sys.stdout.isatty():
        # A file's bytes must not control the terminal.
        lines = text.decode("utf-8", "replace").split("\n")
        sys.stdout.write("\n".join(fit_text.printable(line.expandtabs()) for line in lines))
    else:
        sys.stdout.buffer.write(text)
    if left_out:
        sys.stdout.flush()
        files = "1 file" if len(left_out) == 1 else f"{len(left_out)} files"
        out.talk(f"{files} outside the scope not shown; --all shows everything")
    elif not text:
        out.talk(f"{packet.task_id} changed nothing in {base.place.directory}")
    return 0


def _of_candidate(packet: Packet, base: Base, number: str) -> tuple[str, str]:
    """The task's start, and what its gate judged of a candidate; before that, its worktree now."""
    from holdfast.workspace import base as bases
    from holdfast.workspace.current_tree import current_tree

    task = load.fold(packet)
    stages = {str(stage.candidate): stage.name for stage in task.spec.stages if stage.candidate}
    if number not in stages:
        numbers = ", ".join(stages) or "none"
        raise NotFound(f"{packet.task_id} has no candidate {number}", hint=f"its candidates: {numbers}")
    gate = task.stage_state(stages[number]).gate
    if gate is not None and gate.tree:
        return base.base_tree, gate.tree
    own = packet.candidate(int(number))
    return base.base_tree, current_tree(own, bases.require(own))


def _sides(packet: Packet, base: Base, stage: str | None) -> tuple[str, str]:
    """The two trees to compare: the task's start and now, or the starts of this stage and the next."""
    from holdfast.model import events as ev
    from holdfast.store import journal
    from holdfast.workspace.current_tree import current_tree

    if stage is None:
        return base.base_tree, current_tree(packet, base)
    prepared = [event for _, event in journal.read(packet.journal) if isinstance(event, ev.WorkspacePrepared)]
    own = [at for at, event in enumerate(prepared) if event.stage == stage]
    if not own:
        names = ", ".join(dict.fromkeys(event.stage for event in prepared)) or "none yet"
        raise NotFound(
            f"{packet.task_id} has no snapshot of stage {stage!r}", hint=f"stages with a snapshot: {names}"
        )
    later = next((event for event in prepared[own[-1] :] if event.stage != stage), None)
    return prepared[own[-1]].tree, later.tree if later is not None else current_tree(packet, base)
