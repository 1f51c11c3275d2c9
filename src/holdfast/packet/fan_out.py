"""The record of a fan-out, `state/fan-out.json`: its conductor writes it before it acts."""

from __future__ import annotations

import os

from holdfast import ids
from holdfast.errors import CorruptFile, HoldfastError
from holdfast.model.fan_out import LEFT_OUT, MERGED, PLANNER, FanOut, Merging, Row, child_id
from holdfast.model.record import Record
from holdfast.packet import load
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.spec import FanOutSpec
    from holdfast.store.layout import Packet


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
        raise CorruptFile(f"{packet.fan_out} is damaged: a field has another type")
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
    """Whether every field has the type of its default: an agent can write the file."""
    parts: list[tuple[Record, Record]] = [(record, FanOut()), *((row, _ROW) for row in record.rows)]
    parts += [(record.planning, _ROW)] if record.planning is not None else []
    parts += [(record.merging, _MERGING)] if record.merging is not None else []
    return all(
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
        found.append(
            ItemFacts(
                id=name,
                task=task,
                state=state or str(manifest.get("status") or "planned"),
                reason=row.reason if row is not None else "",
                files=row.files if row is not None else 0,
                returned=row.returned if row is not None else 0,
                cost_usd=usage.get("cost_usd"),
            )
        )
    return found


def task_ids(packet: Packet, spec: FanOutSpec) -> list[str]:
    """The tasks of a fan-out, whether they exist or not."""
    return [child_id(packet.task_id, name) for name in _names(_record(packet), spec)]


def _names(record: FanOut, spec: FanOutSpec) -> list[str]:
    planner = [PLANNER] if spec.ask else []
    return [*planner, *([item.id for item in spec.items] or [row.id for row in record.rows])]


def _record(packet: Packet) -> FanOut:
    try:
        return read(packet) or FanOut()
    except (CorruptFile, OSError):
        return FanOut()


def _manifest(packet: Packet) -> dict[str, Any]:
    if not os.path.isdir(packet.path):
        return {}
    try:
        return load.read_manifest(packet)
    except HoldfastError:
        return {"status": "unreadable"}
