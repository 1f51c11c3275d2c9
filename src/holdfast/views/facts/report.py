"""The facts of a report on a home: state, queue, recent results, interrupts, statistics."""

from __future__ import annotations

import operator
import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model import metrics as statistics
from holdfast.model import next_action, outcome, timeline
from holdfast.model.next_action import Suggestion
from holdfast.model.soundness import UNREADABLE
from holdfast.model.state import closed_question
from holdfast.model.status import ENDS, Status, needs_look
from holdfast.packet import fan_out, load, metrics
from holdfast.queue import schedule
from holdfast.store import atomic, tail
from holdfast.store.layout import Home, Packet
from holdfast.views.facts import day_budget, events, home_status, queue_places, task_list
from holdfast.views.text import describe, next_steps, queue_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.next_action import NextAction

SCHEMA = "holdfast.report/1"
#: Worktrees that are looked at at the same time.
_AT_ONCE = 4
#: How long git may look at all of them, and what is said of those for which there was no time.
_GIT_S, _TOO_SLOW = 60.0, "changes unknown: git took too long"


def gather(home: Home, *, since_s: float) -> dict[str, Any]:
    """The facts of now and of the last `since_s` seconds."""
    now = clock.now()
    since = now - since_s
    status = home_status.gather(home)
    rows = task_list.tasks(home, everything=True, state=None)
    held = queue_places.held(home)
    everything = metrics.refresh(home, held=held)
    tasks: list[dict[str, Any]] = list(everything["tasks"].values())
    ended = _ended_since(home, [*rows, *task_list.archived(home, state=None)], clock.iso(since), now)
    # What was archived was dealt with.
    present = {row["task_id"] for row in rows}
    interrupts, takeovers = _people(home, tasks, clock.iso(since))
    return {
        "schema": SCHEMA,
        "at": clock.iso(now),
        "since": clock.iso(since),
        "home": home.path,
        "keeper": status["keeper"],
        "down": status["down"],
        "counts": status["counts"],
        # The others are in `needs`.
        "attention": [alert["text"] for alert in status["alerts"] if not alert["kind"]],
        "queue": (queue := _queue(home, rows)),
        "active": [
            _active(home, row, now)
            for row in rows
            if row["status"] not in ENDS and row["status"] not in ("queued", "interrupted")
        ],
        "needs": [
            *_queue_needs(home, queue),
            *_needs(home, rows, [row for row in ended if row["task_id"] in present], now),
            *_queue_limits(status["alerts"]),
        ],
        "ended": ended,
        "schedules": list(map(schedule.summary, schedule.read_all(home))),
        "interrupts": interrupts,
        "takeovers": takeovers,
        "statistics": statistics.of_home(tasks, now, since=since, held=held),
        "statistics_of_all": everything["home"],
        "removed_usd": day_budget.removed_usd(home, everything["last_24h"]["api_usage"]["cost_usd"]),
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
            kind = next_action.need(action.name) if action is not None else "question"
            text = interrupt.get("reason") or row["status_reason"] or ""
            found.append(_need(row["task_id"], kind, text, _first(action)))
        elif row["status"] == UNREADABLE:
            found.append(_need(row["task_id"], UNREADABLE, row["status_reason"] or "", _DOCTOR))
        elif row["status"] == Status.WAITING and _is_at_limit(home, row):
            now_step = Suggestion(command=f"holdfast resume {row['task_id']}", does="try now")
            text, until = row["status_reason"] or "", row["wake_at"]
            found.append(_need(row["task_id"], "limit", text, now_step, until=until))
    to_look_at = {row["task_id"] for row in rows if needs_look(row)}
    for row in ended:
        if row["task_id"] not in to_look_at:
            continue
        if row["status"] != Status.COMPLETED:
            text = f"{row['reason'] or ''}{_of_schedule(home, row['task_id'])}"
            found.append(_need(row["task_id"], row["status"], text, _step(row)))
        elif row["denied"]:
            found.append(_need(row["task_id"], "denied", row["concerns"], _step(row)))
        else:
            kind = "budget" if row["over_budget"] else "objections"
            found.append(_need(row["task_id"], kind, row["concerns"], _step(row)))
    return sorted(found, key=lambda need: _URGENCY.index(need["kind"]))


def _of_schedule(home: Home, task_id: str) -> str:
    """`; a run of the schedule tick (every 60s)`; empty if it is none."""
    found = schedule.of_run(home, task_id)
    return f"; a run of the schedule {found.name} (every {found.every})" if found is not None else ""


def _is_at_limit(home: Home, row: dict[str, Any]) -> bool:
    """Whether a waiting task waits for a limit. One that is retried by itself needs nobody."""
    try:
        return outcome.is_at_limit(load.read_manifest(home.packet(row["task_id"])))
    except HoldfastError:
        return False


def _queue_needs(home: Home, queue: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A queue that waits for a person, and tasks in it that do not start by themselves."""
    reason = atomic.read_small(home.interrupt_request, _REASON_BYTES)
    found = [_need("", "stopped", describe.one_line(reason), _RESUME_QUEUE)] if reason else []
    held = [row for row in queue if row["state"] in ("held", "poison")]
    return found + [_need(row["task_id"], "held", row["reason"], _start(row)) for row in held]


def _queue_limits(alerts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What keeps the whole queue from starting anything, such as a spent budget."""
    limits = [alert["text"] for alert in alerts if alert["kind"] == "limit"]
    return [_need("", "limit", text, _SETTINGS if "your settings" in text else None) for text in limits]


def _start(row: dict[str, Any]) -> Suggestion:
    """What lets a held task start."""
    task = {"task_id": row["task_id"], "status": "queued"}
    return next_action.for_manifest(task, queue_state="held", held_by=row.get("held_by") or "").steps[0]


def _step(row: dict[str, Any]) -> Suggestion | None:
    """What to do about a task that has ended."""
    return Suggestion(command=row["next"], does=row["does"]) if row["next"] else None


_DOCTOR = Suggestion(command="holdfast doctor", does="see what is wrong")
_SETTINGS = Suggestion(command="holdfast config path", does="see where your settings are")
_RESUME_QUEUE = Suggestion(command=queue_reason.RESUME, does="start queued tasks again")
#: How much of the queue's question is shown.
_REASON_BYTES = 2000
#: Kinds of needs of tasks, the most urgent first.
_URGENCY = (
    "question",
    "approval",
    "login",
    "budget",
    "time",
    "checks",
    "failure",
    "stopped",
    UNREADABLE,
    "failed",
    "abandoned",
    "timeout",
    "denied",
    "objections",
    "limit",
)


def _need(
    task_id: str, kind: str, text: str, step: Suggestion | None, *, until: str | None = None
) -> dict[str, Any]:
    command, does = (step.command, step.does) if step is not None else ("", "")
    return {"task_id": task_id, "kind": kind, "text": text, "next": command, "does": does, "until": until}


def _action(home: Home, row: dict[str, Any]) -> NextAction | None:
    """What to do next; None if the task cannot be read."""
    try:
        packet = load.wherever(home.packet(row["task_id"]))
        return next_steps.read(packet, load.read_manifest(packet), workspace=next_steps.unapplied(packet))
    except HoldfastError:
        return None


def _first(action: NextAction | None) -> Suggestion | None:
    """The command to type next; None if there is none."""
    return action.choices[0] if action is not None and action.choices else None


def _ended_since(home: Home, rows: list[dict[str, Any]], since: str, now: float) -> list[dict[str, Any]]:
    """Tasks that ended since then, newest first."""
    recent = [row for row in rows if (row["finished_at"] or "") >= since]
    recent.sort(key=lambda row: (row["finished_at"], row["task_id"]), reverse=True)
    if not any(os.path.exists(home.packet(row["task_id"]).worktree) for row in recent):
        return [_ended(home, row, now) for row in recent]
    # git runs a dozen times for each worktree: several at the same time, with directories that they share.
    from concurrent.futures import ThreadPoolExecutor

    from holdfast.workspace import git

    end_mono = clock.mono() + _GIT_S

    def look(row: dict[str, Any]) -> dict[str, Any]:
        with git.within(min(git.VIEW_S, end_mono - clock.mono())):
            return _ended(home, row, now)

    with git.SharedDirectories(), ThreadPoolExecutor(_AT_ONCE) as threads:
        return list(threads.map(look, recent))


def _queue(home: Home, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Waiting tasks in queue order; from the packets if there is no queue, or it is empty or unreadable."""
    if os.path.exists(home.queue):
        from holdfast.queue.local import LocalQueue

        try:
            with LocalQueue(home, reads_only=True) as queue:
                items = queue_places.in_order([item for item in queue.items() if item.state != "claimed"])
                paused = queue.paused()
        except HoldfastError:
            items, paused = [], []
        if items:
            holds = queue_reason.read_holds(home)
            return [
                {
                    "task_id": item.task_id,
                    "state": "paused" if {"*", item.pool} & set(paused) else item.state,
                    "priority": item.priority,
                    "reason": queue_reason.reason(item, [], holds),
                    "since": item.added_at,
                    "held_by": queue_reason.held_by(home, item),
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
        "waits": describe.waiting_for(row) or _retry(home, row),
        "last_line": tail.last_line(home.packet(row["task_id"]).output_log),
    }


def _retry(home: Home, row: dict[str, Any]) -> str:
    """Why a waiting task is retried; empty if it waits for a limit, which is told among the needs."""
    is_retried = row["status"] == Status.WAITING and not _is_at_limit(home, row)
    return row["status_reason"] or "" if is_retried else ""


def _ended(home: Home, row: dict[str, Any], now: float) -> dict[str, Any]:
    packet = load.wherever(home.packet(row["task_id"]))
    has_branch, step = os.path.exists(packet.worktree), _first(_action(home, row))
    usage: dict[str, Any] = row.get("usage") or {}
    return {
        "task_id": row["task_id"],
        "task_name": row["task_name"],
        "status": row["status"],
        "reason": row["status_reason"],
        "concerns": describe.concerns(row),
        "denied": row.get("denied") or [],
        "over_budget": row.get("over_budget"),
        "accepted": _accepted(packet, row),
        "applied": next_action.applied_words(row),
        "finished_at": row["finished_at"],
        "took_s": round(describe.elapsed_s(row, now), 3),
        "waited_s": row.get("waited_s"),
        "repairs": len(row.get("repairs") or ()),
        "retries": describe.retries(row),
        "run": row.get("run") or 1,
        "cost_usd": usage.get("cost_usd"),
        "unpriced_calls": usage.get("unpriced_calls") or 0,
        "paid_calls": row.get("paid_calls") or 0,
        "last_words": describe.last_words(row, tail.last_line(packet.output_log)),
        "branch": f"holdfast/{row['task_id']}" if has_branch else None,
        "diffstat": _diffstat(packet) if has_branch else None,
        "next": step.command if step is not None else "",
        "does": step.does if step is not None else "",
    }


def _accepted(packet: Packet, row: dict[str, Any]) -> str:
    """What its acceptance commands prove about a completed task; empty if it had none."""
    if row.get("left_out") or (describe.is_fan_out(row) and not fan_out.accepted_merges(packet)):
        return ""
    if describe.has_passed_before(row):
        return describe.PASSED_BEFORE
    return "accepted" if row.get("accept") and row["status"] == Status.COMPLETED else ""


def _diffstat(packet: Packet) -> str | None:
    """`3 files changed, 10 insertions(+)`, of a task with a worktree; None if git cannot tell."""
    from holdfast.workspace import base as bases
    from holdfast.workspace import git
    from holdfast.workspace.current_tree import current_tree
    from holdfast.workspace.snapshots import changes
    from holdfast.workspace.snapshots.trees import Trees

    try:
        base = bases.require(packet)
        lines = changes.stat(Trees.of(packet), base.base_tree, current_tree(packet, base)).splitlines()
    except (HoldfastError, OSError):
        return _TOO_SLOW if git.is_late() else None
    return lines[-1].decode("utf-8", "replace").strip() if lines else "no changes"


def _people(
    home: Home, tasks: list[dict[str, Any]], since: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Interrupts and takeovers since then, oldest first, with the time each was resolved or ended."""
    interrupts: list[dict[str, Any]] = []
    takeovers: list[dict[str, Any]] = []
    for task in tasks:
        # A task that is taken over is interrupted.
        if not task["interrupts"] or (task["finished_at"] or since) < since:
            continue
        try:
            packet = load.find(home, task["task_id"], archived=True)
        except HoldfastError:
            continue
        lines = list(events.EventReader(packet).new())
        interrupts += [each for each in _interrupts_of(packet, lines) if each["at"] >= since]
        takeovers += [each for each in _takeovers_of(packet, lines) if (each["ended_at"] or since) >= since]
    by_time = operator.itemgetter("at")
    return sorted(interrupts, key=by_time), sorted(takeovers, key=by_time)


def _interrupts_of(packet: Packet, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    interrupts: list[dict[str, Any]] = []
    for line in lines:
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
                    "how": "",
                    "answer": None,
                }
            )
        elif interrupts and interrupts[-1]["resolved_at"] is None:
            interrupts[-1]["reason"] = closed_question(interrupts[-1]["reason"])
            interrupts[-1]["resolved_at"] = str(line["at"])
            interrupts[-1]["how"] = str(line.get("reason") or "")
            interrupts[-1]["answer"] = line.get("answer")
    return interrupts


def _takeovers_of(packet: Packet, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Who had the session of its agent, until when, and what that changed."""
    return [
        {
            "at": span["begin"],
            "task_id": packet.task_id,
            "stage": span["stage"],
            "agent": span["agent"],
            "by": span["by"],
            "ended_at": span["end"],
            "how": span.get("outcome"),
            "files": span.get("files") or 0,
        }
        for span in timeline.of(lines).spans
        if span["kind"] == "takeover"
    ]
