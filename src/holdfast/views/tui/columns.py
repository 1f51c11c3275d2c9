"""The columns of the task list: which of them fit, and what is in them."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from holdfast import clock
from holdfast.model.status import Status
from holdfast.views.facts import task_list
from holdfast.views.text import amounts, describe, fit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Row = dict[str, Any]

#: Name, width, and from which width of the terminal on it is shown. The last column takes what is left.
_COLUMNS = (
    ("TASK", 24, 0),
    ("STATE", 11, 0),
    ("AGENT", 9, 100),
    ("STAGE", 14, 110),
    ("ELAPSED", 8, 60),
    ("TOKENS", 8, 90),
    ("COST", 9, 70),
    ("LAST WORDS", 0, 0),
)
_GAP = 1
_RIGHT = frozenset({"ELAPSED", "TOKENS", "COST"})
#: On a wide terminal, ids and stages get more room.
_WIDE, _MORE = 140, 12


class Column:
    """One column that is shown."""

    def __init__(self, name: str, width: int) -> None:
        self.name, self.width = name, width

    def fit(self, text: str) -> str:
        """The text, exactly as wide as the column."""
        text = fit_text.printable(text)
        count = cell_len(text)
        if count > self.width:
            return set_cell_size(text, self.width - 1) + "…"
        blank = " " * (self.width - count)
        return blank + text if self.name in _RIGHT else text + blank


def fitting(width: int) -> list[Column]:
    """The columns that fit into a line of this width."""
    shown = [(name, columns) for name, columns, least in _COLUMNS if width >= least]
    more = _MORE if width >= _WIDE else 0
    columns = [
        Column(name, columns + (more if name in ("TASK", "STAGE") else 0)) for name, columns in shown[:-1]
    ]
    used = sum(column.width + _GAP for column in columns)
    return [*columns, Column(shown[-1][0], max(1, width - used))]


def header(columns: list[Column]) -> str:
    """The line with the names."""
    return (" " * _GAP).join(column.fit(column.name) for column in columns)


def cell(name: str, row: Row, now: float, output_log: str) -> str:
    """What a column says about a task. The last one may read the end of its log."""
    match name:
        case "TASK":
            return str(row["task_id"])
        case "STATE":
            return describe.state(row)
        case "AGENT":
            return row.get("agent") or "-"
        case "STAGE":
            return _stage(row)
        case "ELAPSED":
            elapsed_s = describe.elapsed_s(row, now)
            return "-" if not elapsed_s and row["status"] == Status.QUEUED else clock.duration_text(elapsed_s)
        case "TOKENS":
            return amounts.tokens(row).replace("at least ", "≥") or "-"
        case "COST":
            return amounts.cost(row).replace("at least ", "≥") or "-"
        case _:
            return task_list.note(row) + task_list.last_line(output_log, row, now)


def _stage(row: Row) -> str:
    """The stage at work; of several, with how many are done."""
    stages: list[dict[str, Any]] = row.get("stages") or []
    name = str(row.get("stage") or "-")
    if len(stages) < 2:
        return name
    return f"{sum(stage.get('state') == 'done' for stage in stages)}/{len(stages)} {name}"
