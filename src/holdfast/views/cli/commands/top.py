"""holdfast top: all tasks on the terminal, live."""

from __future__ import annotations

import sys

from holdfast import extras, paths
from holdfast.errors import NotPossible, UsageError
from holdfast.store.layout import Home
from holdfast.views import descriptors
from holdfast.views.cli.parse.command_spec import Command
from holdfast.views.cli.show import terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="top",
    summary="Watch and steer all tasks on the terminal.",
    description="Shows the groups of 'holdfast ls', live: what needs you, working, waiting, queued, ended. "
    "Enter opens a task: its log, timeline, events, changes and gates. Keys stop, interrupt, answer, approve "
    "and retry it; '?' lists them. Quitting affects no task. Needs Textual (the extra 'tui').",
    examples=("holdfast top",),
)


#: The event loop, the watch on the home, and what a page of a task opens.
_FILES = 16


def run(values: dict[str, Any]) -> int:
    """Show the tasks until the person quits."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or terminal.is_dumb():
        raise UsageError("'top' needs a terminal", hint="'holdfast ls' prints the tasks once")
    try:
        from holdfast.views.tui.app import TopApp
        from holdfast.views.tui.leave import LeaveLimit
    except ImportError as error:
        if not (error.name or "").startswith(("textual", "rich")):
            raise
        raise NotPossible(
            "'top' needs Textual, which is not installed", hint=extras.how_to_install("tui")
        ) from error
    descriptors.need(_FILES, "top")
    app, limit = TopApp(Home(paths.home())), LeaveLimit()
    app.on_leave = limit.start
    app.run()
    limit.stop()
    return 0
