"""Which rules match an event, and the text of a notice. Pure."""

from __future__ import annotations

import os

from holdfast.model.status import DOWN_COMMAND, INTERRUPTED_BY, Cause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def matching(rules: Iterable[dict[str, Any]], event: str, *, project: str | None) -> list[dict[str, Any]]:
    """The rules that match an event of a task in `project` (None: of the home), in order."""
    return [
        rule
        for rule in rules
        if (event in rule["on"] or "all" in rule["on"]) and _is_of(project, rule.get("projects"))
    ]


def _is_of(project: str | None, folders: list[str] | None) -> bool:
    if not folders:
        return True
    if project is None:
        return False
    return any(project == folder or project.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)


def label(rule: dict[str, Any]) -> str:
    """A name for a rule: its name, or its notifier and target. Contains no secrets."""
    if rule.get("name"):
        return str(rule["name"])
    to = str(rule.get("to", "?"))
    if to == "command":
        argv: list[Any] = rule["argv"] if isinstance(rule.get("argv"), list) else []
        return f"command {os.path.basename(str(argv[0])) if argv else ''}"
    if to == "webhook":
        url = str(rule.get("url") or "")
        host = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
        return f"webhook {host or rule.get('url_env', '')}".rstrip()
    if to == "ntfy":
        # Not the topic: on a public server, it is a password.
        return f"ntfy {str(rule.get('server') or '').partition('://')[2]}".rstrip()
    return to


#: Event → text about the task.
_EVENT_TEXTS = {
    "interrupted": "needs a person",
    "failed": "failed",
    "completed": "is done",
    "abandoned": "was abandoned",
    "killed": "was stopped",
    "quality_gate": "did not pass a gate",
    "waiting": "waits for a limit",
}


def message(event: dict[str, Any]) -> str:
    """The text of a notice: which task, what happened, why."""
    why = f": {event['reason']}" if event.get("reason") else ""
    if event["event"] == "home_interrupt":
        return f"holdfast: the queue is stopped{why}"
    if event["event"] == "test":
        return f"holdfast: this is a test{why}"
    if event["event"] == "budget_spent":
        return f"holdfast: {event.get('reason') or 'the budget of the day is spent'}"
    if event["event"] == "queue_empty":
        return f"holdfast: the queue is empty{why}"
    if event["event"] == "interrupted" and event.get("cause") == Cause.DOWN:
        return f"holdfast: {event.get('task_id') or 'a task'} was interrupted by '{DOWN_COMMAND}'"
    if event["event"] == "interrupted" and str(event.get("reason") or "").startswith(INTERRUPTED_BY):
        return f"holdfast: {event.get('task_id') or 'a task'} was {event['reason']}"
    what = _EVENT_TEXTS.get(event["event"], str(event["event"]))
    if event["event"] == "interrupted" and event.get("asked_by") == "person":
        what = "was interrupted by a person"
    return f"holdfast: {event.get('task_id') or 'a task'} {what}{why}"
