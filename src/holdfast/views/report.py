"""The report of a home: state, queue, what happened of late, interrupts, figures; facts first, then as text."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model import metrics as figures
from holdfast.model.status import ENDS
from holdfast.packet import load, metrics
from holdfast.store.layout import Home, Packet
from holdfast.views.cli.commands import ls, status
from holdfast.views.cli.queue import wait_reason
from holdfast.views.cli.show import amounts, describe, tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Rows of each list, unless everything is wanted.
_ROWS = 10
SCHEMA = "holdfast.report/1"


def gather(home: Home, *, since_s: float) -> dict[str, Any]:
    """The facts of the last `since_s` seconds and of now."""
    now = clock.now()
    since = now - since_s
    state = status.look(home)
    rows = ls.tasks(home, everything=True, state=None)
    everything = metrics.refresh(home)
    tasks: list[dict[str, Any]] = list(everything["tasks"].values())
    return {
        "schema": SCHEMA,
        "at": clock.iso(now),
        "since": clock.iso(since),
        "home": home.path,
        "keeper": state["keeper"],
        "down": state["down"],
        "counts": state["counts"],
        "attention": state["attention"],
        "queue": _queue(home, rows),
        "active": [
            _active(home, row, now)
            for row in rows
            if row["status"] not in ENDS and row["status"] not in ("queued", "interrupted")
        ],
        "ended": _since([*rows, *ls.archived(home, state=None)], clock.iso(since), now),
        "interrupts": _interrupts(home, tasks, clock.iso(since)),
        "statistics": figures.of_home(tasks, now, since=since),
        "statistics_of_all": everything["home"],
    }


def _since(rows: list[dict[str, Any]], since: str, now: float) -> list[dict[str, Any]]:
    """What ended since then, newest first, wherever it lies by now."""
    found = [_ended(row, now) for row in rows if (row["finished_at"] or "") >= since]
    return sorted(found, key=lambda row: (row["finished_at"], row["task_id"]), reverse=True)


def _queue(home: Home, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What waits for its turn, in the order of the queue; as the packets tell it where there is no queue to ask."""
    if os.path.exists(home.queue):
        from holdfast.queue.local import LocalQueue

        try:
            with LocalQueue(home, reads_only=True) as queue:
                items = [item for item in queue.items() if item.state != "claimed"]
                paused = queue.paused()
        except HoldfastError:
            items, paused = [], []
        if items:
            return [
                {
                    "task_id": item.task_id,
                    "state": "paused" if {"*", item.pool} & set(paused) else item.state,
                    "priority": item.priority,
                    "reason": wait_reason.reason(item, []),
                    "since": item.added_at,
                }
                for item in items
            ]
    return [
        {
            "task_id": row["task_id"],
            "state": "queued",
            "priority": None,
            "reason": "",
            "since": row["started_at"],
        }
        for row in reversed(rows)
        if row["status"] == "queued"
    ]


def _active(home: Home, row: dict[str, Any], now: float) -> dict[str, Any]:
    return {
        "task_id": row["task_id"],
        "status": row["status"],
        "agent": row["agent"],
        "stage": row["stage"],
        "elapsed_s": round(describe.elapsed_s(row, now), 3),
        "wake_at": row["wake_at"],
        "last_line": tail.last_line(home.packet(row["task_id"]).output_log),
    }


def _ended(row: dict[str, Any], now: float) -> dict[str, Any]:
    usage: dict[str, Any] = row.get("usage") or {}
    return {
        "task_id": row["task_id"],
        "task_name": row["task_name"],
        "status": row["status"],
        "reason": row["status_reason"],
        "finished_at": row["finished_at"],
        "took_s": round(describe.elapsed_s(row, now), 3),
        "cost_usd": usage.get("cost_usd"),
    }


def _interrupts(home: Home, tasks: list[dict[str, Any]], since: str) -> list[dict[str, Any]]:
    """Every time that a person was asked, oldest first, and whether it was answered."""
    found: list[dict[str, Any]] = []
    for task in tasks:
        if not task["interrupts"] or (task["finished_at"] or since) < since:
            continue
        try:
            packet = load.find(home, task["task_id"], archived=True)
        except HoldfastError:
            continue
        found += [asked for asked in _asked(packet) if asked["at"] >= since]
    return sorted(found, key=lambda asked: asked["at"])


