"""The follower's text on a terminal: the log, with what the journal adds (`views/text/narration.py`)."""

from __future__ import annotations

import os

from holdfast.errors import HoldfastError
from holdfast.store.layout import Packet
from holdfast.views.facts.events import EventReader
from holdfast.views.text.narration import Narration

#: The past of a longer journal is not told: its log is shown as it is.
_MAX_BYTES = 16 * 1024 * 1024


class Narrator:
    """Turns bytes that were added to output.log into bytes to print."""

    def __init__(self, packet: Packet, *, from_start: bool) -> None:
        """`from_start`: the log is printed from its beginning, else from its end on."""
        self._narration = Narration()
        try:
            size = os.stat(packet.journal).st_size
        except OSError:
            size = 0
        is_whole = from_start and size <= _MAX_BYTES
        self._reader = EventReader(packet, offset=0 if is_whole else size)

    def __call__(self, data: bytes) -> bytes:
        """What to print for whole lines of the log; also without any, for what has ended silently."""
        try:
            self._narration.add(self._reader.new())
        except HoldfastError:
            pass  # the log alone is shown
        lines = data.decode("utf-8", "replace").split("\n")[:-1] if data else []
        told = self._narration.tell(lines)
        return "".join(f"{line}\n" for line in told).encode("utf-8", "replace")
