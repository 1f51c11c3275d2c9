"""What output.log says: events as lines for people, a line between two attempts, and nothing that moves a cursor."""

from __future__ import annotations

import re

from holdfast.model import events as ev
from holdfast.model.attempt import Attempt

#: CSI, strings with an end (OSC, DCS, …), other escapes; then every control character but the tab.
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]|[\x00-\x08\x0a-\x1f\x7f-\x9f]"
)


def plain(line: str) -> str:
    """A line as a file for people has it: text, and tabs. What is raw is kept elsewhere."""
    return line if line.isprintable() else _CONTROL.sub("", line)


def mark(attempt: Attempt, *, has_stages: bool) -> str:
    """The line between the output of the last attempt and of this one."""
    stage = f"{attempt.stage}, " if has_stages or attempt.kind != "agent" else ""
    return f"--- attempt {attempt.number} ({stage}{attempt.mode if attempt.kind == 'agent' else attempt.kind}) ---"


def lines(event: ev.AgentEvent) -> list[str]:
    """The readable lines of an agent's event; often none."""
    match event:
        case ev.AgentSession():
            return [f"[session {event.session_id}]"]
        case ev.AgentText():
            return event.text.splitlines()
        case ev.AgentToolStarted():
            return [f"[tool] {event.name} {event.summary}".rstrip()]
        case ev.AgentToolFinished() if event.denied:
            return ["[tool denied]"]
        case ev.AgentToolFinished() if event.is_error:
            return ["[tool failed]"]
        case ev.AgentRetry():
            return [
                f"[retry in {event.delay_s:.1f}s] {event.reason}"
                if event.delay_s
                else f"[retry] {event.reason}"
            ]
        case ev.AgentRateLimit():
            return [
                f"[rate limit] {event.reason}" + (f", resets at {event.resets_at}" if event.resets_at else "")
            ]
        case ev.AgentProgress():
            words = f"{event.steps_completed}/{event.steps_total} {event.current_step or ''}"
            return [f"[{' '.join(words.split())}]"]
        case ev.AgentError():
            return [f"[error: {event.kind}] {event.message}"]
        case ev.AgentResult():
            return [
                f"[result: {'error' if event.is_error else 'ok'}{' ' + event.subtype if event.subtype else ''}]"
            ]
        case _:
            return []
