"""The facts of a report on a home: state, queue, recent results, interrupts, statistics."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model import metrics as statistics
from holdfast.model.soundness import UNREADABLE
from holdfast.model.status import ENDS, Status
from holdfast.packet import load, metrics
from holdfast.store import atomic, tail
from holdfast.store.layout import Home, Packet
from holdfast.views.facts import events, home_status, task_list
from holdfast.views.text import describe, next_steps, queue_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.next_action import NextAction

SCHEMA = "holdfast.report/1"


def gather(home: Home, *, since_s: float) -> dict[str, Any]:
    """The facts of now and of the last `since_s` seconds."""
    now = clock.now()
    since = now - since_s
    status = home_status.gather(home)
    rows = task_list.tasks(home, everything=True, state=None)
    everything = metrics.refresh(home)
    tasks: list[dict[str, Any]] = list(everything["tasks"].values())
    ended = _ended_since(home, [*rows, *task_list.archived(home, state=None)], clock.iso(since), now)
    # What was archived was dealt with.
    present = {row["task_id"] for row in rows}
    return {
        "schema": SCHEMA,
        "at": clock.iso(now),
        "since": clock.iso(since),
        "home": home.path,
        "keeper": status["keeper"],
        "down": status["down"],
        "counts": status["counts"],
        "attention": status["attention"],
        "queue": (queue := _queue(home, rows)),
        "active": [
            _active(home, row, now)
            for row in rows
            if row["status"] not in ENDS and row["status"] not in ("queued", "interrupted")
        ],
        "needs": [
            *_queue_needs(home, queue),
            *_needs(home, rows, [row for row in ended if row["task_id"] in present], now),
        ],
        "ended": ended,
        "interrupts": _interrupts(home, tasks, clock.iso(since)),
        "statistics": statistics.of_home(tasks, now, since=since),
        "statistics_of_all": everything["home"],
    }


def _needs(
    home: Home, rows: list[dict[str, Any]], ended: list[dict[str, Any]], now: float
) -> list[dict[str, Any]]:
    """What a person should look at, the most urgent first: questions, failures, denied tools, objections, and
    limits that tasks wait for."""
    found: list[dict[str, Any]] = []
    for row in rows:
        if row["status"] == Status.INTERRUPTED:
            interrupt: dict[str, Any] = row.get("interrupt") or {}
            action = _action(home, row)
            kind = "approval" if interrupt.get("approval") else "question"
            if action is not None and action.name == "login":
                kind = "login"
            text = interrupt.get("reason") or row["status_reason"] or ""
            found.append(_need(row["task_id"], kind, text, _first(action)))
        elif row["status"] == UNREADABLE:
            found.append(_need(row["task_id"], UNREADABLE, row["status_reason"] or "", "holdfast doctor"))
        elif row["status"] == Status.WAITING:
            until = row["wake_at"]
            found.append(_need(row["task_id"], "limit", row["status_reason"] or "", "", until=until))
    for row in ended:
        if row["status"] in (Status.FAILED, Status.ABANDONED, Status.TIMEOUT):
            found.append(_need(row["task_id"], row["status"], row["reason"] or "", row["next"]))
        elif row["denied"]:
            found.append(_need(row["task_id"], "denied", row["concerns"], row["next"]))
        elif row["concerns"]:
            found.append(_need(row["task_id"], "objections", row["concerns"], row["next"]))
    return sorted(found, key=lambda need: _URGENCY.index(need["kind"]))


def _queue_needs(home: Home, queue: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A queue that waits for a person, and tasks in it that do not start by themselves."""
    reason = atomic.read_small(home.interrupt_request, _REASON_BYTES)
    found = [_need("", "stopped", describe.one_line(reason), "holdfast queue resume")] if reason else []
    held = [row for row in queue if row["state"] in ("held", "poison")]
    return found + [
        _need(row["task_id"], "held", row["reason"], f"holdfast queue retry {row['task_id']}") for row in held
    ]


#: How much of the queue's question is shown.
_REASON_BYTES = 2000
#: Kinds of needs of tasks, the most urgent first.
_URGENCY = (
    "question",
    "approval",
    "login",
    UNREADABLE,
    "failed",
    "abandoned",
    "timeout",
    "denied",
    "objections",
    "limit",
)


def _need(task_id: str, kind: str, text: str, command: str, *, until: str | None = None) -> dict[str, Any]:
    return {"task_id": task_id, "kind": kind, "text": text, "next": command, "until": until}


