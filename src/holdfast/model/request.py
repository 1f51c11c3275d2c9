"""A request: a file in the inbox of a task, read by its runner."""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class RequestRules(Record):
    """What holds for every request with this verb."""

    #: The task runs afterwards.
    lets_run: bool = False
    #: It answers a question: interrupt files are put aside.
    answers: bool = False
    #: Refused while a person has the session.
    waits_for_handback: bool = False
    #: An agent may not ask it of its own task, or of one that started it.
    for_persons: bool = False


REQUESTS = {
    "start": RequestRules(),
    "stop": RequestRules(waits_for_handback=True, for_persons=True),
    "interrupt": RequestRules(),
    "resume": RequestRules(lets_run=True, answers=True, waits_for_handback=True, for_persons=True),
    "retry": RequestRules(lets_run=True, answers=True),
    "approve": RequestRules(lets_run=True, answers=True, waits_for_handback=True, for_persons=True),
    "reject": RequestRules(waits_for_handback=True, for_persons=True),
    "done": RequestRules(for_persons=True),
    "applied": RequestRules(),
    "takeover": RequestRules(lets_run=True, waits_for_handback=True, for_persons=True),
    "handback": RequestRules(lets_run=True, for_persons=True),
}
_UNKNOWN = RequestRules()


def rules(verb: str) -> RequestRules:
    """The row of a verb; for one that does not exist, a row that allows nothing."""
    return REQUESTS.get(verb, _UNKNOWN)


class Request(Record):
    """`inbox/<id>.json`."""

    schema: str = "holdfast.request/1"
    id: str
    verb: str
    args: dict[str, Any] = {}
    #: The sender: user@host, `keeper`, `agent of TASK`.
    by: str
    #: What the sender is: `person`, `agent`, `reply` (a person's answer that a program passes on), or
    #: `holdfast`. Empty: unknown, as in requests of older versions and of other programs.
    asker: str = ""
    at: str
