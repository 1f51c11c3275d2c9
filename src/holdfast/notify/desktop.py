"""`desktop`: a desktop notification, with notify-send or, on macOS, osascript."""

from __future__ import annotations

from holdfast import program_search
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
    program_search.distrust(str(notice.get("home") or ""))
    program_search.distrust(str(notice.get("project_dir") or ""))
    if program := program_search.find("notify-send"):
        urgency = "critical" if needs_person else "normal"
        run(
            [program, f"--urgency={urgency}", "--app-name=holdfast", "--", title, notice["text"]],
            notice,
        )
    elif program := program_search.find("osascript"):
        script = [word for line in _SCRIPT for word in ("-e", line)]
        run([program, *script, title, notice["text"]], notice)
    else:
        raise CommandNotFound("neither notify-send nor osascript is installed", hint="install libnotify-bin")
