"""The record of a fan-out, `state/fan-out.json`: its conductor writes it before it acts."""

from __future__ import annotations

import os

from holdfast import clock, ids
from holdfast.errors import CorruptFile, HoldfastError
from holdfast.model.fan_out import LABEL, LEFT_OUT, MERGED, OPEN, PLANNER, FanOut, Merging, Row, child_id
from holdfast.model.record import Record
from holdfast.model.soundness import UNREADABLE
from holdfast.model.status import ENDS, Status
from holdfast.model.work_plan import MAX_ITEMS
from holdfast.packet import load
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.spec import FanOutSpec
    from holdfast.store.layout import Packet

_CONCLUSION_CHARS = 500
#: The conductor creates a task that can start sooner than this.
_STEP_S = 5.0


def read(packet: Packet) -> FanOut | None:
    """The record of a parent; None before its first step. Raises CorruptFile."""
    data = atomic.read_json(packet.fan_out)
    if data is None:
        return None
    try:
        record = FanOut.from_json(data)
        is_sound = _is_sound(record)
    except (ValueError, TypeError, AttributeError) as error:
        raise CorruptFile(f"{packet.fan_out} is damaged: {error}") from error
    if not is_sound:
        raise CorruptFile(
            f"{packet.fan_out} is damaged: a field has another type, or there are too many rows"
        )
    commits = [record.tip, *((record.merging.old, record.merging.new) if record.merging is not None else ())]
    if any(commit.startswith("-") for commit in commits):
        # git would take such a name for one of its options.
        raise CorruptFile(f"{packet.fan_out} is damaged: it names a commit that is none")
    rows = [*record.rows, *([record.planning] if record.planning is not None else [])]
    own = [child_id(packet.task_id, row.id) for row in rows]
    if [row.task for row in rows] != own or not all(ids.is_safe_name(task, 64) for task in own):
        raise CorruptFile(f"{packet.fan_out} is damaged: it names a task that is not one of this fan-out")
    return record


def _is_sound(record: FanOut) -> bool:
    """Whether every field has the type of its default, and no plan has more rows: an agent can write the
    file, and every view reads the task of each row."""
    parts: list[tuple[Record, Record]] = [(record, FanOut()), *((row, _ROW) for row in record.rows)]
    parts += [(record.planning, _ROW)] if record.planning is not None else []
    parts += [(record.merging, _MERGING)] if record.merging is not None else []
    return len(record.rows) <= MAX_ITEMS and all(
        type(part) is type(like) and type(getattr(part, name)) is type(getattr(like, name))
        for part, like in parts
        for name in like.fields
        if name not in FanOut.nested or name == "rows"
    )


_ROW, _MERGING = Row(id="", task=""), Merging(item="", old="", new="", files=0)


def write(packet: Packet, record: FanOut) -> None:
    """Write the record, durably."""
    atomic.write_json(packet.fan_out, record.to_json(), durable=True)


class ItemFacts(Record):
    """One item of a fan-out, as text."""

    id: str
    task: str
    #: `merged`, `left_out`, the state of its task, or `planned`.
    state: str
    reason: str = ""
    files: int = 0
    returned: int = 0
    cost_usd: float | None = None

    @property
    def text(self) -> str:
        """It in one line."""
        parts = [self.state.replace("_", " ")]
        if self.state == MERGED:
            parts = [f"merged, {self.files} file{'s' if self.files != 1 else ''} changed"]
        if self.returned:
            parts.append("sent back once" if self.returned == 1 else f"sent back {self.returned} times")
        if self.cost_usd is not None:
            parts.append(f"${self.cost_usd:.2f}")
        because = f": {self.reason}" if self.reason else ""
        return f"{self.id} ({self.task}): {', '.join(parts)}{because}"


def items(packet: Packet, spec: FanOutSpec) -> list[ItemFacts]:
    """The task that writes the plan, if there is one, and each item in the order of the plan."""
    record = _record(packet)
    known = {row.id: row for row in record.rows}
    found: list[ItemFacts] = []
    for name in _names(record, spec):
        row, task = known.get(name), child_id(packet.task_id, name)
        manifest = _manifest(load.wherever(packet.home.packet(task)))
        state = row.state if row is not None and row.state in (MERGED, LEFT_OUT) else ""
        usage: dict[str, Any] = manifest.get("usage") or {}
        reason = row.reason if row is not None else ""
        if row is not None and not state and manifest.get("status") in ENDS and not _is_judged(row, manifest):
            reason = ""  # it is about an earlier run
        found.append(
            ItemFacts(
                id=name,
                task=task,
                state=state or str(manifest.get("status") or "planned"),
                reason=reason,
                files=row.files if row is not None else 0,
                returned=row.returned if row is not None else 0,
                cost_usd=usage.get("cost_usd"),
            )
        )
    return found


def used(packet: Packet, spec: FanOutSpec) -> dict[str, Any]:
    """What its tasks used together, as the usage of a manifest, with `paid_calls`."""
    manifests = [_manifest(load.wherever(packet.home.packet(task))) for task in task_ids(packet, spec)]
    usages: list[dict[str, Any]] = [manifest.get("usage") or {} for manifest in manifests]
    costs = [usage["cost_usd"] for usage in usages if usage.get("cost_usd") is not None]
    return {
        "input_tokens": sum(usage.get("input_tokens") or 0 for usage in usages),
        "output_tokens": sum(usage.get("output_tokens") or 0 for usage in usages),
        "cost_usd": sum(costs) if costs else None,
        "unpriced_calls": sum(usage.get("unpriced_calls") or 0 for usage in usages),
        "paid_calls": sum(manifest.get("paid_calls") or 0 for manifest in manifests),
    }


