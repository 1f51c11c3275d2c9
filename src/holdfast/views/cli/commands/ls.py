"""holdfast ls: the tasks of this home."""

from __future__ import annotations

import os

from holdfast import clock, paths
from holdfast.errors import HoldfastError, UsageError
from holdfast.model.status import ENDS, Status
from holdfast.store.index import Index
from holdfast.store.layout import Home, Packet
from holdfast.views.cli.parse import suggest
from holdfast.views.cli.parse.command_spec import JSON, Command, Option
from holdfast.views.cli.show import amounts, describe, out, table, tail, terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Ended tasks that are shown unless --all is given.
_RECENT = 20

COMMAND = Command(
    name="ls",
    summary="List the tasks: those that have not ended, and the last ones that have.",
    description="On a narrow terminal columns are left out until every line fits, and a long id has a line for itself; a pipe gets everything.",
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
        Option(flags=("--archived",), dest="archived", kind="flag", help="Those that were put away."),
        Option(flags=("-q", "--quiet"), dest="quiet", kind="flag", help="Print the ids only."),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Print them, newest first."""
    state = values["state"]
    if state is not None and state not in tuple(Status):
        hint = suggest.did_you_mean(state, tuple(Status)) or f"states are {', '.join(Status)}"
        raise UsageError(f"--state: there is no state {state!r}", hint=hint)
    home = Home(paths.home())
    if values["archived"]:
        rows = archived(home, state=state)
    else:
        rows = tasks(home, everything=values["all"], state=state)
    is_cut = (
        not (values["all"] or values["archived"])
        and state is None
        and sum(row["status"] in ENDS for row in rows) >= _RECENT
    )
    if values["json"]:
        out.data(rows)
    elif values["quiet"]:
        for row in rows:
            print(row["task_id"])
    elif rows:
        _print(rows, home.archived if values["archived"] else home.packet)
        _tell_gone(home, [row for row in rows if row["runner_gone"]])
    else:
        out.talk(
            f"no task is {state}" if state is not None else _nothing(home, is_archive=values["archived"])
        )
    if is_cut:
        out.talk(f"only the last {_RECENT} that have ended are shown; 'holdfast ls --all' shows all")
    return 0


def _nothing(home: Home, *, is_archive: bool) -> str:
    if is_archive:
        return "nothing is in the archive"
    if os.path.isdir(home.archive):
        from holdfast.packet import load

        count = len(load.archived_ids(home))
        if count:
            return f"no tasks but {amounts.plural(count, 'task')} in the archive: 'holdfast ls --archived' shows them"
    return "no tasks; start one with 'holdfast run -- COMMAND'"


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
    rows = [row for row in rows if state is None or row["status"] == state]
    for row in rows:
        row["runner_gone"] = row["status"] not in ENDS and _is_runner_gone(home, row)
    return rows


def _is_runner_gone(home: Home, row: dict[str, Any]) -> bool | None:
    from holdfast.packet import runner_lost  # for those that have not ended

    return runner_lost.is_gone(home.packet(row["task_id"]), row["status"])


def archived(home: Home, *, state: str | None) -> list[dict[str, Any]]:
    """Short manifests of the archive, newest first; one that cannot be read is left out."""
    from holdfast.packet import load
    from holdfast.store.index import short

    rows: list[dict[str, Any]] = []
    for task_id in load.archived_ids(home):
        try:
            rows.append({**short(load.read_manifest(home.archived(task_id))), "runner_gone": False})
        except HoldfastError:
            continue
    rows.sort(key=lambda row: (row["started_at"] or "", row["task_id"]), reverse=True)
    return [row for row in rows if state is None or row["status"] == state]


def _tell_gone(home: Home, rows: list[dict[str, Any]]) -> None:
    """What becomes of tasks that nobody drives. Where a keeper lives it is starting others for them."""
    from holdfast.store import lock as locks

    if not rows or locks.is_held(home.keeper_lock):
        return
    which = rows[0]["task_id"] if len(rows) == 1 else f"{len(rows)} tasks"
    why = "this home is down" if os.path.exists(home.down) else "no keeper lives"
    out.talk(
        f"{which} {'has' if len(rows) == 1 else 'have'} no runner and {why}: 'holdfast up' brings a keeper,"
        " which starts another"
    )


#: In a narrow terminal these go first.
_DROPPED_FIRST = (3, 7, 6, 5, 2, 4)


def _print(rows: list[dict[str, Any]], packet_of: Callable[[str], Packet]) -> None:
    now = clock.now()
    table.show(
        ("TASK", "STATE", "AGENT", "STAGE", "ELAPSED", "TOKENS", "COST", "AGE", "LAST LINE"),
        [_cells(packet_of(row["task_id"]), row, now) for row in rows],
        colours={1: terminal.STATE_COLOURS},
        dropped_first=_DROPPED_FIRST,
        begins_with_id=True,
    )


def _cells(packet: Packet, row: dict[str, Any], now: float) -> tuple[str, ...]:
    line = tail.last_line(packet.output_log)
    return (
        row["task_id"],
        row["status"],
        row["agent"],
        row["stage"] or "-",
        clock.words(describe.elapsed_s(row, now)),
        amounts.tokens(row) or "-",
        amounts.cost(row) or "-",
        clock.words(max(0.0, now - clock.parse_iso(row["started_at"]))),
        line if row["status"] in ENDS else _before(row) + describe.with_step(row, line),
    )


def _before(row: dict[str, Any]) -> str:
    """What is to be known before the last line is read."""
    said = "no runner" if row["runner_gone"] else describe.waiting_for(row)
    return f"[{said}] " if said else ""
