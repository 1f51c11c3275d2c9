"""holdfast diff: show what a task changed in its workspace."""

from __future__ import annotations

import os
import sys

from holdfast import paths
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views.cli.parse.command_spec import JSON, TASK, Command, Option
from holdfast.views.cli.show import out, terminal
from holdfast.views.text import amounts, fit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="diff",
    summary="Show a task's changes as a patch.",
    description="Compares the working tree with the snapshot taken when the task started, so earlier "
    "changes of yours are not included; in place, later ones are. Changes outside a packet's scope, such as "
    "files its acceptance commands left, are hidden. A plain run in place takes no snapshot: it is compared "
    "with the commit that was checked out, without files that have not changed since its start.",
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
    from holdfast.views.facts.diff import Comparison  # loads what runs git

    packet = load.find(Home(paths.home()), values["task"], archived=True)
    found = Comparison(packet, stage=values["stage"], candidate=values["candidate"], everything=values["all"])
    if values["json"]:
        changes = [change.to_json() for change in found.changes]
        out.data({**found.facts().to_json(), "changes": changes, "patch": os.fsdecode(found.patch())})
        return 0
    text = found.stat() if values["stat"] else found.patch(is_for_reading=True)
    if sys.stdout.isatty():
        # A file's bytes must not control the terminal.
        lines = [
            fit_text.printable(line.expandtabs()) for line in text.decode("utf-8", "replace").split("\n")
        ]
        if terminal.has_colour():
            from holdfast.views.cli.show import patch_colours

            paint = patch_colours.coloured_counts if values["stat"] else patch_colours.coloured
            lines = list(paint(lines))
        sys.stdout.write("\n".join(lines))
    else:
        sys.stdout.buffer.write(text)
    sys.stdout.flush()
    if found.note:
        out.talk(found.note)
    for path in found.unreadable:
        out.talk(f"warning: {path} cannot be read, so what is in it is not shown; 'chmod u+rx' opens it")
    if found.left_out:
        files = amounts.plural(len(found.left_out), "file")
        out.talk(f"{files} outside the scope not shown; --all shows everything")
    elif not text and not found.unreadable:
        out.talk(f"{packet.task_id} changed nothing in {found.path}")
    return 0
