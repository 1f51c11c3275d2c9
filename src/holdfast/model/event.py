"""The base of all events."""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar


class Event(Record):
    """An event. `id` and `at` are added when it is journalled."""

    type: ClassVar[str] = ""
