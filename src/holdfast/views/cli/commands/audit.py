"""holdfast audit: who did what, and when."""

from __future__ import annotations

from holdfast import clock, ids, paths
from holdfast.store import audit
from holdfast.store.layout import Home
from holdfast.views.cli.parse import option_values
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.show import describe, out, wrapped_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="audit",
    summary="Show who did what to which task, and when.",
    description="Tasks made, requests of people, and moves from state to state, from audit.jsonl of the home. It also knows "
    "tasks that were removed.",
    examples=("holdfast audit --since 24h", "holdfast audit 20260131-fix", "holdfast audit --operation request. --json"),
    arguments=(Argument(dest="task", metavar="[TASK]", required=False, completes="task"),),
    options=(
        Option(flags=("--since",), dest="since", metavar="TIME", help="Only of the last 24h, 7d or so."),
        Option(
            flags=("--operation",), dest="operation", metavar="NAME",
            help="Only this operation, or ('request.') family.",
        ),
        JSON.evolve(help="Print JSON, a line for each entry."),
    ),
)  # fmt: skip


def run(values: dict[str, Any]) -> int:
    """Print them, oldest first."""
    home = Home(paths.home())
    since_s = option_values.duration(values["since"], "--since")
    task_id = _task_id(home, values["task"])
    rows = audit.read(
        home,
        task_id=task_id,
        since=None if since_s is None else clock.now() - since_s,
        operation=values["operation"],
    )
    if values["json"]:
        for row in rows:
            out.data(row)
        return 0
    found = list(rows)
    if not found:
        out.talk("nothing was done, so far as audit.jsonl knows")
        return 0
    wrapped_table.show(
        ("TIME", "LEVEL", "BY", "OPERATION", "TASK", "WHAT"),
        [_cells(row) for row in found],
    )
    return 0


def _task_id(home: Home, text: str | None) -> str | None:
    """A task that was removed has an entry still: then the id has to be whole."""
    if text is None:
        return None
    from holdfast.errors import NotFound
    from holdfast.packet import load

    try:
        return load.find(home, text, archived=True).task_id
    except NotFound:
        if next(audit.read(home, task_id=ids.check_task_id(text)), None) is None:
            raise
        return text


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    move = describe.transition(row.get("old"), row.get("new"), row.get("reason"))
    iteration = f"iteration {row['iteration']}" if row.get("iteration") else ""
    return (
        str(row.get("at", ""))[:19].replace("T", " "),
        str(row.get("level") or ""),
        str(row.get("by") or "-"),
        str(row.get("operation") or ""),
        str(row.get("task_id") or "-"),
        ": ".join(part for part in (iteration, move) if part),
    )
