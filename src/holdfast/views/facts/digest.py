"""A digest of a home for an agent that orchestrates tasks: only what changed since its last one, in 4 KB.

A cursor names a position in the index of tasks. An index that was rebuilt, or has forgotten a removal, does
not know it: then the digest is a full one, and says so. What does not fit comes with the next digest.

The tasks of a full digest may have changed before all that the index remembers. So if they do not fit, the
cursor also names the last one told: `INDEX.POSITION.NUMBER.TASK`. When all are told, what changed since that
position follows.
"""

from __future__ import annotations

import operator
import os

from holdfast import quick_json
from holdfast.model import labels
from holdfast.model.status import Status
from holdfast.store.index import Index
from holdfast.views.facts.queue_places import QueuePlaces
from holdfast.views.text import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from holdfast.store.layout import Home

SCHEMA = "holdfast.digest/1"
#: Size of a digest as JSON, with the newline at its end.
MAX_BYTES = 4096
#: Ended tasks in a full digest.
RECENT = 20
#: Most ids of tasks that are held, or that wait for a person. They are in every digest, so there is room for
#: few.
_STUCK = 3
#: In place of the id of an index: there was no task yet.
_NONE = "none"
#: Most bytes that the last task told adds to a cursor.
_TOLD_BYTES = 2 + 15 + 64
#: Sizes to which texts are cut, as JSON. Labels that take more are left out.
_REASON_BYTES, _QUESTION_BYTES, _LABEL_BYTES = 300, 1200, 400

#: The number of a change, the task, and its row; None for a task that is gone.
if TYPE_CHECKING:
    Change = tuple[int, str, dict[str, Any] | None]
    Told = tuple[int, str]


