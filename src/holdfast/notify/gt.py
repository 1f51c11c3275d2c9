"""`gt`: a Gas Town mail to the overseer."""

from __future__ import annotations

from holdfast.notify.command import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Subjects that its readers know.
_SUBJECTS = {"interrupted": "HARNESS INTERRUPT", "home_interrupt": "HARNESS INTERRUPT"}


def notify(notice: dict[str, Any], rule: dict[str, Any]) -> None:
    """Run `gt mail send overseer -s SUBJECT -m MESSAGE`."""
    event = str(notice.get("event"))
    subject = _SUBJECTS.get(event, f"HARNESS {event.upper().replace('_', ' ')}")
    why = f"\nReason: {notice['reason']}" if notice.get("reason") else ""
    recipient = rule.get("recipient", "overseer")
    run(
        [rule.get("program", "gt"), "mail", "send", recipient, "-s", subject, "-m", notice["text"] + why],
        notice,
    )
