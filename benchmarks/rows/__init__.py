"""One module per topic; each row of the list of targets is a function from a Place to lines of the table.

To add a row, write the function and add it here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from benchmarks.place import Place
from benchmarks.table import Line

#: Row → module and function.
ROWS = {
    1: ("launch", "launch"),
    2: ("crash", "noticed"),
    3: ("crash", "restarted"),
    4: ("hang", "hang"),
    5: ("idle", "idle"),
    6: ("state", "state_change"),
    7: ("ingest", "ingest"),
    8: ("listing", "listing"),
    9: ("queue", "claims"),
    11: ("scale", "many_tasks"),
    12: ("changes", "changes"),
    13: ("mcp", "first_answer"),
    14: ("views", "top"),
    15: ("views", "serve"),
}


def measure(row: int) -> Callable[[Place], list[Line]]:
    """The function that measures a row."""
    module, name = ROWS[row]
    return getattr(importlib.import_module(f"benchmarks.rows.{module}"), name)
