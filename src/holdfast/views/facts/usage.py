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
    attempt, else they are added. `is_of_session`: they include earlier attempts of the session, all of which
    have the same `session`: the number of its first attempt.
    """
    found: list[dict[str, Any]] = []
    #: The session of each attempt, and the last one of each stage.
    of_attempt: dict[int, int] = {}
    of_stage: dict[str, int] = {}
    for line in metrics.lines(packet.journal):
        number = line.get("attempt")
        if not isinstance(number, int):
            continue
        if line.get("type") == "attempt.opened" and line.get("kind", "agent") == "agent":
            stage = str(line.get("stage"))
            if line.get("mode") != "resume":
                of_stage[stage] = number
            of_attempt[number] = of_stage.setdefault(stage, number)
        elif line.get("type") == "agent.usage":
            found.append(
                {
                    "at": happened_at(line),
                    "attempt": number,
                    "session": of_attempt.get(number, number),
                    **{name: line.get(name) for name in _FIELDS},
                    "is_cumulative": bool(line.get("cumulative")),
                    "is_of_session": bool(line.get("of_session")),
                }
            )
    return found
