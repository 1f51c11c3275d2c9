"""A digest of a home for an agent that orchestrates tasks: only what changed since its last one, in 4 KB.

A cursor names a position in the index of tasks. An index that was rebuilt, or has forgotten a removal, does
not know it: then the digest is a full one, and says so. What does not fit comes with the next digest.
"""

from __future__ import annotations

import os

from holdfast import quick_json
from holdfast.model import labels
from holdfast.model.status import Status
from holdfast.store.index import Index
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
#: In place of the id of an index: there was no task yet.
_NONE = "none"
#: Sizes to which texts are cut, as JSON. Labels that take more are left out.
_REASON_BYTES, _QUESTION_BYTES, _LABEL_BYTES = 300, 1200, 400

#: The number of a change, the task, and its row; None for a task that is gone.
if TYPE_CHECKING:
    Change = tuple[int, str, dict[str, Any] | None]


def gather(
    home: Home,
    *,
    since: str | None,
    only: Collection[str] | None = None,
    wanted: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The digest since a cursor, or a full one; of the tasks with these ids and labels."""
    if not os.path.isdir(home.tasks):
        return _fitted([], {}, index=_NONE, newest=0, since=since, is_known=since == f"{_NONE}.0")
    index = Index(home)
    try:
        live, counts = index.overview()
        name, newest, gone_from = index.position()
        start = _start(since, name, newest, gone_from)
        changes = _full(index, live) if start is None else index.changed_since(start)
        if only is not None or wanted:
            asked = [row for row in [*live, *index.ended(None)] if _is_asked(row, only, wanted)]
            counts = _counts(asked)
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
    return _fitted(changes, counts, index=name, newest=newest, since=since, is_known=start is not None)


def _start(since: str | None, name: str, newest: int, gone_from: int) -> int | None:
    """The number after which changes are asked for; None if the cursor is unknown."""
    if since == f"{_NONE}.0":
        return 0
    of, _, number = (since or "").partition(".")
    if of != name or not number.isascii() or not number.isdigit() or len(number) > 15:
        return None
    return int(number) if gone_from <= int(number) <= newest else None


def _full(index: Index, live: list[dict[str, Any]]) -> list[Change]:
    numbers = index.numbers()
    rows = {row["task_id"]: row for row in [*live, *index.ended(RECENT)]}
    return sorted((numbers.get(task_id, 0), task_id, row) for task_id, row in rows.items())


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
    *,
    index: str,
    newest: int,
    since: str | None,
    is_known: bool,
) -> dict[str, Any]:
    """As many changes as fit, the oldest first: the cursor stands after the last of them."""
    digest: dict[str, Any] = {
        "schema": SCHEMA,
        "cursor": f"{index}.{newest}",
        "full": not is_known,
        "counts": dict(sorted(counts.items())),
        "tasks": [],
        "gone": [],
        "left_out": len(changes),
    }
    if since is not None and not is_known:
        digest["note"] = "unknown cursor: this is a full digest"
    room = MAX_BYTES - _size(digest) - 1
    for at, (_, task_id, row) in enumerate(changes):
        entry = task_id if row is None else _entry(row)
        # A comma and a space, or brackets.
        room -= _size(entry) + 2
        if room < 0 and at:
            digest["cursor"] = f"{index}.{changes[at - 1][0]}"
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
    if waits := describe.waiting_for(row):
        entry["waits"] = _cut(waits, _REASON_BYTES)
    if concerns := describe.concerns(row):
        entry["concerns"] = _cut(concerns, _REASON_BYTES)
    if row.get("attempt", 0) > 1:
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
