"""`desktop`: a desktop notification, with notify-send or, on macOS, osascript."""

from __future__ import annotations

import shutil

from holdfast.errors import CommandNotFound
from holdfast.notify.command import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The text is an argument of the script, never part of it.
_SCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)


def notify(notice: dict[str, Any], rule: dict[str, Any]) -> None:
    """Show the notification. If a person is needed, it stays until it is closed."""
    title = f"holdfast: {notice.get('task_id') or 'all tasks'}"
    needs_person = notice.get("event") in ("interrupted", "home_interrupt")
    if shutil.which("notify-send"):
        urgency = "critical" if needs_person else "normal"
        run(
            ["notify-send", f"--urgency={urgency}", "--app-name=holdfast", "--", title, notice["text"]],
            notice,
        )
    elif shutil.which("osascript"):
        script = [word for line in _SCRIPT for word in ("-e", line)]
        run(["osascript", *script, title, notice["text"]], notice)
    else:
        raise CommandNotFound("neither notify-send nor osascript is installed", hint="install libnotify-bin")
