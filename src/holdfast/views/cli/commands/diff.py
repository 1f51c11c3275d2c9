"""holdfast diff: what a task changed in its workspace."""

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
    summary="Show what a task changed in its workspace, as a patch.",
    description="The working tree as it is now is compared with what stood in it when the task began; what you had changed "
    "before is not in it, nor is what lies outside the scope of a packet, such as what its acceptance commands left behind. Only tasks with a scope or a worktree have such a record. Nothing is changed.",
    examples=(
        "holdfast diff 20260131-fix",
        "holdfast diff 20260131-fix --stat",
        "holdfast diff 20260131-fix --stage codex_impl",
        "holdfast diff 20260131-fix --all",
    ),
    arguments=(TASK,),
    options=(
        Option(
            flags=("--stage",),
            dest="stage",
            metavar="STAGE",
            help="Only what changed from the start of this stage to that of the next one.",
        ),
        Option(
            flags=("--all",), dest="all", kind="flag", help="Also show what lies outside the task's scope."
        ),
        Option(flags=("--stat",), dest="stat", kind="flag", help="Print the files and how much changed."),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Print the patch: bytes, as git makes them."""
    from holdfast.workspace import base as bases
    from holdfast.workspace import scope
    from holdfast.workspace.snapshots import changes
    from holdfast.workspace.snapshots.trees import Trees

    packet = load.find(Home(paths.home()), values["task"], archived=True)
    base, trees = bases.require(packet), Trees.of(packet)
    old, new = _sides(packet, base, values["stage"])
    asked = None if values["all"] else scope.of(packet)
    new, left_out = changes.within(trees, old, new, scope=asked, prefix=base.place.prefix)
    if values["json"]:
        found = changes.changed(trees, old, new)
        out.data(
            {
                "schema": "holdfast.diff/1",
                "task_id": packet.task_id,
                "stage": values["stage"],
                "path": base.place.directory,
                "old_tree": old,
                "new_tree": new,
                "changes": [change.to_json() for change in found],
                "left_out": list(left_out),
                "patch": os.fsdecode(changes.patch(trees, old, new)),
            }
        )
        return 0
    old, new = changes.opened(trees, old, new)
    text = changes.stat(trees, old, new) if values["stat"] else changes.patch(trees, old, new)
    if sys.stdout.isatty():
        # A file's bytes must not move the cursor of whoever reads them.
        lines = text.decode("utf-8", "replace").split("\n")
        sys.stdout.write("\n".join(fit_text.printable(line.expandtabs()) for line in lines))
    else:
        sys.stdout.buffer.write(text)
    if left_out:
        sys.stdout.flush()
        are = "file outside the scope is" if len(left_out) == 1 else "files outside the scope are"
        out.talk(f"{len(left_out)} {are} left out (--all shows {'it' if len(left_out) == 1 else 'them'})")
    elif not text:
        out.talk(f"{packet.task_id} has changed nothing in {base.place.directory}")
    return 0


def _sides(packet: Packet, base: Base, stage: str | None) -> tuple[str, str]:
    """The two trees: the task's start and now; or the stage's start and that of the one after it."""
    from holdfast.model import events as ev
    from holdfast.store import journal
    from holdfast.workspace.prepare import current_tree

    if stage is None:
        return base.base_tree, current_tree(packet, base)
    prepared = [event for _, event in journal.read(packet.journal) if isinstance(event, ev.WorkspacePrepared)]
    own = [at for at, event in enumerate(prepared) if event.stage == stage]
    if not own:
        names = ", ".join(dict.fromkeys(event.stage for event in prepared)) or "none yet"
        raise NotFound(f"{packet.task_id} has no recorded stage {stage!r}", hint=f"recorded: {names}")
    later = next((event for event in prepared[own[-1] :] if event.stage != stage), None)
    return prepared[own[-1]].tree, later.tree if later is not None else current_tree(packet, base)
