"""`openclaw`: wake an OpenClaw agent with the text."""

from __future__ import annotations

from holdfast.notify.command import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def notify(notice: dict[str, Any], rule: dict[str, Any]) -> None:
    """Run `openclaw system event --text … --mode now`."""
    program = rule.get("program", "openclaw")
    run([program, "system", "event", "--text", notice["text"], "--mode", "now"], notice)
