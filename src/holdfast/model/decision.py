"""Decisions: what follows from a failure or an end. All policies use them."""

from __future__ import annotations

from holdfast.model.names import Names
from holdfast.model.record import Record
from holdfast.model.status import Status


class Then(Names):
    """What to do next."""

    COMPLETE = "complete"
    RETRY = "retry"
    #: The gate refused the work: it goes back to an agent, with the evidence.
    REPAIR = "repair"
    #: Until a limit of the service is lifted; costs no retry.
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
    #: As `model.status.Cause`.
    cause: str = ""
    #: Whether it costs a retry.
    burns: bool = True
    fresh_session: bool = False
    #: The shortest pause before a retry.
    pause_s: float = 0.0


#: If decisions about parallel attempts differ, the last of these wins.
_SEVERITY = (Then.COMPLETE, Then.RETRY, Then.REPAIR, Then.WAIT, Then.ASK, Then.END)


def severity(decision: Decision) -> int:
    """The rank of a decision among those of parallel attempts: the highest wins."""
    return _SEVERITY.index(decision.then)
