"""What is new in one task since the last look: events of its journal, and lines of its log.

The place of an event is the byte of the journal after it. It is the id of the message that brings it, so that
a page that lost its connection goes on exactly there.
"""

from __future__ import annotations

import os

from holdfast.views.facts import log
from holdfast.views.facts.events import EventReader
from holdfast.views.output_refresh import OutputRefresher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Packet

#: Events in one message.
_EVENTS = 100
_LOG_BYTES = 128 * 1024


class TaskFollower:
    """Follows a task from two places. Not for several threads at once."""

    def __init__(self, packet: Packet, *, journal: int, log_bytes: int | None) -> None:
        self._packet = packet
        self._reader = EventReader(packet, offset=journal)
        #: Where the log goes on; None if it is not followed.
        self.log_bytes = log_bytes
        self._refresher = OutputRefresher()
        self._left: list[tuple[int, dict[str, Any]]] = []

    def events(self) -> tuple[int, list[dict[str, Any]]] | None:
        """The next events, and the byte of the journal after them; None if there are none."""
        if not self._left:
            self._left = list(self._reader.placed())
        if not self._left:
            return None
        batch, self._left = self._left[:_EVENTS], self._left[_EVENTS:]
        return batch[-1][0], [event for _, event in batch]

    def log(self, status: str) -> dict[str, Any] | None:
        """The next part of the log; None if there is none."""
        if self.log_bytes is None:
            return None
        self._refresher.poll(self._packet, status)
        try:
            size = os.stat(self._packet.output_log).st_size
        except OSError:
            return None
        if size <= self.log_bytes:
            self.log_bytes = min(size, self.log_bytes)
            return None
        window = log.window(self._packet, begin=self.log_bytes, limit=_LOG_BYTES)
        self.log_bytes = window["end"]
        return window
