"""The application: the list of tasks, what wakes it, and the keys that ask tasks to do something."""

from __future__ import annotations

import asyncio
import os
import subprocess

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Footer, Input, Static

from holdfast import own_python, spawn
from holdfast.errors import HoldfastError, NotFound
from holdfast.model.status import ENDS
from holdfast.views.facts import changes, task_list
from holdfast.views.facts.changes import Changes
from holdfast.views.facts.queue_places import QueuePlaces
from holdfast.views.tui import actions, columns, dialogs, styles
from holdfast.views.tui.board import Board
from holdfast.views.tui.task_list import TaskList
from holdfast.views.tui.task_screen import TaskScreen
from holdfast.views.tui.text_view import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.store.layout import Home

#: Changes within this time are drawn together.
_TOGETHER_S = 0.1
_TICK_S = 1.0
#: Actions whose key is a letter or a sign.
_BY_LETTER = frozenset(
    ("stop", "interrupt", "answer", "reject", "retry", "attach", "take_over", "help", "sort", "everything")
)
_RECORDED = "a reason, optional; it is recorded"
#: How long the answer to a request is shown.
_TOLD_S = 10.0


class TopScreen(Screen[None]):
    """The list of tasks."""

    BINDINGS = [
        Binding("slash", "filter", "Filter"),
        Binding("o", "app.sort", "Sort", show=False),
        Binding("A", "app.everything", "All ended", show=False),
        Binding("q", "app.quit", "Quit"),
        Binding("escape", "clear_filter", "Clear the filter", show=False),
    ]
    DEFAULT_CSS = """
    TopScreen > Static { height: 1; }
    TopScreen > #obstacles { display: none; height: auto; max-height: 4; }
    TopScreen > #obstacles.open { display: block; }
    TopScreen > Input { display: none; height: 1; border: none; padding: 0; }
    TopScreen > Input.open { display: block; }
    """

    def __init__(self, home: Home, board: Board, obstacles: list[str]) -> None:
        super().__init__()
        self._home, self._board, self._obstacles = home, board, obstacles
        self.tasks = TaskList(home, board)

    def compose(self) -> ComposeResult:
        """Counts, what holds up the queue, names of the columns, tasks, keys."""
        yield Static(id="counts")
        yield Static(id="obstacles")
        yield Static(id="columns")
        yield self.tasks
        yield Input(placeholder="words that the tasks contain; escape shows all")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """The keys work on the list."""
        self.tasks.focus()
        self.show_counts()
        self.show_obstacles(self._obstacles)
        self.on_resize()

    def on_resize(self) -> None:
        """The columns depend on the width."""
        text = columns.header(columns.fitting(self.tasks.size.width or self.size.width))
        for line in self.query("#columns").results(Static):  # none before the screen is composed
            line.update(Text(text, style=styles.HEADER, no_wrap=True))

    def show_counts(self) -> None:
        """Tasks of each group, and how they are sorted and filtered."""
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append("holdfast", styles.BOLD)
        for group, count in self._board.counts().items():
            text.append("  ").append(f"{group} {count}", styles.GROUPS[group] if count else styles.DIM)
        if self._board.sort != "age":
            text.append(f"  by {self._board.sort}", styles.DIM)
        if self._board.filter:
            text.append(f"  only: {shown(self._board.filter)}", styles.WARNING)
        for line in self.query("#counts").results(Static):  # none any more when it is being closed
            line.update(text)

    def show_obstacles(self, obstacles: list[str]) -> None:
        """What keeps queued tasks from starting; no line if nothing does."""
        line = self.query_one("#obstacles", Static)
        line.set_class(bool(obstacles), "open")
        text = shown("; ".join(obstacles))
        line.update(Text(text, style=styles.WARNING))

    def action_filter(self) -> None:
        """Type what the tasks must contain."""
        field = self.query_one(Input)
        field.add_class("open")
        field.focus()

    @property
    def is_filtering(self) -> bool:
        """Whether what is typed belongs to the filter."""
        return any(field.has_class("open") for field in self.query(Input))

    def action_clear_filter(self) -> None:
        """Show all tasks again."""
        field = self.query_one(Input)
        field.value = ""
        self._close(field)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Narrow the list while one types."""
        self._board.narrow(event.value)
        self.tasks.rearrange()
        self.show_counts()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keep the filter."""
        self._close(event.input)

    def _close(self, field: Input) -> None:
        field.remove_class("open")
        self.tasks.focus()

    def on_task_list_opened(self, event: TaskList.Opened) -> None:
        """Show one task."""
        self.app.push_screen(TaskScreen(self._home, event.task_id))  # pyright: ignore[reportUnknownMemberType] (generic)


