"""What a task has used, over time."""

from __future__ import annotations

from holdfast.model.analysis import happened_at
from holdfast.packet import metrics
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = "holdfast.usage-series/1"
_FIELDS = ("input_tokens", "output_tokens", "cost_usd")


def gather(packet: Packet) -> dict[str, Any]:
    """The series as a value of its own."""
    return {"schema": SCHEMA, "task_id": packet.task_id, "reports": series(packet)}


def series(packet: Packet) -> list[dict[str, Any]]:
    """Every report of usage in the journal, as the agents made it: `at`, `attempt`, tokens, cost.

    What an agent did not report is null, not zero. `is_cumulative`: the figures replace earlier ones of the
    attempt, else they are added. `is_of_session`: they include earlier attempts of the session.
    """
    return [
        {
            "at": happened_at(line),
            "attempt": line.get("attempt"),
            **{name: line.get(name) for name in _FIELDS},
            "is_cumulative": bool(line.get("cumulative")),
            "is_of_session": bool(line.get("of_session")),
        }
        for line in metrics.lines(packet.journal)
        if line.get("type") == "agent.usage"
    ]
