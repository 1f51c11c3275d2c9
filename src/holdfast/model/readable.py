"""The text in output.log: readable lines for events, separators between attempts, no control characters."""

from __future__ import annotations

import re

from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.execution import Execution
from holdfast.model.outcome import DENIED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: CSI, terminated strings (OSC, DCS, …), other escapes; then every control character except the tab, and
#: those that change the order in which a line is shown.
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]"
    r"|[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)

#: How many reasons of a gate a separator shows.
_REASONS = 3


def plain(line: str) -> str:
    """A line without control characters except tabs. The raw logs keep them."""
    return line if line.isprintable() else _CONTROL.sub("", line)


def relative(text: str, folder: str) -> str:
    """A text in which paths below the folder are relative to it, and the folder itself is a dot."""
    pattern = rf"(?<![\w./~-]){re.escape(folder)}(?:(/)(?=[^\s/'\"])|/?(?![\w./-]))"
    return re.sub(pattern, lambda match: "" if match[1] else ".", text)


def separators(execution: Execution, *, has_stages: bool) -> list[str]:
    """The separator lines before the output of an attempt or chore: how the attempt before it failed, why
    its work was refused, what people were asked and answered since, whether they retried it, what it is."""
    if not isinstance(execution, Attempt):
        return [f"--- holdfast step ({execution.stage}, {execution.kind}) ---"]
    stage = f"{execution.stage}, " if has_stages else ""
    lines: list[str] = []
    repair = execution.repair
    # If a person sent it back, the question says why.
    if repair is not None and (repair.number or not execution.answered):
        lines.append(_refusal(repair, has_stages=has_stages))
    for each in execution.answered:
        answer = f": {_one_line(each.answer)}" if each.answer else ", no message"
        lines += [f"--- interrupted: {_one_line(each.question)} ---", f"--- {each.how}{answer} ---"]
    if execution.failed_before is not None and not lines:
        number, ended = execution.failed_before
        why = _one_line(f"{ended.outcome.replace('_', ' ')}: {ended.detail}").rstrip(": ")
        lines.append(f"--- attempt {number} ended: {why} ---")
    if execution.retried is not None:
        lines.append(
            f"--- retry: {_one_line(execution.retried)} ---" if execution.retried else "--- retry ---"
        )
    return [*lines, f"--- attempt {execution.ordinal} ({stage}{execution.mode}) ---"]


def _refusal(repair: ev.RepairPlanned, *, has_stages: bool) -> str:
    gate = f"the gate of {repair.failed_stage}" if has_stages else "the gate"
    count = f" (repair {repair.number})" if repair.number else ""
    return f"--- {gate} refused the work{count}: {_one_line('; '.join(repair.reasons[:_REASONS]))} ---"


def _one_line(text: str) -> str:
    return " ".join(plain(text.replace("\n", " ")).split())


def lines(event: ev.AgentEvent) -> list[str]:
    """The readable lines of an agent event; often none."""
    formatter = _FORMATTERS.get(type(event))
    return formatter(event) if formatter is not None else []


def _session(event: ev.AgentSession) -> list[str]:
    return [f"[session {event.session_id}]"]


def _text(event: ev.AgentText) -> list[str]:
    return event.text.splitlines()


def _tool_started(event: ev.AgentToolStarted) -> list[str]:
    return [f"[tool] {event.name} {event.summary}".rstrip()]


def _tool_finished(event: ev.AgentToolFinished) -> list[str]:
    if event.denied:
        return ["[tool denied]"]
    return ["[tool failed]"] if event.is_error else []


def _retry(event: ev.AgentRetry) -> list[str]:
    return [f"[retry in {event.delay_s:.1f}s] {event.reason}" if event.delay_s else f"[retry] {event.reason}"]


def _rate_limit(event: ev.AgentRateLimit) -> list[str]:
    return [f"[rate limit] {event.reason}" + (f", resets at {event.resets_at}" if event.resets_at else "")]


def _progress(event: ev.AgentProgress) -> list[str]:
    text = f"{event.steps_completed}/{event.steps_total} {event.current_step or ''}"
    return [f"[{' '.join(text.split())}]"]


def _error(event: ev.AgentError) -> list[str]:
    if event.kind == DENIED:
        return [f"[tools denied] {event.message.removeprefix('denied: ')}"]
    return [f"[error: {event.kind}] {event.message}"]


def _result(event: ev.AgentResult) -> list[str]:
    # Some programs call the result of a failed call `success`, and its text says what failed.
    if event.is_error and event.subtype in ("", "success"):
        return [f"[result: error]{' ' + event.text if event.text else ''}"]
    line = f"[result: {'error' if event.is_error else 'ok'}{' ' + event.subtype if event.subtype else ''}]"
    if not event.is_new:
        return [line]
    # An error is one line, because the last line of a log explains a failure.
    return [f"{line} {event.text}"] if event.is_error else [*event.text.splitlines(), line]


_FORMATTERS: dict[type[ev.AgentEvent], Any] = {
    ev.AgentSession: _session,
    ev.AgentText: _text,
    ev.AgentToolStarted: _tool_started,
    ev.AgentToolFinished: _tool_finished,
    ev.AgentRetry: _retry,
    ev.AgentRateLimit: _rate_limit,
    ev.AgentProgress: _progress,
    ev.AgentError: _error,
    ev.AgentResult: _result,
}