class TopApp(App[None]):
    """Follows a home until the person quits. No task needs it."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS = [
        Binding("s", "stop", "Stop"),
        Binding("i", "interrupt", "Interrupt"),
        Binding("a", "answer", "Answer"),
        Binding("x", "reject", "Reject", show=False),
        Binding("r", "retry", "Retry"),
        Binding("t", "attach", "Attach", show=False),
        Binding("T", "take_over", "Take over", show=False),
        Binding("question_mark", "help", "Help"),
    ]

    def __init__(self, home: Home) -> None:
        super().__init__(ansi_color=True)
        spawn.is_guest = True  # it has threads, which no forked runner may have
        self.theme = "ansi-dark"
        self._home = home
        self.board = Board()
        self._places = QueuePlaces(home)
        self._changes: Changes | None = None
        self._is_everything = False
        #: Called when the person quits.
        self.on_leave: Callable[[], None] = lambda: None

    def exit(self, result: None = None, return_code: int = 0, message: Any = None) -> None:
        """Quit."""
        self.on_leave()
        super().exit(result, return_code, message)

    def on_mount(self) -> None:
        """Show the tasks, and from then on what changes."""
        self._changes = Changes(self._home)
        self._fill()
        self.top = TopScreen(self._home, self.board, self._places.obstacles)
        self.push_screen(self.top)
        self._listen()
        self.set_interval(_TICK_S, self._tick)
        scan_s = changes.LIVE_SCAN_S if self._changes.descriptor >= 0 else changes.SCAN_S
        self.set_interval(scan_s, self._take)

    def on_unmount(self) -> None:
        """Stop watching."""
        if self._changes is not None:
            self._ignore()
            self._changes.close()
            self._changes = None

    def _fill(self) -> None:
        """Read the tasks that are shown: all of them, or without those that ended long ago."""
        if self._is_everything:
            rows, hidden = task_list.tasks(self._home, everything=True, state=None), set[str]()
        else:
            rows, hidden = task_list.recent_and_others(self._home)
        self.board.fill(self._places.arrange(rows), hidden)

    # ── changes ──

    def _listen(self) -> None:
        assert self._changes is not None
        if self._changes.descriptor >= 0:
            asyncio.get_running_loop().add_reader(self._changes.descriptor, self._told)

    def _ignore(self) -> None:
        assert self._changes is not None
        if self._changes.descriptor >= 0:
            asyncio.get_running_loop().remove_reader(self._changes.descriptor)

    def _told(self) -> None:
        """Something changed. It is read a moment later, with what follows at once."""
        self._ignore()
        # Not Textual's set_timer, which makes a task: it costs as much as reading the change.
        asyncio.get_running_loop().call_later(_TOGETHER_S, self._take_and_listen)

    def _take_and_listen(self) -> None:
        if self._changes is not None:
            self._take()
            self._listen()

    def _take(self) -> None:
        if self._changes is None:
            return
        changed = self._changes.wait(0)
        is_moved = False
        for task_id in changed:
            if self.board.put(task_id, self._read(task_id)):
                is_moved = True
            else:
                self.top.tasks.redraw(task_id)
        if is_moved:
            self.top.tasks.rearrange()
            self.top.show_counts()
        for screen in self.screen_stack:
            if isinstance(screen, TaskScreen) and screen.task_id in changed:
                screen.changed()

    def _read(self, task_id: str) -> dict[str, Any] | None:
        try:
            row = task_list.one(self._home, task_id)
        except NotFound:
            return None
        self._places.put(row)
        return row

    def _look_at_queue(self) -> None:
        """Show the places of queued tasks, and what holds them up, if the queue changed."""
        if not self._places.is_outdated:
            return
        self.board.fill(self._places.arrange(self.board.rows()))
        self.top.tasks.rearrange()
        self.top.show_counts()
        self.top.show_obstacles(self._places.obstacles)

    def _tick(self) -> None:
        self._look_at_queue()
        if isinstance(self.screen, TopScreen):
            self.screen.tasks.tick()
        elif isinstance(self.screen, TaskScreen):
            self.screen.tick()

    # ── keys ──

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """No letter of a filter is a command: over a slow line, keys arrive before it has the focus."""
        is_typed = action in _BY_LETTER and isinstance(self.screen, TopScreen) and self.screen.is_filtering
        return False if is_typed else super().check_action(action, parameters)

    @property
    def _task_id(self) -> str | None:
        for screen in reversed(self.screen_stack):
            if isinstance(screen, TaskScreen):
                return screen.task_id
        return self.top.tasks.selected

    def action_sort(self) -> None:
        """By the next criterion."""
        self.notify(f"sorted by {self.board.sort_next()}", timeout=2)
        self.top.tasks.rearrange()
        self.top.show_counts()

    def action_everything(self) -> None:
        """Show all ended tasks, or only the most recent ones again."""
        self._is_everything = not self._is_everything
        self._fill()
        self.top.tasks.rearrange()
        self.top.show_counts()

    def action_stop(self) -> None:
        """Stop the task, after a question."""
        if (task_id := self._task_id) is None:
            return

        def stop(confirmed: bool | None) -> None:  # noqa: FBT001 (Textual calls it)
            if confirmed:
                self._perform(lambda: actions.stop(self._home, task_id))

        self.push_screen(dialogs.Confirm(f"Stop {task_id}? Its agent gets time to exit."), stop)

    def action_interrupt(self) -> None:
        """Interrupt the task."""
        self._ask("Interrupt {}: why?", actions.interrupt, hint=_RECORDED)

    def action_answer(self) -> None:
        """Answer the task's question, or approve its stage."""
        row = self._row()
        if row is None:
            return
        interrupt = _interrupt(row)
        if not interrupt:
            self.notify(f"{row['task_id']} asks nothing", severity="warning", markup=False)
            return
        question = str(interrupt.get("reason") or "")
        if interrupt.get("approval"):
            self._ask(
                f"{question}\nApprove {{}}? (To reject it: escape, then x.)",
                actions.approve,
                hint="a message, optional",
            )
        elif interrupt.get("asked_by") in ("agent", "person"):
            self._ask(f"{question}\nAnswer {{}}:", actions.answer, hint="the agent gets this text")
        else:  # a login or a limit, for example: there is nothing to answer
            self._ask(f"{question}\nResume {{}}?", actions.answer, hint="a message for the agent, optional")

    def action_reject(self) -> None:
        """Reject the stage that waits for approval."""
        row = self._row()
        if row is not None and _interrupt(row).get("approval"):
            self._ask(
                "Reject the waiting stage of {}, which ends the task: why?", actions.reject, hint=_RECORDED
            )

    def action_retry(self) -> None:
        """Run an ended task again."""
        row = self._row()
        if row is not None and row["status"] not in ENDS:
            self.notify(f"{row['task_id']} has not ended", severity="warning", markup=False)
        elif row is not None:
            self._ask("Run {} again?", actions.retry, hint="a message for the agent, optional")

    def action_attach(self) -> None:
        """Follow the task in the whole terminal."""
        if (task_id := self._task_id) is not None:
            self._lend_terminal("attach", "--no-tmux", "--stay", task_id)

    def action_take_over(self) -> None:
        """Go on in the agent's own program, in the whole terminal."""
        if (task_id := self._task_id) is not None and self._lend_terminal("takeover", task_id):
            self.notify(f"{task_id} was not taken over", severity="warning", markup=False)

    def _lend_terminal(self, *argv: str) -> int:
        """Run a command of ours in the terminal. Returns its exit status."""
        with self.suspend():
            command = own_python.command("holdfast", *argv)
            done = subprocess.run(command, env={**os.environ, "HOLDFAST_HOME": self._home.path}, check=False)
            if done.returncode and argv[0] == "takeover":
                input("Enter goes back: ")  # or what it said would be gone
        self.refresh()
        return done.returncode

    def action_help(self) -> None:
        """All keys of this screen."""
        keys: dict[str, list[str]] = {}
        for active in self.screen.active_bindings.values():
            if active.binding.description:
                keys.setdefault(active.binding.description, []).append(self.get_key_display(active.binding))
        named = [(", ".join(dict.fromkeys(names)), does) for does, names in sorted(keys.items())]
        self.push_screen(dialogs.Help(named))

    def _row(self) -> dict[str, Any] | None:
        return self.board.get(self._task_id) if self._task_id is not None else None

    def _ask(self, question: str, act: Callable[[Home, str, str], str], *, hint: str) -> None:
        """Ask for a text, and perform the action with it."""
        if (task_id := self._task_id) is None:
            return

        def perform(text: str | None) -> None:
            if text is not None:
                self._perform(lambda: act(self._home, task_id, text.strip()))

        self.push_screen(dialogs.Ask(question.replace("{}", task_id), hint), perform)

    def _perform(self, act: Callable[[], str]) -> None:
        """In a thread, because an answer may take seconds; its result is shown."""

        def work() -> None:
            try:
                told, severity = act(), "information"
            except HoldfastError as error:
                told = f"{error}; {error.hint}" if error.hint else str(error)
                severity = "error"
            self.call_from_thread(self.notify, shown(told), severity=severity, timeout=_TOLD_S, markup=False)

        self.run_worker(work, thread=True, group="requests")


def _interrupt(row: dict[str, Any]) -> dict[str, Any]:
    return row.get("interrupt") or {}
