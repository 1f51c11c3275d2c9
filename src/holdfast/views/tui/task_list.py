"""The list of tasks: a line is drawn only when it is visible and changed.

With 1,000 tasks and 20 changes per second, a DataTable needs half a core.
"""

from __future__ import annotations

from rich.segment import Segment
from textual.binding import Binding
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from holdfast import clock
from holdfast.views.text import describe
from holdfast.views.tui import columns, styles
from holdfast.views.tui.board import Board, Heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from textual import events

    from holdfast.store.layout import Home


class TaskList(ScrollView, can_focus=True):
    """Shows a Board. One task is selected, unless there is none."""

    BINDINGS = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "first", "First task", show=False),
        Binding("end,G", "last", "Last task", show=False),
        Binding("enter", "open", "Open"),
    ]
    DEFAULT_CSS = "TaskList { height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; }"

    class Opened(Message):
        """A person opened a task."""

        def __init__(self, task_id: str) -> None:
            super().__init__()
            self.task_id = task_id

    class Moved(Message):
        """Another task is selected, or none."""

    def __init__(self, home: Home, board: Board) -> None:
        super().__init__()
        self._home, self.board = home, board
        #: The selected task, and the line in which it was seen last.
        self.selected: str | None = None
        self._cursor = 0

    # ── what changed ──

    def rearrange(self) -> None:
        """The lines of the board changed. The selected task stays selected; if it is gone, a neighbour is."""
        lines = self.board.lines
        if self.selected in lines:
            self._cursor = lines.index(self.selected)
        else:
            self._cursor = min(self._cursor, max(0, len(lines) - 1))
            self._select_near(1)
        self.virtual_size = Size(self.size.width, len(lines))
        self.refresh()

    def redraw(self, task_id: str) -> None:
        """One task changed, but not its place. It is drawn if it is visible."""
        top = self.scroll_offset.y
        for y in range(self.size.height):
            if top + y < len(self.board.lines) and self.board.lines[top + y] == task_id:
                self.refresh_line(y)

    def tick(self) -> None:
        """Time went by: draw the visible tasks whose line changes by itself."""
        top, lines = self.scroll_offset.y, self.board.lines
        for y in range(min(self.size.height, len(lines) - top)):
            line = lines[top + y]
            if isinstance(line, str) and _is_moving(self.board.get(line)):
                self.refresh_line(y)

    def refresh_line(self, y: int) -> None:
        """Draw one visible line again."""
        self.refresh(Region(0, y, self.size.width, 1))

    # ── drawing ──

    def render_line(self, y: int) -> Strip:
        """Line `y` of the screen."""
        width = self.size.width
        at = self.scroll_offset.y + y
        lines = self.board.lines
        if at >= len(lines):
            return Strip.blank(width)
        line = lines[at]
        if isinstance(line, Heading):
            return Strip([Segment(line.text, styles.GROUPS[line.group])]).adjust_cell_length(width)
        row = self.board.get(line)
        if row is None:
            return Strip.blank(width)
        strip = Strip(self._segments(row, width)).adjust_cell_length(width)
        return strip.apply_style(styles.CURSOR) if line == self.selected else strip

    def _segments(self, row: dict[str, Any], width: int) -> list[Segment]:
        now, output_log = clock.now(), self._home.output_log_of(row["task_id"])
        segments: list[Segment] = []
        for column in columns.fitting(width):
            text = columns.cell(column.name, row, now, output_log)
            if segments:
                segments.append(Segment(" "))
            style = styles.STATES.get(text) if column.name == "STATE" else None
            segments.append(Segment(column.fit(text), style))
        return segments

    # ── the cursor ──

    def action_move(self, step: int) -> None:
        """To the next or previous task."""
        self._cursor += step
        self._select_near(step)

    def action_page(self, step: int) -> None:
        """A screen up or down."""
        self._cursor += step * max(1, self.size.height - 1)
        self._select_near(step)

    def action_first(self) -> None:
        """To the first task."""
        self._cursor = 0
        self._select_near(1)

    def action_last(self) -> None:
        """To the last task."""
        self._cursor = len(self.board.lines) - 1
        self._select_near(-1)

    def action_open(self) -> None:
        """Open the selected task."""
        if self.selected is not None:
            self.post_message(self.Opened(self.selected))

    def on_click(self, event: events.Click) -> None:
        """Select a task; a double click opens it."""
        at = self.scroll_offset.y + event.y
        if at < len(self.board.lines) and isinstance(self.board.lines[at], str):
            self._cursor = at
            self._select_near(1)
            if event.chain > 1:
                self.action_open()

    def on_resize(self) -> None:
        """The columns depend on the width."""
        self.rearrange()

    def _select_near(self, step: int) -> None:
        """Select the task in the line of the cursor; from a heading, the next one in the direction, or the
        one in the other direction."""
        lines = self.board.lines
        before = self.selected
        self._cursor = min(max(self._cursor, 0), max(0, len(lines) - 1))
        below, above = range(self._cursor, len(lines)), range(min(self._cursor, len(lines) - 1), -1, -1)
        order = (*below, *above) if step > 0 else (*above, *below)
        at = next((at for at in order if isinstance(lines[at], str)), None)
        self.selected = None
        if at is not None:
            line = lines[at]
            assert isinstance(line, str)
            self._cursor, self.selected = at, line
            # With its heading, if that is above it.
            top = at - 1 if at > 0 and isinstance(lines[at - 1], Heading) else at
            self.scroll_to_region(Region(0, top, 1, at - top + 1), animate=False, force=True)
        if self.selected != before:
            self.refresh()
            self.post_message(self.Moved())


def _is_moving(row: dict[str, Any] | None) -> bool:
    """Whether its line changes although its packet does not: elapsed time, output."""
    return row is not None and describe.group(row) in ("working", "waiting")
