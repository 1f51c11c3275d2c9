"""A task as it was at each moment: state, stage, attempt, tokens and cost, from its journal.

The log at a moment is `log.window(packet, at=…)`.
"""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.model.analysis import happened_at
from holdfast.model.fold import apply
from holdfast.model.task import Task
from holdfast.store.layout import Packet
from holdfast.views.facts.events import EventReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = "holdfast.replay/1"
#: Of more moments, some of those in which only tokens changed are left out.
MAX_MOMENTS = 2000
#: What a value of another version, or a damaged one, raises.
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, IndexError)


def gather(packet: Packet) -> dict[str, Any]:
    """Each moment at which something changed, oldest first; it holds until the next one.

    What was not known is null. A line of the journal that cannot be read changes nothing.
    """
    task = Task()
    moments: list[dict[str, Any]] = []
    for line in EventReader(packet).new():
        try:
            apply(task, ev.decode(line), str(line["at"]))
            found = _moment(task, happened_at(line))
        except _UNREADABLE:
            continue
        if not moments or _without_time(moments[-1]) != _without_time(found):
            # What an agent said was perhaps read later than it was said, but never before what came first.
            found["at"] = max(found["at"], moments[-1]["at"]) if moments else found["at"]
            moments.append(found)
    return {"schema": SCHEMA, "task_id": packet.task_id, "moments": _thinned(moments)}


def _moment(task: Task, at: str) -> dict[str, Any]:
    usage, attempt = task.total_usage, task.attempt
    return {
        "at": at,
        "state": str(task.status),
        "reason": task.reason,
        "stage": task.stage,
        "attempt": attempt.number if attempt is not None else None,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd,
    }


def _without_time(moment: dict[str, Any]) -> dict[str, Any]:
    return {**moment, "at": ""}


def _thinned(moments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most about MAX_MOMENTS: all in which state, stage or attempt changed, and some of the others."""
    if len(moments) <= MAX_MOMENTS:
        return moments
    step = len(moments) // MAX_MOMENTS + 1
    kept: list[dict[str, Any]] = []
    for number, moment in enumerate(moments):
        is_last = number == len(moments) - 1
        if number % step == 0 or is_last or not kept or _place(kept[-1]) != _place(moment):
            kept.append(moment)
    return kept


def _place(moment: dict[str, Any]) -> tuple[Any, ...]:
    return moment["state"], moment["stage"], moment["attempt"]
