"""holdfast ls: the tasks of this home."""

from __future__ import annotations

import os

from holdfast import clock, paths
from holdfast.errors import UsageError
from holdfast.model.status import ENDS, Status
from holdfast.store.index import Index
from holdfast.store.layout import Home
from holdfast.views.cli import out, table, tail, verbs, words
from holdfast.views.cli.spec import JSON, Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Ended tasks that are shown unless --all is given.
_RECENT = 20

COMMAND = Command(
    name="ls",
    summary="List the tasks: those that have not ended, and the last ones that have.",
    description="On a narrow terminal columns are left out until every line fits; a pipe gets them all.",
    examples=("holdfast ls", "holdfast ls --all --state failed", "holdfast ls --json | jq '.[].status'"),
    options=(
        Option(flags=("-a", "--all"), dest="all", kind="flag", help="Also all that ended long ago."),
        Option(
            flags=("--state",),
            dest="state",
            metavar="STATE",
            completes="state",
            help="Only tasks in this state.",
        ),
        Option(flags=("-q", "--quiet"), dest="quiet", kind="flag", help="Print the ids only."),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Print them, newest first."""
    state = values["state"]
    if state is not None and state not in tuple(Status):
        hint = verbs.near(state, tuple(Status)) or f"states are {', '.join(Status)}"
        raise UsageError(f"--state: there is no state {state!r}", hint=hint)
    rows = tasks(Home(paths.home()), everything=values["all"], state=state)
    if values["json"]:
        out.data(rows)
    elif values["quiet"]:
        for row in rows:
            print(row["task_id"])
    elif rows:
        _print(rows)
        if not values["all"] and state is None and sum(row["status"] in ENDS for row in rows) >= _RECENT:
            out.talk(f"only the last {_RECENT} that have ended are shown; 'holdfast ls --all' shows all")
    else:
        out.talk(
            "no tasks; start one with 'holdfast run -- COMMAND'" if state is None else f"no task is {state}"
        )
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


#: In a narrow terminal these go first.
_DROPPED_FIRST = (3, 7, 6, 5, 2, 4)


def _print(rows: list[dict[str, Any]]) -> None:
    home = Home(paths.home())
    now = clock.now()
    table.show(
        ("TASK", "STATE", "AGENT", "STAGE", "ELAPSED", "TOKENS", "COST", "AGE", "LAST LINE"),
        [_cells(home, row, now) for row in rows],
        colours={1: table.STATE_COLOURS},
        dropped_first=_DROPPED_FIRST,
    )


def _cells(home: Home, row: dict[str, Any], now: float) -> tuple[str, ...]:
    return (
        row["task_id"],
        row["status"],
        row["agent"],
        row["stage"] or "-",
        clock.words(words.elapsed_s(row, now)),
        words.tokens(row) or "-",
        words.cost(row) or "-",
        clock.words(max(0.0, now - clock.parse_iso(row["started_at"]))),
        tail.last_line(home.packet(row["task_id"]).output_log),
    )