def _asked(packet: Packet) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line in metrics.lines(packet.journal):
        if line.get("type") not in ("task.moved", "run.opened"):
            continue
        if line.get("new") == "interrupted":
            reason = str(line.get("interrupt") or line.get("reason") or "")
            found.append(
                {"at": str(line["at"]), "task_id": packet.task_id, "reason": reason, "resolved_at": None}
            )
        elif found and found[-1]["resolved_at"] is None:
            found[-1]["resolved_at"] = str(line["at"])
    return found


# ── as text ──


def render(facts: dict[str, Any], *, detailed: bool) -> str:
    """A page to read in the morning."""
    most = None if detailed else _ROWS
    keeper = facts["keeper"]
    runs = f"process {keeper['pid']}" if keeper else "not running" + (" (down)" if facts["down"] else "")
    counts = ", ".join(f"{count} {state}" for state, count in sorted(facts["counts"].items())) or "none"
    parts = [
        f"# holdfast, {amounts.minute(facts['at'])}",
        f"{facts['home']}; what is new since {amounts.minute(facts['since'])}",
        _section(
            "State", [f"keeper: {runs}", f"tasks: {counts}", *(f"! {line}" for line in facts["attention"])]
        ),
        _section("At work", [_active_line(row, detailed=detailed) for row in facts["active"]], most),
        _section(f"Queue ({len(facts['queue'])})", [_queue_line(row) for row in facts["queue"]], most),
        _section(f"Ended ({len(facts['ended'])})", [_ended_line(row) for row in facts["ended"]], most),
        _section(
            f"Interrupts ({len(facts['interrupts'])})",
            [_asked_line(row) for row in facts["interrupts"]],
            most,
        ),
        _section("Statistics", _statistics(facts["statistics"])),
    ]
    if detailed:
        parts.append(_section("Statistics of everything", _statistics(facts["statistics_of_all"])))
    return "\n\n".join(parts)


def _section(title: str, lines: list[str], most: int | None = None) -> str:
    shown = lines if most is None else lines[:most]
    more = [f"… and {len(lines) - len(shown)} more (--detailed)"] if len(shown) < len(lines) else []
    # A reason of an agent may have lines of its own; here it is one of a list.
    items = [line.replace("\n", " ") for line in [*shown, *more]] or ["none"]
    return "\n".join([f"## {title}", "", *(f"- {line}" for line in items)])


def _active_line(row: dict[str, Any], *, detailed: bool) -> str:
    wakes = f", wakes {amounts.minute(row['wake_at'])}" if row["wake_at"] else ""
    line = f"{row['task_id']}  {row['status']}, {row['agent']}, {clock.words(row['elapsed_s'])}{wakes}"
    return f"{line}: {row['last_line']}" if detailed and row["last_line"] else line


def _queue_line(row: dict[str, Any]) -> str:
    why = f": {row['reason']}" if row["reason"] else ""
    return f"{row['task_id']}  {row['state']} since {amounts.minute(row['since'])}{why}"


def _ended_line(row: dict[str, Any]) -> str:
    cost = "" if row["cost_usd"] is None else f", ${row['cost_usd']:.2f}"
    why = f": {row['reason']}" if row["reason"] and row["status"] != "completed" else ""
    return f"{row['finished_at'][11:16]}  {row['task_id']}  {row['status']} after {clock.words(row['took_s'])}{cost}{why}"


def _asked_line(row: dict[str, Any]) -> str:
    state = f"resolved {row['resolved_at'][11:16]}" if row["resolved_at"] else "open"
    return f"{row['at'][11:16]}  {row['task_id']}  {state}: {row['reason']}"


def _statistics(found: dict[str, Any]) -> list[str]:
    usage = found["api_usage"]
    average = found["average_duration_s"]
    tools = ", ".join(f"{name} {count}" for name, count in list(found["tool_usage"]["breakdown"].items())[:6])
    return [
        f"{found['ended']} ended, {found['completed']} completed" + _rate(found["success_rate"]),
        f"{amounts.plural(found['interrupts'], 'interrupt')}{_of_tasks(found['interrupt_rate'])}; "
        f"{amounts.plural(found['retries'], 'retry')}",
        f"{amounts.plural(found['iterations_per_hour'] or 0, 'task')} an hour, "
        + ("no duration yet" if average is None else f"{clock.words(average)} on average"),
        amounts.usage(usage),
        amounts.plural(found["tool_usage"]["total"], "tool call") + (f": {tools}" if tools else ""),
    ]


def _rate(rate: float | None) -> str:
    return "" if rate is None else f" ({rate * 100:.0f} %)"


def _of_tasks(rate: float | None) -> str:
    return "" if rate is None else f", in {rate * 100:.0f} % of the tasks"
