"""The state of a home: keeper, counts of tasks, queue, and what needs attention."""

from __future__ import annotations

import os

from holdfast import clock, paths, spawn
from holdfast.errors import HoldfastError
from holdfast.model.record import Record
from holdfast.model.soundness import UNREADABLE
from holdfast.model.status import ENDS, Status, newest_at
from holdfast.notify import outbox
from holdfast.packet import inbox, load, runner_gone
from holdfast.store import admitted, atomic, lock_holders, lock_owner, pulse
from holdfast.store import lock as locks
from holdfast.store.layout import Home
from holdfast.views import disk_full, keeper_version
from holdfast.views.text import describe, keeper_settings, next_steps, queue_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Levels of urgency, the most urgent first: broken, and it does not mend itself; a person is asked; to be
#: looked at when there is time.
URGENT, QUESTION, NOTE = LEVELS = ("urgent", "question", "note")
#: Ended tasks that are named.
_NAMED = 5
#: Age from which an unanswered request needs attention.
_UNANSWERED_S = 2.0
#: Longest time a keeper needs from its start to its lock.
_STARTING_S = 2.0


class Alert(Record):
    """Something to look at."""

    level: str
    text: str
    #: What the report calls it, if it is something that needs a person: question, login, held, …
    kind: str = ""


def gather(home: Home) -> dict[str, Any]:
    """The facts, as `status --json` prints them."""
    live, counts, ended = _tasks(home) if os.path.isdir(home.tasks) else ([], {}, [])
    alerts: list[Alert] = []
    for row in live:
        row["runner_gone"] = runner_gone.for_display(home.packet(row["task_id"]), row["status"])
        counts[row["status"]] = counts.get(row["status"], 0) + 1
        alerts += _task_alerts(home, row)
    keeper = _owner(home.keeper_lock)
    queue, queue_alerts, in_slots = _queue(home, {row["task_id"]: row for row in live})
    counts = queue_reason.with_held(counts, queue["states"] if queue is not None else {})
    if keeper is None:
        alerts += _keeper_alerts(home, queued=counts.get("queued", 0))
    elif (owner := lock_owner.owner(home.keeper_lock)) is not None and pulse.is_stopped(owner):
        alerts.append(
            Alert(
                level=URGENT,
                text=f"the keeper (process {owner.pid}) is stopped by a signal: 'holdfast up' wakes it",
            )
        )
    if disk := disk_full.shortage(home):
        alerts.append(
            Alert(level=URGENT, text=f"the disk of {home.path} is {disk}; 'holdfast prune' removes old tasks")
        )
    if mismatch := keeper_version.mismatch(home):
        alerts.append(Alert(level=NOTE, text=f"{mismatch}: {keeper_version.FIX}"))
    if mismatch := keeper_settings.warning(home):
        alerts.append(Alert(level=URGENT, text=mismatch))
    notices = outbox.status(home)
    alerts += [
        Alert(level=URGENT, text=f"notifications by {rule} fail: {failure.get('error')}")
        for rule, failure in sorted(notices["failing"].items())
    ]
    alerts += _reply_alerts(home)
    alerts += [Alert(level=URGENT, text=f"{text}; see {home.keeper_log}") for text in faults(home)]
    notes = _settings_attention(home, has_keeper=keeper is not None) + _source_attention(home)
    alerts += [Alert(level=NOTE, text=text) for text in notes]
    running = [
        _running(row)
        for row in live
        if (group := describe.group(row)) == "working" or (group == "waiting" and row["task_id"] in in_slots)
    ]
    alerts += queue_alerts
    alerts += [_ended_alert(ended)] if ended else []
    alerts = sorted(alerts, key=lambda alert: LEVELS.index(alert.level))
    return {
        "schema": "holdfast.status/1",
        "home": home.path,
        "keeper": keeper,
        "seed": _owner(home.seed_lock),
        "down": os.path.exists(home.down),
        "counts": counts,
        "slots": {"count": _slots(home), "used": len(in_slots)},
        "running": running,
        "runners_gone": [row["task_id"] for row in live if row["runner_gone"]],
        "keeper_starts": [clock.iso(at) for at in spawn.keeper_starts(home)],
        "outbox": notices,
        "queue": queue,
        "attention": [alert.text for alert in alerts],
        "alerts": [alert.to_json() for alert in alerts],
    }


def _running(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "task_id": row["task_id"],
        "status": row["status"],
        "is_stopping": bool(row.get("stopping")),
        "agent": row["agent"],
        "stage": row["stage"],
        "elapsed_s": round(describe.elapsed_s(row, clock.now()), 3),
    }