def gather(
    home: Home,
    *,
    since: str | None,
    only: Collection[str] | None = None,
    wanted: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The digest since a cursor, or a full one; of the tasks with these ids and labels."""
    if not os.path.isdir(home.tasks):
        return _fitted([], {}, {}, index=_NONE, newest=0, since=since, is_known=since == f"{_NONE}.0")
    index = Index(home)
    try:
        live, counts = index.overview()
        name, newest, gone_from = index.position()
        start, told = _start(since, name, newest, gone_from)
        is_full = start is None or told is not None
        if is_full:
            # Read once more, after the position: a change in between is told twice rather than never.
            live, counts = index.overview()
        is_for_some = only is not None or bool(wanted)
        ended = index.ended(None if is_for_some else RECENT) if is_for_some or is_full else []
        changes = _full(index, [*live, *ended], told) if is_full else index.changed_since(start or 0)
        for row in (*live, *(row for _, _, row in changes if row is not None)):
            if row.get("labels"):
                describe.mark_waiting_for_person(row, home.packet(row["task_id"]))
        changes = changes if is_full else _with_asking(changes, live)
        if is_for_some:
            live = [row for row in live if _is_asked(row, only, wanted)]
            counts = _counts([*live, *(row for row in ended if _is_asked(row, only, wanted))])
            changes = [
                each
                for each in changes
                if (each[2] is None and (only is None or each[1] in only))
                or (each[2] is not None and _is_asked(each[2], only, wanted))
            ]
        else:
            for row in live:
                counts[row["status"]] = counts.get(row["status"], 0) + 1
    finally:
        index.close()
    queued = [row for row in live if row["status"] == Status.QUEUED]
    QueuePlaces(home).arrange([*queued, *(row for _, _, row in changes if row is not None)])
    held = [row for row in queued if describe.is_held(row)]
    asking = [row["task_id"] for row in live if row.get("asking")]
    for row in held:
        counts[Status.QUEUED] -= 1
        counts[describe.state(row)] = counts.get(describe.state(row), 0) + 1
    if told is not None and start is not None:
        newest = start
    is_known = start is not None
    return _fitted(
        changes,
        counts,
        {"held": [row["task_id"] for row in held], "asking": asking},
        index=name,
        newest=newest,
        since=since,
        is_known=is_known,
        is_full=is_full,
    )


def is_cursor(text: str) -> bool:
    """Whether the text has the form of a cursor, known or not."""
    return _parsed(text) is not None


def _parsed(text: str) -> tuple[str, int, Told | None] | None:
    """The index, the position, and the last task told of a full digest; None for what is no cursor."""
    of, *rest = text.split(".", 3)
    numbers = rest[:2]
    is_one = of.isalnum() and len(rest) in (1, 3)
    if not is_one or not all(each.isascii() and each.isdigit() for each in numbers):
        return None
    # No index counts up to 16 digits, and Python reads no number of thousands.
    at, *last = (int(each[:16]) for each in numbers)
    return of, at, (last[0], rest[2]) if last else None


def _start(since: str | None, name: str, newest: int, gone_from: int) -> tuple[int | None, Told | None]:
    """The position after which changes are asked for, None if the cursor is unknown; and the last task told,
    if tasks of a full digest are still to be told."""
    if since == f"{_NONE}.0":
        return 0, None
    found = _parsed(since or "")
    if found is None or found[0] != name or not gone_from <= found[1] <= newest:
        return None, None
    return found[1:]


def _full(index: Index, rows: list[dict[str, Any]], told: Told | None) -> list[Change]:
    """These tasks in the order of their last changes, after the last one told."""
    numbers = index.numbers()
    by_id = {row["task_id"]: row for row in rows}
    found = sorted((numbers.get(task_id, 0), task_id) for task_id in by_id)
    return [(at, task_id, by_id[task_id]) for at, task_id in found if told is None or (at, task_id) > told]


def _with_asking(changes: list[Change], live: list[dict[str, Any]]) -> list[Change]:
    """With fan-outs that wait for a person: their items have changed, they themselves have not."""
    known = {task_id for _, task_id, _ in changes}
    more: list[Change] = []
    for row in live:
        task_id = row["task_id"]
        if row.get("asking") and task_id not in known:
            numbers = [at for at, changed, _ in changes if changed.startswith(f"{task_id}.")]
            more += [(max(numbers), task_id, row)] if numbers else []
    return sorted([*changes, *more], key=operator.itemgetter(0))


def _is_asked(row: dict[str, Any], only: Collection[str] | None, wanted: Mapping[str, str] | None) -> bool:
    return (only is None or row["task_id"] in only) and labels.match(row, wanted or {})


def _counts(rows: list[dict[str, Any]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in {row["task_id"]: row for row in rows}.values():
        counts[row["status"]] = counts.get(row["status"], 0) + 1
    return counts


def _fitted(
    changes: list[Change],
    counts: dict[str, int],
    stuck: dict[str, list[str]],
    *,
    index: str,
    newest: int,
    since: str | None,
    is_known: bool,
    is_full: bool = False,
) -> dict[str, Any]:
    """As many changes as fit, the oldest first: the cursor is after the last of them.

    `stuck`: tasks that the queue holds, and fan-outs that wait for a person with their items.
    """
    digest: dict[str, Any] = {
        "schema": SCHEMA,
        "cursor": f"{index}.{newest}",
        "full": not is_known,
        "counts": {state: count for state, count in sorted(counts.items()) if count},
        "tasks": [],
        "gone": [],
        "left_out": len(changes),
    }
    for name, tasks in stuck.items():
        if tasks:
            # This comes without a change of the task, so no cursor knows when.
            digest[name] = {"count": len(tasks), "tasks": tasks[:_STUCK]}
    if since is not None and not is_known:
        digest["note"] = "unknown cursor: this is a full digest"
    room = MAX_BYTES - _size(digest) - 1 - (_TOLD_BYTES if is_full else 0)
    for at, (_, task_id, row) in enumerate(changes):
        entry = task_id if row is None else _entry(row)
        # A comma and a space, or brackets.
        room -= _size(entry) + 2
        if room < 0 and at:
            number, last, _ = changes[at - 1]
            digest["cursor"] = f"{index}.{newest}.{number}.{last}" if is_full else f"{index}.{number}"
            return digest
        digest["gone" if row is None else "tasks"].append(entry)
        digest["left_out"] -= 1
    return digest


def as_text(value: Any) -> str:
    """The JSON text whose size counts."""
    return quick_json.dumps(value, ensure_ascii=False)


def _entry(row: dict[str, Any]) -> dict[str, Any]:
    """What an orchestrator needs of a task, and nothing else."""
    entry: dict[str, Any] = {"id": row["task_id"], "state": row["status"]}
    stages: list[dict[str, Any]] = row.get("stages") or []
    if len(stages) > 1:
        done = sum(stage.get("state") == "done" for stage in stages)
        entry["stage"] = _cut(f"{row['stage']} ({done} of {len(stages)} done)", _REASON_BYTES)
    if row.get("labels") and _size(row["labels"]) <= _LABEL_BYTES:
        entry["labels"] = row["labels"]
    interrupt: dict[str, Any] = row.get("interrupt") or {}
    if row["status"] == Status.INTERRUPTED and interrupt:
        entry["needs"] = "approve" if interrupt.get("approval") else "answer"
        entry["question"] = _cut(interrupt.get("reason") or "", _QUESTION_BYTES)
    elif row.get("status_reason") and row["status"] != Status.COMPLETED:
        entry["reason"] = _cut(row["status_reason"], _REASON_BYTES)
    if row.get("asking"):
        entry["asking"] = row["asking"][:_STUCK]
    place: dict[str, Any] = row.get("queue") or {}
    if describe.is_held(row):
        entry["state"], entry["needs"] = place["state"], "retry"
        entry["waits"] = _cut(place["waits"], _REASON_BYTES)
    elif waits := describe.waiting_for(row) or place.get("waits"):
        entry["waits"] = _cut(waits, _REASON_BYTES)
    if concerns := describe.concerns(row):
        entry["concerns"] = _cut(concerns, _REASON_BYTES)
    if (row.get("attempt") or 0) > 1:
        entry["attempt"] = row["attempt"]
    return entry


def _cut(value: Any, limit_bytes: int) -> str:
    text = str(value)[:limit_bytes]
    while _size(text) > limit_bytes:
        # A character takes up to six bytes.
        text = text[: len(text) - max(1, (_size(text) - limit_bytes) // 6)]
    return text if len(text) == len(str(value)) else f"{text[:-3]}…"


def _size(value: Any) -> int:
    return len(as_text(value).encode("utf-8", "backslashreplace"))
