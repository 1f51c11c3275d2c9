"""Questions to the person: confirm, type a text, read the help."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from holdfast.views.tui import styles
from holdfast.views.tui.text_view import TextView, shown

_CSS = """
{name} {{ align: center middle; }}
{name} > Vertical {{
    width: 76; max-width: 100%; height: auto; max-height: 90%;
    border: round ansi_bright_black; padding: 0 1; background: ansi_default;
}}
"""


class Confirm(ModalScreen[bool]):
    """Yes or no."""

    BINDINGS = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
    ]
    DEFAULT_CSS = _CSS.format(name="Confirm")

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """The question, and the keys."""
        with Vertical():
            yield Static(shown(self._question), markup=False)
            yield Static("y: yes   n: no", markup=False)

    def action_answer(self, answer: bool) -> None:  # noqa: FBT001 (a key binding passes it)
        """Close with the answer."""
        self.dismiss(answer)


class Ask(ModalScreen[str | None]):
    """A line of text; None if the person pressed escape."""

    BINDINGS = [Binding("escape", "cancel", "Cancel")]
    #: A long question scrolls: the field stays on the screen.
    DEFAULT_CSS = _CSS.format(name="Ask") + "Ask VerticalScroll { height: auto; max-height: 60vh; }"

    def __init__(self, question: str, hint: str = "") -> None:
        super().__init__()
        self._question, self._hint = question, hint

    def compose(self) -> ComposeResult:
        """The question, and a field."""
        with Vertical():
            with VerticalScroll(can_focus=False):
                yield Static("\n".join(map(shown, self._question.splitlines())), markup=False)
            yield Input(placeholder=self._hint)
            yield Static("enter: send   escape: cancel", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Close with the text."""
        self.dismiss(event.value)

    def action_cancel(self) -> None:
        """Close without."""
        self.dismiss(None)


class Help(ModalScreen[None]):
    """The keys. What is typed narrows them."""

    BINDINGS = [Binding("escape", "leave", "Close")]
    DEFAULT_CSS = _CSS.format(name="Help") + "Help TextView { height: 18; }"

    def __init__(self, keys: list[tuple[str, str]]) -> None:
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        """A field to search, and the list."""
        with Vertical():
            yield Input(placeholder="search the keys; escape closes")
            yield TextView()

    def on_mount(self) -> None:
        """Show all keys."""
        self._list("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show those that match."""
        self._list(event.value.casefold())

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)

    def _list(self, text: str) -> None:
        lines = [(f"{key:14} {does}", styles.PLAIN) for key, does in self._keys]
        self.query_one(TextView).show([line for line in lines if text in line[0].casefold()])