def _slots(home: Home) -> int:
    """Tasks of the queue that may run at the same time: the flag of `up`, else the settings that the keeper
    knows."""
    for path in (home.up, home.settings):
        try:
            loop: Any = (atomic.read_json(path) or {}).get("loop") or {}
            slots: Any = loop.get("slots")
        except (HoldfastError, AttributeError):
            continue
        if isinstance(slots, int):
            return slots
    return 1


def is_starting(home: Home) -> bool:
    """Whether a keeper was started a moment ago and has no lock yet."""
    starts = spawn.keeper_starts(home)
    return bool(starts) and 0 <= clock.now() - starts[-1] < _STARTING_S and not os.path.exists(home.down)


def _tasks(home: Home) -> tuple[list[dict[str, Any]], dict[str, int], list[str]]:
    """Tasks that have not ended, newest first, counts of those that have, and which of these need you."""
    from holdfast.store.index import Index

    index = Index(home)
    try:
        live, counts = index.overview()
        ended = [
            row for row in index.to_look_at(describe.look_back_to()) if describe.group(row) == "needs you"
        ]
    finally:
        index.close()
    newest_first = sorted(ended, key=lambda row: (newest_at(row), row["task_id"]), reverse=True)
    return live, counts, [row["task_id"] for row in newest_first]


def _ended_alert(task_ids: list[str]) -> Alert:
    """The ended tasks in the group 'needs you' of `ls`."""
    count = "1 ended task needs" if len(task_ids) == 1 else f"{len(task_ids)} ended tasks need"
    more = ", …" if len(task_ids) > _NAMED else ""
    names = ", ".join(task_ids[:_NAMED])
    text = f"{count} you: {names}{more}; 'holdfast report' says why"
    return Alert(level=QUESTION, text=text, kind="ended")


def _owner(lock: str) -> dict[str, Any] | None:
    if not locks.is_held(lock):
        return None
    owner = lock_owner.owner(lock)
    # Its file may have been removed; the pid is then that of the process that has the other half open.
    pids = [owner.pid] if owner is not None else lock_holders.holders(lock)
    return {"pid": pids[0], "version": lock_owner.version(lock)} if pids else None


def _task_alerts(home: Home, row: dict[str, Any]) -> list[Alert]:
    packet = home.packet(row["task_id"])
    requests = inbox.names(packet) if row["finished_at"] is None else []
    lines: list[Alert] = []
    if row["status"] == UNREADABLE:
        text = f"{row['task_id']} cannot be read: {row['status_reason']}; see 'holdfast doctor'"
        lines.append(Alert(level=URGENT, text=text, kind=UNREADABLE))
    if row["status"] == "interrupted":
        text = describe.interruption(row, "waits for a person")
        need, command = next_steps.need(packet)
        if command and "'holdfast " not in text:
            text += f" → {command}"
        lines.append(Alert(level=QUESTION, text=text, kind=need))
    for name in requests[:1]:
        try:
            age_s = clock.now() - os.stat(os.path.join(packet.inbox, name)).st_mtime
        except FileNotFoundError:
            continue
        if age_s > _UNANSWERED_S:
            text = (
                f"the runner of {row['task_id']} has not answered a request for {clock.duration_text(age_s)}"
            )
            lines.append(Alert(level=URGENT, text=text))
    is_left_alone = row["finished_at"] is None and not locks.is_held(packet.runner_lock)
    if is_left_alone and not admitted.is_admitted(packet):
        lines.append(Alert(level=URGENT, text=admitted.objection(packet)))
    elif row["runner_gone"]:
        text = f"{row['task_id']} is {row['status']} but has no runner: 'holdfast up' starts one"
        lines.append(Alert(level=URGENT, text=text))
    elif row["status"] == "running" and not requests and load.is_unresponsive(packet):
        lines.append(Alert(level=URGENT, text=f"the runner of {row['task_id']} does not respond"))
    return lines


def _keeper_alerts(home: Home, *, queued: int) -> list[Alert]:
    """What is wrong while no keeper is running."""
    failures = spawn.keeper_failures(home)
    if failures >= spawn.FAILURES_SHOWN:
        return [
            Alert(
                level=URGENT,
                text=f"{failures} keepers in a row died before they had worked: see {home.keeper_log}",
            )
        ]
    if queued and not os.path.exists(home.down) and not is_starting(home):
        tasks = "1 task is" if queued == 1 else f"{queued} tasks are"
        return [Alert(level=URGENT, text=f"{tasks} queued but no keeper is running: 'holdfast up' starts it")]
    return []


