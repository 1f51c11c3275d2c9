"""holdfast audit: show who did what, and when."""

from __future__ import annotations

from holdfast import clock, ids, paths
from holdfast.store import audit
from holdfast.store.layout import Home
from holdfast.views import option_values
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.show import out, terminal, wrapped_table
from holdfast.views.text import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TIME, _SHORT_TIME = "%Y-%m-%d %H:%M:%S", "%m-%d %H:%M:%S"
#: A narrower terminal gets the short time.
_WIDE = 100

COMMAND = Command(
    name="audit",
    summary="Show who did what to which task, and when.",
    description="Created and removed tasks, requests and state changes, from audit.jsonl in the home.",
    examples=(
        "holdfast audit --since 24h",
        "holdfast audit 20260131-fix",
        "holdfast audit --operation request. --json",
    ),
    arguments=(Argument(dest="task", metavar="[TASK]", required=False, completes="task"),),
    options=(
        Option(
            flags=("--since",), dest="since", metavar="TIME", help="Only the last 24h, 7d, … (any duration)."
        ),
        Option(
            flags=("--operation",), dest="operation", metavar="NAME",
            help="Only this operation, or a family such as 'request.'.",
        ),
        JSON.evolve(help="Print JSON, one line per entry."),
    ),
)  # fmt: skip


def run(values: dict[str, Any]) -> int:
    """Print the entries, oldest first."""
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
    entries = list(rows)
    if not entries:
        out.talk("no entries")
        return 0
    time = _TIME if (terminal.width() or _WIDE) >= _WIDE else _SHORT_TIME
    wrapped_table.show(("TIME", "BY", "TASK", "WHAT"), [_cells(row, time) for row in entries])
    return 0


def _task_id(home: Home, text: str | None) -> str | None:
    """The id of a task; a removed task still has entries, but needs the full id."""
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


def _cells(row: dict[str, Any], time: str) -> tuple[str, ...]:
    """Few columns, so that a row is one line at 80: a move says what it is, and only trouble has a level."""
    move = describe.transition(row.get("old"), row.get("new"), row.get("reason"))
    iteration = f"iteration {row['iteration']}" if row.get("iteration") else ""
    operation, level = str(row.get("operation") or ""), str(row.get("level") or "")
    parts = ["" if operation == "task.moved" and move else operation, iteration, move]
    what = ": ".join(part for part in parts if part) + describe.answer(row)
    return (
        clock.local(str(row.get("at", "")), time),
        str(row.get("by") or "-"),
        str(row.get("task_id") or "-"),
        f"{level}: {what}" if level not in ("", "info") else what,
    )
