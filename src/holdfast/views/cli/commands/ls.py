"""holdfast ls: list tasks."""

from __future__ import annotations

import gc
import os
import sys

from holdfast import clock, files, paths
from holdfast.model.status import ENDS, Status
from holdfast.store.layout import Home, output_log_in
from holdfast.views.cli.parse.command_spec import JSON, Command, Option
from holdfast.views.cli.show import out, table, terminal
from holdfast.views.facts import task_list
from holdfast.views.facts.queue_places import QueuePlaces
from holdfast.views.text import amounts, describe, fit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="ls",
    summary="List tasks.",
    description="Shows all tasks that have not ended and the most recently ended ones, in groups: what needs "
    "you, working, waiting, queued, ended. A task that failed, that its reviewers object to, that was denied "
    f"tools or exceeded its budget, needs you for {describe.LOOK_BACK}, unless you retry, apply, archive or "
    "remove it. Queued tasks are listed in the order in which they will start. A narrow terminal shows "
    "fewer columns.",
    examples=("holdfast ls", "holdfast ls --all --state failed", "holdfast ls --json | jq '.[].status'"),
    options=(
        Option(flags=("-a", "--all"), dest="all", kind="flag", help="Include all ended tasks."),
        Option(
            flags=("--state",),
            dest="state",
            metavar="STATE",
            completes="state",
            help="Only tasks in this state.",
        ),
        Option(
            flags=("--label",),
            dest="label",
            kind="many",
            metavar="KEY=VALUE",
            help="Only tasks with this label; repeatable.",
        ),
        Option(flags=("--archived",), dest="archived", kind="flag", help="List archived tasks instead."),
        Option(flags=("-q", "--quiet"), dest="quiet", kind="flag", help="Print only ids."),
        Option(
            flags=("--watch",),
            dest="watch",
            kind="flag",
            help="Show the list again at every change, until Ctrl-C.",
        ),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Print the tasks, newest first in each group; queued ones in the order in which they will start."""
    if values["state"] is not None:
        from holdfast.views.cli import targets  # loads what the other verbs need

        targets.check_state(values["state"])
    if values["watch"]:
        _watch(values)
    gc.disable()  # nothing here is garbage, and the process ends soon
    try:
        _list(values, QueuePlaces(Home(paths.home())))
    finally:
        gc.enable()
    return 0


def _watch(values: dict[str, Any]) -> None:
    """Show the list when a task has changed; while one works, every second, for times and output."""
    from holdfast.views.facts.changes import Changes

    home = Home(paths.home())
    changes, places = Changes(home), QueuePlaces(home)
    while True:
        height = None
        if terminal.can_redraw(sys.stdout):
            print("\x1b[H\x1b[J", end="")
            height = terminal.height()
        rows = _list(values, places, height=height)
        sys.stdout.flush()
        clock.sleep(_LEAST_PAUSE_S)  # tasks that change at the same time are shown at once
        is_working = any(describe.group(row) == "working" for row in rows)
        ends_mono = clock.mono() + (_WATCH_S if is_working else _IDLE_S)
        while not changes.wait(_WATCH_S) and not places.is_outdated and clock.mono() < ends_mono:
            pass


def _list(values: dict[str, Any], places: QueuePlaces, *, height: int | None = None) -> list[dict[str, Any]]:
    """Print the tasks. With `height`, the table is cut so that its beginning stays on the terminal."""
    state = values["state"]
    home = Home(paths.home())
    everything = values["all"] or values["json"] or bool(values["label"])
    hidden = 0
    if values["archived"]:
        rows = task_list.archived(home, state=state)
    elif everything or state is not None:
        rows = task_list.tasks(home, everything=everything, state=state, is_brief=not everything)
    else:
        rows, hidden = task_list.recent(home)
    if values["label"]:
        from holdfast.model import labels
        from holdfast.views import option_values

        wanted = option_values.labels(values["label"])
        rows = [row for row in rows if labels.match(row, wanted)]
    rows = places.arrange(rows)
    table_of, notes = None, list[str]()
    if values["json"]:
        now = clock.now()
        out.data([_complete(row, now, is_archived=values["archived"]) for row in rows])
    elif values["quiet"]:
        for row in rows:
            print(row["task_id"])
    elif rows:
        table_of = _Table(
            rows, hidden, is_archive=values["archived"], is_cut=not values["all"] and state is None
        )
        if more := table_of.left_out:
            need, them = ("needs", "it") if more == 1 else ("need", "them")
            notes.append(f"{more} more {need} you: 'holdfast report' lists {them}")
        notes += _lost_runners(home, [row for row in rows if row["runner_gone"]])
        notes += map(fit_text.printable, places.obstacles)
    elif values["label"]:
        notes.append(
            "no tasks with this label" if len(values["label"]) == 1 else "no tasks with these labels"
        )
    elif state is not None:
        notes.append(f"no {state} tasks")
    else:
        notes.append(_no_tasks(home, is_archive=values["archived"]))
    if hidden:
        verb = "is" if hidden == 1 else "are"
        earlier = amounts.plural(hidden, "task")
        notes.append(f"{earlier} that ended earlier {verb} not shown; --all shows everything")
    if table_of is not None:
        # The cursor stays in the line after the last.
        room = height - 1 - sum(len(out.message_lines(note)) for note in notes) if height else None
        table_of.show(home, most_lines=room)
    for note in notes:
        out.talk(note)
    return rows


def _complete(row: dict[str, Any], now: float, *, is_archived: bool) -> dict[str, Any]:
    """A row with what the table derives."""
    group = describe.group(row, now, is_archived=is_archived)
    return {**row, "group": group, "elapsed_s": round(describe.elapsed_s(row, now), 3)}


def _no_tasks(home: Home, *, is_archive: bool) -> str:
    if is_archive:
        return "no archived tasks"
    if os.path.isdir(home.archive):
        from holdfast.packet import load

        count = len(load.archived_ids(home))
        if count:
            them = "it" if count == 1 else "them"
            return f"no tasks, but {count} archived: 'holdfast ls --archived' lists {them}"
    return "no tasks; start one with 'holdfast run -- COMMAND'"


def _lost_runners(home: Home, rows: list[dict[str, Any]]) -> list[str]:
    """How to restart lost runners. A live keeper does it anyway."""
    from holdfast.store import lock as locks

    if not rows or locks.is_held(home.keeper_lock):
        return []
    tasks = f"{rows[0]['task_id']} has" if len(rows) == 1 else f"{len(rows)} tasks have"
    why = "this home is down" if os.path.exists(home.down) else "no keeper is running"
    runners = "a new runner" if len(rows) == 1 else "new runners"
    return [f"{tasks} no runner, and {why}: 'holdfast up' starts a keeper, which starts {runners}"]


#: Longest pause between two lists of --watch while a task works, and while none does; shortest pause.
_WATCH_S, _IDLE_S, _LEAST_PAUSE_S = 1.0, 30.0, 0.1
#: Columns that a narrow terminal drops, first to last: stage, age, tokens and agent for a readable last line,
#: cost and elapsed time only for a few words of it.
_DROPPED_FOR_LAST, _DROPPED_FIRST = (3, 7, 5, 2), (6, 4)


class _Table:
    """Tasks in their groups. Of ended tasks that need you, only the newest may be in it.

    `hidden`: the number of ended tasks that are not in `rows`.
    """

    def __init__(self, rows: list[dict[str, Any]], hidden: int, *, is_archive: bool, is_cut: bool) -> None:
        self._now = clock.now()
        self._is_archive = is_archive
        members: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            members.setdefault(describe.group(row, self._now, is_archived=is_archive), []).append(row)
        needy = members.get("needs you", [])
        open_ones = [row for row in needy if row["status"] not in ENDS]
        failures = [row for row in needy if row["status"] in ENDS]
        shown = failures[: task_list.RECENT] if is_cut else failures
        #: How many ended tasks that need you are not in it: those after the newest.
        self.left_out = len(failures) - len(shown)
        self._rows: list[dict[str, Any]] = []
        self._headings: dict[int, str] = {}
        for group in describe.GROUPS:
            listed = members.get(group, []) if group != "needs you" else [*open_ones, *shown]
            # A list of ended tasks alone needs no heading.
            if group in members and (len(members) > 1 or group == "needs you"):
                count = len(members[group]) + (hidden if group == "ended" else 0)
                self._headings[len(self._rows)] = describe.heading(group, count, len(listed))
            self._rows += listed

    def show(self, home: Home, *, most_lines: int | None) -> None:
        """Print it."""
        folder = files.open_folder(home.archive if self._is_archive else home.tasks)
        cells = [_cells(folder, row, self._now) for row in self._rows]
        os.close(folder)
        table.show(
            ("TASK", "STATE", "AGENT", "STAGE", "ELAPSED", "TOKENS", "COST", "AGE", "LAST LINE"),
            cells,
            colours={1: terminal.STATE_COLOURS},
            dropped_first=_DROPPED_FIRST,
            dropped_for_last=_DROPPED_FOR_LAST,
            begins_with_id=True,
            headings=self._headings,
            most_lines=most_lines,
        )


def _cells(folder: int, row: dict[str, Any], now: float) -> tuple[str, ...]:
    task_id: str = row["task_id"]
    elapsed_s, age_s = describe.elapsed_s(row, now), max(0.0, now - clock.parse_iso(row["started_at"]))
    age, has_usage = clock.duration_text(age_s), "usage" in row
    elapsed = age if age_s == elapsed_s else clock.duration_text(elapsed_s)
    return (
        task_id,
        describe.state(row),
        row["agent"],
        row["stage"] or "-",
        "-" if not elapsed_s and row["status"] == Status.QUEUED else elapsed,
        (has_usage and _short(amounts.tokens(row))) or "-",
        (has_usage and _short(amounts.cost(row))) or "-",
        age,
        task_list.note(row) + task_list.last_line(output_log_in(task_id), row, now, folder),
    )


def _short(amount: str) -> str:
    """As in `top`: the room is for the last line."""
    return amount.replace("at least ", "≥")