def _reply_alerts(home: Home) -> list[Alert]:
    """Servers on which replies to notices cannot be read."""
    if not os.path.isdir(home.replies):
        return []
    from holdfast.notify import replies  # only if there are notices with buttons

    return [
        Alert(level=URGENT, text=f"replies on {server} cannot be read: {error}")
        for server, error in replies.failing(home).items()
    ]


def _settings_attention(home: Home, *, has_keeper: bool) -> list[str]:
    """Invalid settings: in the files, in the keeper's environment, and in ours."""
    lines: list[str] = []
    if os.path.exists(paths.user_settings()):
        from holdfast.config import settings

        try:
            settings.load(None)
        except HoldfastError as error:
            lines.append(f"invalid settings ignored; previous ones stay in effect: {error}")
    if not lines and has_keeper:
        try:
            kept: dict[str, Any] = atomic.read_json(home.settings) or {}
        except HoldfastError:
            kept = {}
        # Only its environment: a file may have been corrected since it was read, and was checked above.
        if kept.get("wrong_in") == "environment":
            lines.append(
                f"the keeper ignores invalid settings; previous ones stay in effect: {kept.get('wrong')}"
            )
    if paths.has_keeper_variables():
        from holdfast.config import variables

        try:
            variables.check_keeper(os.environ)
        except HoldfastError as error:
            lines.append(f"in this shell: {error}; 'up', 'run' and 'submit' refuse it")
    return lines


def _source_attention(home: Home) -> list[str]:
    """Sources of the queue that fail."""
    failing = queue_reason.texts(_loop(home).get("failing"))
    return [f"source {source} fails: {error}" for source, error in sorted(failing.items())]


def faults(home: Home) -> list[str]:
    """What the keeper cannot do because of an error that it does not expect."""
    found = queue_reason.texts(_loop(home).get("faults"))
    return [f"the keeper fails in {chore}: {error}" for chore, error in sorted(found.items())]


def _loop(home: Home) -> dict[str, Any]:
    try:
        return atomic.read_json(home.loop) or {}
    except HoldfastError:
        return {}


def _queue(
    home: Home, live: dict[str, dict[str, Any]]
) -> tuple[dict[str, Any] | None, list[Alert], set[str]]:
    """Counts of the queue and the state of the loop (None without a queue), what needs attention, and the
    tasks that use a slot.

    Packets are the truth: items of ended tasks do not count, and queued tasks without an item do.
    """
    if not os.path.exists(home.queue):
        return None, [], set()
    from holdfast.model import next_action
    from holdfast.queue import sync
    from holdfast.queue.engine import Item
    from holdfast.queue.local import LocalQueue

    try:
        with LocalQueue(home, reads_only=True) as queue:
            items, paused = queue.items(), queue.paused()
        loop: dict[str, Any] = atomic.read_json(home.loop) or {}
    except HoldfastError as error:
        return (
            {"states": {}, "paused": [], "loop": {}, "at_limit": []},
            [Alert(level=URGENT, text=f"the queue is unreadable: {error}")],
            set(),
        )
    states: dict[str, int] = {}
    alerts: list[Alert] = []
    in_slots: set[str] = set()
    without_item = {task_id for task_id, row in live.items() if row["status"] == "queued"}
    for item in items:
        row = live.get(item.task_id)
        if row is None or row["status"] in (*ENDS, Status.INTERRUPTED):
            continue  # such an item leaves the queue as soon as a keeper looks
        without_item.discard(item.task_id)
        states[item.state] = states.get(item.state, 0) + 1
        if item.state == "claimed" and sync.uses_slot(home, item.task_id):
            in_slots.add(item.task_id)
        if item.state in ("held", "poison"):
            task = {"task_id": item.task_id, "status": "queued"}
            held_by = queue_reason.held_by(home, item)
            steps = next_action.for_manifest(task, queue_state=item.state, held_by=held_by).steps
            hints = " or ".join(step.as_hint() for step in steps)
            text = f"{item.task_id} is {item.state}: {item.reason}; {hints}"
            alerts.append(Alert(level=QUESTION, text=text, kind="held"))
    if without_item:
        states["queued"] = states.get("queued", 0) + len(without_item)
    waiting = [
        *(item for item in items if item.task_id in live),
        *(Item(task_id=each) for each in without_item),
    ]
    whole = queue_reason.read_holds(home).all
    alerts += [
        Alert(level=NOTE, text=why, kind="limit" if why == whole else "")
        for why in queue_reason.held(home, waiting)
    ]
    if (question := queue_reason.question_of(home)) is not None:
        alerts.append(Alert(level=URGENT, text=question, kind="stopped"))
    at_limit = queue_reason.at_limit(home, waiting)
    return {"states": states, "paused": paused, "loop": loop, "at_limit": at_limit}, alerts, in_slots
