"""One task: what matters on top, and below it one of five pages."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import ContentSwitcher, Footer, Static

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.attempt_numbers import AttemptNumbers
from holdfast.views.facts.detail import Detail, detail
from holdfast.views.facts.events import EventReader
from holdfast.views.tui import dialogs, pages, styles
from holdfast.views.tui.log_view import LogView
from holdfast.views.tui.text_view import TextView, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Home

PAGES = ("log", "timeline", "events", "diff", "gates")
_LABELS = tuple(f" {at} {name} " for at, name in enumerate(PAGES, 1))
_HEAD_LINES = 7


class _PageNames(Static):
    """The line with the names of the pages; a click shows one."""

    async def on_click(self, event: events.Click) -> None:
        """Show the page whose name is there."""
        ends = 0
        for name, label in zip(PAGES, _LABELS, strict=True):
            ends += len(label)
            if event.x < ends:
                await self.run_action(f"screen.page('{name}')")
                return


class TaskScreen(Screen[None]):
    """Follows one task until the person goes back."""

    BINDINGS = [
        Binding("escape,q,backspace", "back", "Back"),
        # The line of the pages shows these keys.
        *(
            Binding(str(at), f"page('{name}')", name.capitalize(), show=False)
            for at, name in enumerate(PAGES, 1)
        ),
        Binding("tab", "next_page", "Next page", show=False),
        Binding("slash", "search", "Search"),
        Binding("n", "find(1)", "Next match", show=False),
        Binding("N", "find(-1)", "Previous match", show=False),
    ]
    DEFAULT_CSS = """
    TaskScreen > #head { height: auto; max-height: 9; }
    TaskScreen > #tabs { height: 1; }
    TaskScreen > ContentSwitcher { height: 1fr; }
    """

    def __init__(self, home: Home, task_id: str) -> None:
        super().__init__()
        self._home, self.task_id = home, task_id
        self._packet = home.packet(task_id)
        self.detail: Detail | None = None
        self._reader: EventReader | None = None
        self._numbers = AttemptNumbers()
        self._page = PAGES[0]
        self._searched = ""

    def compose(self) -> ComposeResult:
        """Head, names of the pages, the pages."""
        yield Static(id="head")
        yield _PageNames(id="tabs")
        with ContentSwitcher(initial="log"):
            log = LogView(self._packet)
            log.id = "log"
            yield log
            for name in PAGES[1:]:
                view = TextView()
                view.id = name
                yield view
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Show the log from its end."""
        self.changed()
        self.query_one(LogView).open()
        self.action_page("log")

    # ── what changed ──

    def changed(self) -> None:
        """The packet changed: read what is visible again."""
        if self._is_closing:
            return
        try:
            self.detail = detail(self._home, self.task_id)
        except HoldfastError as error:
            self.query_one("#head", Static).update(Text(shown(f"{self.task_id}: {error}")))
            return
        self._show_head()
        self._load(self._page)

    def tick(self) -> None:
        """Time went by: the log may have grown."""
        if self._is_closing:
            return
        if self._page == "log":
            self.query_one(LogView).grow()
        if self.detail is not None and not self.detail.has_ended:
            self._show_head()

    @property
    def _is_closing(self) -> bool:
        """Textual removes what is on a screen before it stops the timers of the app."""
        return not self.query(LogView)

    def _show_head(self) -> None:
        assert self.detail is not None
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(self.task_id, styles.BOLD)
        for line, style in pages.head(self.detail, clock.now())[:_HEAD_LINES]:
            text.append("\n").append(shown(line), style)
        self.query_one("#head", Static).update(text)

    def _load(self, page: str) -> None:
        if page == "log":
            self.query_one(LogView).grow()
        elif page == "events":
            self._load_events()
        elif page == "timeline":
            self._view(page).show(pages.timeline_page(self._packet, clock.now(), self.size.width))
        elif page == "gates" and self.detail is not None:
            self._view(page).show(pages.gates_page(self.detail))

    def _load_events(self) -> None:
        view = self._view("events")
        if self._reader is None:
            self._reader = EventReader(self._packet)
            view.show(pages.events_page(self._reader.new(), self._numbers), at_end=True)
        else:
            view.append(pages.events_page(self._reader.new(), self._numbers))

    def _load_diff(self) -> None:
        """In a thread: git may take long."""
        lines = pages.diff_page(self._packet)
        self.app.call_from_thread(self._view("diff").show, lines)  # pyright: ignore[reportUnknownMemberType]

    # ── keys ──

    def action_page(self, name: str) -> None:
        """Show a page."""
        self._page = name
        self.query_one(ContentSwitcher).current = name
        tabs = Text()
        for each, label in zip(PAGES, _LABELS, strict=True):
            tabs.append(label, styles.CURSOR if each == name else styles.DIM)
        self.query_one("#tabs", Static).update(tabs)
        self._view(name).focus()
        if name == "diff":
            self._view(name).show([("reading…", styles.DIM)])
            self.run_worker(self._load_diff, thread=True, exclusive=True, group="diff")
        else:
            self._load(name)

    def action_next_page(self) -> None:
        """Show the next page."""
        self.action_page(PAGES[(PAGES.index(self._page) + 1) % len(PAGES)])

    def action_back(self) -> None:
        """To the list."""
        self.app.pop_screen()  # pyright: ignore[reportUnknownMemberType]

    def action_search(self) -> None:
        """Ask for a text, and go to it."""

        def search(text: str | None) -> None:
            if text:
                self._searched = text
                self.action_find(1)

        self.app.push_screen(dialogs.Ask(f"Search in {self._page}:"), search)  # pyright: ignore[reportUnknownMemberType]

    def action_find(self, step: int) -> None:
        """Go to the next match; in a log, also to one that is not loaded yet."""
        if not self._searched:
            return
        view = self._view(self._page)
        if not view.find(self._searched, step) and not (
            isinstance(view, LogView) and view.go_to(self._searched)
        ):
            self.notify(f"{shown(self._searched)} was not found", severity="warning", markup=False)

    def _view(self, name: str) -> TextView:
        return self.query_one(f"#{name}", TextView)
