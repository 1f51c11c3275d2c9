"""holdfast ls: the tasks of this home."""

from __future__ import annotations

import json
import os
import sys

from holdfast import clock, paths
from holdfast.store.index import Index
from holdfast.store.layout import Home
from holdfast.views.cli import table
from holdfast.views.cli.spec import JSON, Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Ended tasks that are shown unless --all is given.
_RECENT = 20

COMMAND = Command(
    name="ls",
    summary="List the tasks: those that have not ended, and the last ones that have.",
    examples=("holdfast ls", "holdfast ls --all --state failed", "holdfast ls --json"),
    options=(
        Option(flags=("-a", "--all"), dest="all", kind="flag", help="Also all that ended long ago."),
        Option(flags=("--state",), dest="state", metavar="STATE", help="Only tasks in this state."),
        Option(flags=("-q", "--quiet"), dest="quiet", kind="flag", help="Print the ids only."),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Print them, newest first."""
    rows = tasks(Home(paths.home()), everything=values["all"], state=values["state"])
    if values["json"]:
        print(json.dumps(rows, ensure_ascii=False))
    elif values["quiet"]:
        for row in rows:
            print(row["task_id"])
    elif rows:
        _print(rows)
    else:
        print("no tasks; start one with 'holdfast run -- COMMAND'", file=sys.stderr)
    return 0


def tasks(home: Home, *, everything: bool, state: str | None) -> list[dict[str, Any]]:
    """Short manifests, newest first."""
    if not os.path.isdir(home.tasks):
        return []
    index = Index(home)
    try:
        live = index.live()
        ended = index.ended(None if everything or state is not None else _RECENT)
    finally:
        index.close()
    # A task may have ended between the two questions: the later answer counts.
    rows = list({row["task_id"]: row for row in [*live, *ended]}.values())
    rows.sort(key=lambda row: (row["started_at"] or "", row["task_id"]), reverse=True)
    return [row for row in rows if state is None or row["status"] == state]


def _print(rows: list[dict[str, Any]]) -> None:
    home = Home(paths.home())
    now = clock.now()
    table.show(
        ("TASK", "STATE", "AGENT", "STAGE", "ELAPSED", "TOKENS", "COST", "AGE", "LAST LINE"),
        [_cells(home, row, now) for row in rows],
        colours={1: table.STATE_COLOURS},
    )


def _cells(home: Home, row: dict[str, Any], now: float) -> tuple[str, ...]:
    started = clock.parse_iso(row["started_at"])
    finished = clock.parse_iso(row["finished_at"]) if row.get("finished_at") else now
    usage: dict[str, Any] = row.get("usage") or {}
    tokens = (usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0)
    cost = usage.get("cost_usd")
    return (
        row["task_id"],
        row["status"],
        row["agent"],
        row["stage"] or "-",
        clock.words(max(0.0, finished - started)),
        f"{tokens}" if tokens else "-",
        f"${cost:.2f}" if cost is not None else "-",
        clock.words(max(0.0, now - started)),
        last_line(home.packet(row["task_id"]).output_log),
    )


def last_line(path: str) -> str:
    """The last line of a log that says something."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 2048))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
