"""state/work.json: the progress of a work item as its agent reports it.

An agent writes the file, so reading is tolerant.

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
_MAX_BYTES = 65536
_MAX_CHARS = 500
_MAX_STEPS = 10**9


def read(packet: Packet) -> dict[str, Any] | None:
    """The work item; None if there is none or it cannot be parsed."""
    raw = atomic.read_small(packet.work, _MAX_BYTES)
    if raw is None:
        return None
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return tidy(data) if isinstance(data, dict) else None  # pyright: ignore[reportUnknownArgumentType]


def tidy(data: dict[str, Any]) -> dict[str, Any]:
    """The known fields; a value of the wrong type becomes null, unknown fields are dropped."""
    value: Any = data.get("progress")
    progress: dict[str, Any] = value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    done, total = _count(progress.get("steps_completed")), _count(progress.get("steps_total"))
    if done is not None and total is not None and done > total:
        total = None  # there is more to do than the agent expected
    return {
        "schema": SCHEMA,
        **{
            name: _text(data.get(name))
            for name in ("id", "status", "assigned_session", "started_at", "last_updated")
        },
        "progress": {
            "steps_completed": done,
            "steps_total": total,
            "current_step": _text(progress.get("current_step")),
        },
    }


def merge(old: dict[str, Any] | None, **known: str | None) -> dict[str, Any]:
    """The item with the fields that holdfast knows (`id`, `status`, `assigned_session`, …).

    Progress is kept.
    """
    base = tidy(old or {})
    return {**base, **{name: value for name, value in known.items() if value is not None}}


def write(packet: Packet, item: dict[str, Any]) -> None:
    """Replace state/work.json. Not durable: the journal has everything important. Raises StorageError."""
    atomic.write_json(packet.work, item, durable=False)


def as_text(item: dict[str, Any] | None, redact: Callable[[str], str] = str) -> str:
    """Progress as text, such as `3/10 Implementing the login`; empty if unknown."""
    if item is None:
        return ""
    progress: dict[str, Any] = item.get("progress") or {}
    done, total = progress.get("steps_completed"), progress.get("steps_total")
    count = "" if done is None else f"{done}/{total}" if total is not None else f"step {done}"
    return redact(f"{count} {progress.get('current_step') or ''}".strip())


def _text(value: Any) -> str | None:
    return value[:_MAX_CHARS] if isinstance(value, str) and value else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= _MAX_STEPS else None
