"""What follows from a failure or an end: the one vocabulary of every policy."""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.record import Record
from holdfast.model.status import Status


class Then(StrEnum):
    """What to do next."""

    COMPLETE = "complete"
    RETRY = "retry"
    #: Until a limit of the service is lifted; no retry is burned.
    WAIT = "wait"
    #: Ask a person.
    ASK = "ask"
    END = "end"


class Decision(Record):
    """What follows from the end of an attempt or from a gate."""

    then: Then
    #: The state that the task passes through (crashed, hung, timeout), or its end.
    status: Status
    reason: str
    #: Whether a retry is burned.
    burns: bool = True
    fresh_session: bool = False
    #: The shortest pause before a retry.
    pause_s: float = 0.0


#: When parallel attempts ended in several ways, the last of these wins.
_SEVERITY = (Then.COMPLETE, Then.RETRY, Then.WAIT, Then.ASK, Then.END)


def severity(decision: Decision) -> int:
    """How a decision ranks among those of parallel attempts: the highest is followed."""
    return _SEVERITY.index(decision.then)
