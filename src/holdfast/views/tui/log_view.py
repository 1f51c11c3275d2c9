"""A task's readable log: loaded in windows from its end, so that a log of any size opens at once."""

from __future__ import annotations

from holdfast.views.facts import log
from holdfast.views.text.sanitize import Sanitizer
from holdfast.views.tui import styles
from holdfast.views.tui.text_view import TextView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rich.style import Style

    from holdfast.store.layout import Packet

_WINDOW_BYTES = 128 * 1024
#: Lines kept loaded above the first visible one.
_AHEAD = 100


class LogView(TextView):
    """Follows a log at its end; earlier windows are loaded when one scrolls up."""

    def __init__(self, packet: Packet) -> None:
        super().__init__()
        self._packet = packet
        #: The bytes of the log that are loaded.
        self._begin = self._end = 0

    def open(self) -> None:
        """Show the end of the log."""
        self._load(end=log.window(self._packet, limit=1)["size"], at_end=True)

    def grow(self) -> None:
        """Show what was appended."""
        while True:
            window = log.window(self._packet, begin=self._end, limit=_WINDOW_BYTES)
            if window["size"] < self._end:
                self.open()  # it was replaced by a shorter one
                return
            if window["end"] == self._end:
                return
            self._end = window["end"]
            self.append(_lines(window))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Near the first loaded line, load what is before it."""
        super().watch_scroll_y(old_value, new_value)
        if new_value < _AHEAD and self._begin > 0:
            self.call_later(self._load_before)

    def go_to(self, text: str) -> bool:
        """Find a text that is not loaded, in the whole file. Returns whether there is one."""
        found = log.search(self._packet, text, limit=1)["lines"]
        if not found:
            return False
        self._load(end=min(found[0]["at"] + _WINDOW_BYTES // 2, self._end), at_end=False)
        return self.find(text)

    def _load(self, *, end: int, at_end: bool) -> None:
        window = log.window(self._packet, end=end, limit=_WINDOW_BYTES)
        self._begin, self._end = window["begin"], window["end"]
        self.show(_lines(window), at_end=at_end)

    def _load_before(self) -> None:
        if self._begin == 0:
            return
        window = log.window(self._packet, end=self._begin, limit=_WINDOW_BYTES)
        if window["begin"] >= self._begin:
            self._begin = 0  # nothing more can be read
            return
        self._begin = window["begin"]
        self.prepend(_lines(window))


def _lines(window: dict[str, Any]) -> list[tuple[str, Style]]:
    sanitizer = Sanitizer(has_colour=False)
    text = sanitizer.show(window["text"]) + sanitizer.end()
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [(line, _style(line)) for line in lines]


def _style(line: str) -> Style:
    if line.startswith(("[result: error", "[error")):
        return styles.BAD
    if line.startswith(("──", "--")):
        return styles.BOLD
    return styles.HINT if line.startswith("[") else styles.PLAIN