def _action(home: Home, row: dict[str, Any]) -> NextAction | None:
    """What to do next; None if the task cannot be read."""
    try:
        packet = load.wherever(home.packet(row["task_id"]))
        return next_steps.read(packet, load.read_manifest(packet), workspace=_workspace(packet))
    except HoldfastError:
        return None


def _first(action: NextAction | None) -> str:
    """The command to type next; empty if there is none."""
    return action.choices[0].command if action is not None and action.choices else ""


def _workspace(packet: Packet) -> str:
    """`worktree` if there is work in it that was not applied yet."""
    if not os.path.exists(packet.worktree):
        return ""
    from holdfast.workspace.worktrees import apply

    try:
        return "worktree" if apply.is_needed(packet) else ""
    except (HoldfastError, OSError):
        return "worktree"


def _ended_since(home: Home, rows: list[dict[str, Any]], since: str, now: float) -> list[dict[str, Any]]:
    """Tasks that ended since then, newest first."""
    ended = [_ended(home, row, now) for row in rows if (row["finished_at"] or "") >= since]
    return sorted(ended, key=lambda row: (row["finished_at"], row["task_id"]), reverse=True)


def _queue(home: Home, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Waiting tasks in queue order; from the packets if there is no queue, or it is empty or unreadable."""
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
                    "reason": queue_reason.reason(item, []),
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


def _ended(home: Home, row: dict[str, Any], now: float) -> dict[str, Any]:
    packet = load.wherever(home.packet(row["task_id"]))
    has_branch = os.path.exists(packet.worktree)
    usage: dict[str, Any] = row.get("usage") or {}
    return {
        "task_id": row["task_id"],
        "task_name": row["task_name"],
        "status": row["status"],
        "reason": row["status_reason"],
        "concerns": describe.concerns(row),
        "denied": row.get("denied") or [],
        "finished_at": row["finished_at"],
        "took_s": round(describe.elapsed_s(row, now), 3),
        "cost_usd": usage.get("cost_usd"),
        "unpriced_calls": usage.get("unpriced_calls") or 0,
        "last_words": describe.last_words(row, tail.last_line(packet.output_log)),
        "branch": f"holdfast/{row['task_id']}" if has_branch else None,
        "diffstat": _diffstat(packet) if has_branch else None,
        "next": _first(_action(home, row)),
    }


def _diffstat(packet: Packet) -> str | None:
    """`3 files changed, 10 insertions(+)`, of a task with a worktree; None if git cannot tell."""
    from holdfast.workspace import base as bases
    from holdfast.workspace.current_tree import current_tree
    from holdfast.workspace.snapshots import changes
    from holdfast.workspace.snapshots.trees import Trees

    try:
        base = bases.require(packet)
        lines = changes.stat(Trees.of(packet), base.base_tree, current_tree(packet, base)).splitlines()
    except (HoldfastError, OSError):
        return None
    return lines[-1].decode("utf-8", "replace").strip() if lines else "no changes"


def _interrupts(home: Home, tasks: list[dict[str, Any]], since: str) -> list[dict[str, Any]]:
    """All interrupts since then, oldest first, with the time each was resolved."""
    interrupts: list[dict[str, Any]] = []
    for task in tasks:
        if not task["interrupts"] or (task["finished_at"] or since) < since:
            continue
        try:
            packet = load.find(home, task["task_id"], archived=True)
        except HoldfastError:
            continue
        interrupts += [interrupt for interrupt in _interrupts_of(packet) if interrupt["at"] >= since]
    return sorted(interrupts, key=lambda interrupt: interrupt["at"])


def _interrupts_of(packet: Packet) -> list[dict[str, Any]]:
    interrupts: list[dict[str, Any]] = []
    for line in events.EventReader(packet).new():
        if line.get("type") not in ("task.moved", "run.opened"):
            continue
        if line.get("new") == "interrupted":
            reason = str(line.get("interrupt") or line.get("reason") or "")
            interrupts.append(
                {
                    "at": str(line["at"]),
                    "task_id": packet.task_id,
                    "reason": reason,
                    "resolved_at": None,
                    "answer": None,
                }
            )
        elif interrupts and interrupts[-1]["resolved_at"] is None:
            interrupts[-1]["resolved_at"] = str(line["at"])
            interrupts[-1]["answer"] = line.get("answer")
    return interrupts
