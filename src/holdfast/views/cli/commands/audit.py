"""holdfast audit: show who did what, and when."""

from __future__ import annotations

from holdfast import clock, ids, paths
from holdfast.store import audit
from holdfast.store.layout import Home
from holdfast.views import option_values
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.show import out, terminal
from holdfast.views.text import describe, fit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TIME, _SHORT_TIME = "%Y-%m-%d %H:%M:%S", "%m-%d %H:%M:%S"
#: A narrower terminal gets the short time.
_WIDE = 100
#: On such a terminal a longer id does not widen its column: what happened follows it.
_ID_CHARS = 14
#: Entries by these are not by a person.
_OURS = ("keeper", "runner", "holdfast")

COMMAND = Command(
    name="audit",
    summary="Show who did what to which task, and when.",
    description="Created and removed tasks, requests and state changes, from audit.jsonl in the home.",
    examples=(
        "holdfast audit --since 24h --people",
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
        Option(
            flags=("--people",), dest="people", kind="flag",
            help="Only what people and agents did, not the keeper and runners.",
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
    if values["people"]:
        # An answer is in the entry of the runner that went on with it.
        rows = (row for row in rows if row.get("by") not in _OURS or row.get("answer"))
    if values["json"]:
        for row in rows:
            out.data(row)
        return 0
    entries = list(rows)
    if not entries:
        out.talk("no entries")
        return 0
    is_wide = (terminal.width() or _WIDE) >= _WIDE
    time = _TIME if is_wide else _SHORT_TIME
    table = [("TIME", "BY", "TASK", "WHAT"), *(_cells(row, time) for row in entries)]
    displayed = [tuple(map(fit_text.as_displayed, row)) for row in table]
    _print(displayed, longest_id=None if is_wide else _ID_CHARS)
    return 0


def _print(rows: list[tuple[str, ...]], *, longest_id: int | None) -> None:
    """Print a row as one line where it fits; what does not fit continues below the task."""
    at, by, task, _ = (max(map(fit_text.cell_width, column)) for column in zip(*rows, strict=True))
    task = min(task, longest_id or task)
    for row in rows:
        start = f"{_padded(row[0], at)}  {_padded(row[1], by)}  "
        text = f"{_padded(row[2], task)}  {row[3]}"
        for line in fit_text.wrap(text, terminal.width(), first=start, rest=" " * (at + by + 4)):
            print(line)


def _padded(cell: str, width: int) -> str:
    return cell + " " * max(0, width - fit_text.cell_width(cell))


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
    """Few columns, so that a row is one line at 80: a move says what it is, and only trouble has a level.
    The queue's own entries have the number of the iteration."""
    move = describe.transition(row.get("old"), row.get("new"), row.get("reason"))
    iteration = f"iteration {row['iteration']}" if row.get("iteration") else ""
    operation, level = str(row.get("operation") or ""), str(row.get("level") or "")
    parts = [move] if operation == "task.moved" and move else [operation, iteration, move]
    project = str(row.get("project_dir") or "") if operation.startswith("project.") else ""
    what = ": ".join(part for part in (*parts, project) if part) + describe.answer(row)
    return (
        clock.local(str(row.get("at", "")), time),
        str(row.get("by") or "-"),
        str(row.get("task_id") or "-"),
        f"{level}: {what}" if level not in ("", "info") else what,
    )
