"""Journal events as lines: time, type, and the fields that matter."""

from __future__ import annotations

from holdfast import clock
from holdfast.model import amendment
from holdfast.views.text import describe, fit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.attempt_numbers import AttemptNumbers

#: In every event, or of use to programs only.
_HIDDEN = frozenset(
    {
        "id",
        "at",
        "type",
        "schema",
        "offset",
        "stream",
        "boot_id",
        "start_time",
        "mono_s",
        "request",
        "evidence",
    }
)
_MAX_CHARS = 200
#: The column in which the fields start.
DETAIL_COLUMN = 35


def line(event: dict[str, Any], numbers: AttemptNumbers) -> str:
    """`12:00:01.250  agent.tool_started   attempt=1 Bash pytest -q`."""
    at = str(event.get("at", ""))
    kind = str(event.get("type", "?"))
    shown = clock.local(at, "%H:%M:%S") + at[19:23]
    return fit_text.printable(f"{shown:12}  {kind:20} {fields(event, numbers)}".rstrip())


def fields(event: dict[str, Any], numbers: AttemptNumbers) -> str:
    """The fields that matter, shortened. Attempts have the numbers of `show`."""
    attempt = numbers.shown(event.get("attempt"))
    match event.get("type"):
        case "task.created":
            return f"{event.get('task_id')} as {event.get('status')}"
        case "task.moved":
            return describe.transition(
                event.get("old"), event.get("new"), event.get("reason")
            ) + describe.answer(event)
        case "run.opened" if event.get("amended"):
            changes = "; ".join(map(amendment.as_text, event["amended"]))
            return _short(f"run={event.get('run')} amended: {changes}")
        case "agent.text" | "agent.result":
            return _short(str(event.get("text", "")))
        case "agent.tool_started":
            return _short(f"{event.get('name')} {event.get('summary', '')}")
        case "agent.error":
            return _short(f"{event.get('kind')}: {event.get('message')}")
        case "attempt.opened":
            of_stage = f"{attempt} of {event.get('stage')}"
            if (event.get("kind") or "agent") != "agent":
                return of_stage  # a step of holdfast
            return f"{of_stage} by {event.get('agent')} ({event.get('mode')})"
        case "attempt.ended":
            detail = f": {event['detail']}" if event.get("detail") else ""
            return _short(f"{attempt} {event.get('outcome')}{detail}")
        case _:
            shown = {**event, "attempt": attempt} if event.get("attempt") is not None else event
            parts = [f"{name}={_value(value)}" for name, value in shown.items() if _is_shown(name, value)]
            return _short(" ".join(parts))


def _is_shown(name: str, value: object) -> bool:
    return name not in _HIDDEN and value not in (None, "", [], {})


def _value(value: object) -> str:
    if isinstance(value, list):
        return f"[{len(value)}]"  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, dict):
        return "{…}"
    return str(value)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _MAX_CHARS else flat[: _MAX_CHARS - 1] + "…"
