"""A long text, of which only the visible lines are drawn."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from holdfast.views.text import fit_text
from holdfast.views.tui import styles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    #: A line of text, and its style.
    Line = tuple[str, Style]

#: A longer line is cut.
_LONGEST = 2000


class TextView(ScrollView, can_focus=True):
    """Lines with a style each. At its end, it follows what is appended."""

    BINDINGS = [
        Binding("up,k", "scroll_up", "Up", show=False),
        Binding("down,j", "scroll_down", "Down", show=False),
        Binding("left", "scroll_left", "Left", show=False),
        Binding("right", "scroll_right", "Right", show=False),
        Binding("pageup,b", "page_up", "Page up", show=False),
        Binding("pagedown,space", "page_down", "Page down", show=False),
        Binding("home,g", "scroll_home", "Begin", show=False),
        Binding("end,G", "scroll_end", "End", show=False),
    ]
    DEFAULT_CSS = "TextView { height: 1fr; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }"

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Line] = []
        self._widest = 0
        self._found = -1

    @property
    def is_at_end(self) -> bool:
        """Whether the last line is visible."""
        return self.scroll_offset.y >= self.virtual_size.height - self.size.height

    def show(self, lines: Sequence[Line], *, at_end: bool = False) -> None:
        """Replace the text. The position stays, if the new text is long enough."""
        self.lines, self._widest, self._found = list(lines), 0, -1
        self._measure(self.lines)
        if at_end:
            self.scroll_end(animate=False, force=True, immediate=True)
        self.refresh()

    def append(self, lines: Sequence[Line]) -> None:
        """Add lines after the last one, and follow them if that was visible."""
        follows = self.is_at_end
        self.lines += lines
        self._measure(lines)
        if follows:
            self.scroll_end(animate=False, force=True, immediate=True)
        self.refresh()

    def prepend(self, lines: Sequence[Line]) -> None:
        """Add lines before the first one; what is visible stays where it is."""
        self.lines[:0] = lines
        self._found += len(lines) if self._found >= 0 else 0
        self._measure(lines)
        self.scroll_to(y=self.scroll_offset.y + len(lines), animate=False, force=True, immediate=True)
        self.refresh()

    def find(self, text: str, step: int = 1) -> bool:
        """Go to the next line that contains the text, in any case; from the other end, if there is none."""
        needle, count = text.casefold(), len(self.lines)
        start = self._found if self._found >= 0 else self.scroll_offset.y - step
        for distance in range(1, count + 1):
            at = (start + step * distance) % count
            if needle in self.lines[at][0].casefold():
                self._found = at
                self.scroll_to(y=max(0, at - self.size.height // 2), animate=False, force=True)
                self.refresh()
                return True
        return False

    def render_line(self, y: int) -> Strip:
        """Line `y` of the screen."""
        left, top = self.scroll_offset
        width, at = self.size.width, top + y
        if at >= len(self.lines):
            return Strip.blank(width)
        text, style = self.lines[at]
        if at == self._found:
            style = styles.FOUND
        return Strip([Segment(shown(text), style)]).crop_extend(left, left + width, None)

    def _measure(self, lines: Sequence[Line]) -> None:
        widest = max((cell_len(shown(text)) for text, _ in lines), default=0)
        self._widest = max(self._widest, widest)
        self.virtual_size = Size(self._widest, len(self.lines))


def shown(text: str) -> str:
    """A line without characters that a terminal obeys, cut to a sane length."""
    return fit_text.printable(text[:_LONGEST].expandtabs(8))
