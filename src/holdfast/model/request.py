"""A request: a file in the inbox of a task, read by its runner."""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REQUESTS = (
    "start",
    "stop",
    "interrupt",
    "resume",
    "retry",
    "approve",
    "reject",
    "done",
    "applied",
    "takeover",
    "handback",
)


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
