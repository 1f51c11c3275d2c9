"""holdfast digest: what changed, for an agent that orchestrates tasks."""

from __future__ import annotations

from holdfast import paths
from holdfast.errors import UsageError
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views import option_values
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.show import out, terminal
from holdfast.views.facts import digest
from holdfast.views.text import fit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="digest",
    summary="Show what changed since an earlier digest.",
    description="For scripts, and for agents that orchestrate tasks ('report' is for people): the tasks that "
    "changed since a cursor, the number of tasks in each state, and the next cursor. At most 4 KB; the next "
    "digest has the rest ('left_out' counts it). Without --since, or with an unknown cursor, the digest is "
    "full: all live tasks and the most recently ended ones, or all tasks that TASK and --label select.",
    examples=(
        "holdfast digest --json",
        "holdfast digest --since 3f2a9c1be07d.42 --json",
        "holdfast digest --label batch=nightly --since 3f2a9c1be07d.42",
    ),
    arguments=(Argument(dest="task", metavar="[TASK…]", required=False, many=True, completes="task"),),
    options=(
        Option(flags=("--since",), dest="since", metavar="CURSOR", help="Cursor of the previous digest."),
        Option(
            flags=("--label",),
            dest="label",
            kind="many",
            metavar="KEY=VALUE",
            help="Only tasks with this label; repeatable.",
        ),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Print the digest."""
    home = Home(paths.home())
    _check_cursor(values["since"])
    ids = {load.find(home, text, archived=True).task_id for text in values["task"]}
    wanted = option_values.labels(values["label"])
    found = digest.gather(home, since=values["since"], only=ids or None, wanted=wanted)
    if values["json"]:
        out.data(found)
        return 0
    for task in found["tasks"]:
        print(fit_text.printable(_line(task)))
    for task_id in found["gone"]:
        print(f"{task_id} is gone")
    counts = ", ".join(f"{count} {state}" for state, count in found["counts"].items()) or "no tasks"
    for name in ("held", "asking"):
        if name in found:
            more = ", …" if found[name]["count"] > len(found[name]["tasks"]) else ""
            counts += f" ({name}: {', '.join(found[name]['tasks'])}{more})"
    left = f"; {found['left_out']} more with the next digest" if found["left_out"] else ""
    note = f" ({found['note']})" if "note" in found else ""
    print(f"{counts}{left}{note}")
    print(f"cursor {found['cursor']}")
    if values["since"] is None and terminal.is_terminal():
        out.talk(f"'holdfast digest --since {found['cursor']}' shows what changes from now on")
    return 0


def _check_cursor(text: str | None) -> None:
    """Raises UsageError for what no digest printed. One of another index is answered with a full digest, and
    so is an empty one: a variable of a script that has none yet."""
    if not text or digest.is_cursor(text):
        return
    raise UsageError(
        f"--since: not a cursor: {text!r}",
        hint="the last line of a digest has it; leave out --since for a full one. 'holdfast report --since "
        "24h' looks back by time",
    )


def _line(task: dict[str, Any]) -> str:
    said = [task[name] for name in ("stage", "question", "reason", "waits", "concerns") if name in task]
    return f"{task['id']} {task['state']}" + (f": {'; '.join(said)}" if said else "")
