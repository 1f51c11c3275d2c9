"""state/work.json: where a work item stands, as its agent says. Tolerant: an agent writes it, in whatever shape.

{"id", "status", "assigned_session", "started_at", "last_updated",
 "progress": {"steps_completed", "steps_total", "current_step"}}
"""

from __future__ import annotations

import json

from holdfast.store import atomic
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SCHEMA = "holdfast.work/1"
_LIMIT_BYTES = 65536
_TEXT_CHARS = 500
_MOST = 10**9


def read(packet: Packet) -> dict[str, Any] | None:
    """The work item; None when there is none, or nothing of it can be understood."""
    raw = atomic.read_small(packet.work, _LIMIT_BYTES)
    if raw is None:
        return None
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return tidy(data) if isinstance(data, dict) else None  # pyright: ignore[reportUnknownArgumentType]


def tidy(data: dict[str, Any]) -> dict[str, Any]:
    """The known fields, each of its kind or null; what is of no use is left out."""
    progress: Any = data.get("progress")
    given: dict[str, Any] = progress if isinstance(progress, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    done, total = _count(given.get("steps_completed")), _count(given.get("steps_total"))
    if done is not None and total is not None and done > total:
        total = None  # it found more to do than it had thought
    return {
        "schema": SCHEMA,
        **{
            name: _text(data.get(name))
            for name in ("id", "status", "assigned_session", "started_at", "last_updated")
        },
        "progress": {
            "steps_completed": done,
            "steps_total": total,
            "current_step": _text(given.get("current_step")),
        },
    }


def merge(old: dict[str, Any] | None, **known: str | None) -> dict[str, Any]:
    """The item with what holdfast knows for certain (`id`, `status`, `assigned_session`, …); the progress stays the agent's."""
    base = tidy(old or {})
    return {**base, **{name: value for name, value in known.items() if value is not None}}


def write(packet: Packet, item: dict[str, Any]) -> None:
    """Replace state/work.json. Derived: the journal has what matters. Raises StorageError."""
    atomic.write_json(packet.work, item, durable=False)


def words(item: dict[str, Any] | None, redact: Callable[[str], str] = str) -> str:
    """`3/10 Implementing the login`; nothing where nothing is known."""
    if item is None:
        return ""
    progress: dict[str, Any] = item.get("progress") or {}
    done, total = progress.get("steps_completed"), progress.get("steps_total")
    count = "" if done is None else f"{done}/{total}" if total is not None else f"step {done}"
    return redact(f"{count} {progress.get('current_step') or ''}".strip())


def _text(value: Any) -> str | None:
    return value[:_TEXT_CHARS] if isinstance(value, str) and value else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= _MOST else None