def conclusion(packet: Packet) -> str:
    """`1 of 3 merged; left out: b: it conflicts with …`; empty without items."""
    record = _record(packet)
    merged = sum(row.state == MERGED for row in record.rows)
    left = [f"{row.id}: {row.reason}" for row in record.rows if row.state == LEFT_OUT]
    text = f"{merged} of {len(record.rows)} merged" if record.rows else ""
    return f"{text}; left out: {'; '.join(left)}"[:_CONCLUSION_CHARS] if left else text


def accepted_merges(packet: Packet) -> int:
    """The merges at which the acceptance commands of a fan-out, if it has any, ran and passed."""
    return sum(row.state == MERGED and row.files > 0 for row in _record(packet).rows)


def refusal(packet: Packet, manifest: dict[str, Any]) -> str:
    """`left out of the fan-out f1: it conflicts with …`: why the work of a completed task was not merged with
    that of the other items; empty if it was, or if it is no item."""
    row, parent = _row(packet, manifest), packet.task_id.rpartition(".")[0]
    if row is None or row.state == MERGED:
        return ""
    if row.state == LEFT_OUT and not _is_judged(row, manifest):
        return f"left out of the fan-out {parent} before this run: 'holdfast retry {parent}' merges it"
    how = "left out of" if row.state == LEFT_OUT else "sent back by"
    return f"{how} the fan-out {parent}: {row.reason}" if _is_judged(row, manifest) else ""


def is_late(packet: Packet, manifest: dict[str, Any]) -> bool:
    """Whether a person retried an item that was left out, and it completed: its fan-out has not seen that."""
    row = _row(packet, manifest)
    return row is not None and row.state == LEFT_OUT and not _is_judged(row, manifest)


def _row(packet: Packet, manifest: dict[str, Any]) -> Row | None:
    """What its fan-out decided about a completed task; None if it is no item."""
    parent = _parent(packet, manifest)
    rows = _record(parent).rows if parent is not None else ()
    return next((row for row in rows if row.task == packet.task_id), None)


def _is_judged(row: Row, manifest: dict[str, Any]) -> bool:
    return row.judged_run >= (manifest.get("run") or 1)


def sealed_refusal(packet: Packet, manifest: dict[str, Any]) -> str:
    """The same by the last words of the fan-out in its journal: an agent can write the record, and so let its
    work count as merged."""
    parent = _parent(packet, manifest)
    try:
        ended = load.derived(parent) if parent is not None else {}
    except HoldfastError:
        return ""
    name = packet.task_id.rpartition(".")[2]
    _, told, left = str(ended.get("status_reason")).partition("; left out: ")
    is_named = bool(told) and f"; {name}: " in f"; {left}"
    return f"left out of the fan-out {ended['task_id']}" if is_named else ""


def _parent(packet: Packet, manifest: dict[str, Any]) -> Packet | None:
    """The fan-out of which a completed task is an item."""
    labels: dict[str, str] = manifest.get("labels") or {}
    parent = packet.task_id.rpartition(".")[0]
    is_item = bool(parent) and labels.get(LABEL) == parent and manifest["status"] == Status.COMPLETED
    return load.wherever(packet.home.packet(parent)) if is_item else None


def needing(packet: Packet) -> str:
    """The fan-out that would not find the task of its item if that was archived: one that has not completed,
    and is not archived itself. Empty if there is none."""
    parent = packet.task_id.rpartition(".")[0]
    labels: dict[str, str] = _manifest(packet).get("labels") or {}
    if not parent or labels.get(LABEL) != parent:
        return ""
    status = _manifest(packet.home.packet(parent)).get("status")
    return "" if status in (None, UNREADABLE, Status.COMPLETED) else parent


def waiting_for_person(packet: Packet) -> list[str]:
    """The tasks of a fan-out that wait for a person, if nothing else of it can go on meanwhile."""
    record = _record(packet)
    # With rows, there is a plan.
    rows = record.rows or ((record.planning,) if record.planning is not None else ())
    found = {
        row.task: _manifest(packet.home.packet(row.task)).get("status") for row in rows if row.state == OPEN
    }
    waiting = [task for task, status in found.items() if status == Status.INTERRUPTED]
    if any(status not in (None, Status.INTERRUPTED) for status in found.values()):
        return []
    # The next task may be about to be created, after what it depends on was merged.
    is_last_word = None not in found.values() or _age_s(packet.fan_out) > _STEP_S
    return waiting if is_last_word else []


def _age_s(path: str) -> float:
    try:
        return clock.now() - os.stat(path).st_mtime
    except OSError:
        return 0.0


def task_ids(packet: Packet, spec: FanOutSpec) -> list[str]:
    """The tasks of a fan-out, whether they exist or not."""
    return [child_id(packet.task_id, name) for name in _names(_record(packet), spec)]


def _names(record: FanOut, spec: FanOutSpec) -> list[str]:
    planner = [PLANNER] if spec.ask else []
    return [*planner, *([item.id for item in spec.items] or [row.id for row in record.rows])]


def _record(packet: Packet) -> FanOut:
    try:
        return read(packet) or FanOut()
    except (HoldfastError, OSError):
        return FanOut()


def _manifest(packet: Packet) -> dict[str, Any]:
    if not os.path.isdir(packet.path):
        return {}
    try:
        return load.read_manifest(packet)
    except HoldfastError:
        return {"status": UNREADABLE}
