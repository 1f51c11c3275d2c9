"""stream-json: the event format of Claude Code and of the scripted agent.

Top-level types are `system` (init, api_retry), `assistant`, `user`, `result`; tool calls are nested in
message.content[]; lines have no time. Other types are ignored.
"""

from __future__ import annotations

import json

from holdfast.agents import endings
from holdfast.agents.base import End
from holdfast.agents.shared import refusals, todo_list
from holdfast.model import events as ev
from holdfast.model.outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, cast

    from holdfast.model.attempt import Attempt
else:

    def cast(_, value):  # noqa: D103
        return value


#: Much longer than what the ingest cuts to after it has masked secrets.
_TEXT_LIMIT = 16_000


class StreamJson:
    """The reader."""

    def __init__(self) -> None:
        self._last_text = ""

    def read(self, line: bytes) -> list[ev.AgentEvent]:
        """The events of one line."""
        if not line.startswith(b"{"):
            return []
        try:
            return [self._marked(event) for event in _events(json.loads(line))]
        except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
            # Torn, hostile or of another version: it stays in the raw log and is no event.
            return []

    def finish(self) -> list[ev.AgentEvent]:
        """Nothing is held back."""
        return []

    def _marked(self, event: ev.AgentEvent) -> ev.AgentEvent:
        """The same event; a result says whether its text is new."""
        if isinstance(event, ev.AgentText):
            self._last_text = event.text
        elif isinstance(event, ev.AgentResult) and event.text.strip() not in ("", self._last_text.strip()):
            return event.evolve(is_new=True)
        return event


def _events(data: dict[str, Any]) -> list[ev.AgentEvent]:
    match data.get("type"):
        case "system" if data.get("subtype") == "init":
            return [ev.AgentSession(session_id=data["session_id"], model=data.get("model"))]
        case "system" if data.get("subtype") == "api_retry":
            delay_ms = data.get("retry_delay_ms")
            delay_s = delay_ms / 1000 if isinstance(delay_ms, (int, float)) else None
            reason = str(data.get("error", ""))
            return [ev.AgentRetry(delay_s=delay_s, reason=reason, is_limited=refusals.quotes_limit(reason))]
        case "assistant":
            return _assistant(data.get("message") or {})
        case "user":
            return _tool_results(data.get("message") or {})
        case "result":
            return _result(data)
        case _:
            return []


def _assistant(message: dict[str, Any]) -> list[ev.AgentEvent]:
    events: list[ev.AgentEvent] = []
    for block in message.get("content") or ():
        if block.get("type") == "text" and isinstance(block.get("text"), str) and block["text"]:
            events.append(ev.AgentText(text=block["text"][:_TEXT_LIMIT]))
        elif block.get("type") == "tool_use":
            summary = json.dumps(block.get("input", {}), ensure_ascii=False)[:_TEXT_LIMIT]
            events.append(ev.AgentToolStarted(tool_id=block["id"], name=block["name"], summary=summary))
            if block["name"] == "TodoWrite":
                events += todo_list.of_arguments(block.get("input"))
    return events


def _tool_results(message: dict[str, Any]) -> list[ev.AgentEvent]:
    content: Any = message.get("content")
    if not isinstance(content, list):
        return []
    events: list[ev.AgentEvent] = []
    for block in cast("list[dict[str, Any]]", content):
        if block.get("type") == "tool_result":
            is_error = bool(block.get("is_error"))
            content = block.get("content")
            result = content[:_TEXT_LIMIT] if isinstance(content, str) else ""
            events.append(
                ev.AgentToolFinished(
                    tool_id=block["tool_use_id"], is_error=is_error, denied=False, result=result
                )
            )
    return events


def _result(data: dict[str, Any]) -> list[ev.AgentEvent]:
    usage: dict[str, Any] = data.get("usage") or {}
    denials: list[dict[str, Any]] = data.get("permission_denials") or []
    names = ", ".join(dict.fromkeys(str(denial["tool_name"]) for denial in denials))
    errors: Any = data.get("errors") if isinstance(data.get("errors"), list) else []
    text = str(data.get("result") or "") or "; ".join(map(str, errors))
    denied = ev.AgentError(kind="permission_denied_but_finished", message=f"denied: {names}")
    return [
        *([denied] if names and not data.get("is_error") else ()),
        ev.AgentUsage(
            input_tokens=usage.get("input_tokens"),
            output_tokens=usage.get("output_tokens"),
            cost_usd=data.get("total_cost_usd"),
            cumulative=True,
        ),
        ev.AgentResult(
            is_error=bool(data.get("is_error")),
            subtype=str(data.get("subtype", "")),
            text=text[:_TEXT_LIMIT],
            turns=data.get("num_turns"),
        ),
    ]


def classify(end: End, attempt: Attempt) -> Outcome:
    """The outcome, from exit status and result together."""
    exit, stderr_tail = end.exit, end.stderr_tail
    if attempt.result is not None and not attempt.result.is_error:
        return endings.finished(attempt)
    if "No conversation found" in stderr_tail:
        return Outcome(kind="unknown_session", detail=stderr_tail.strip()[-200:])
    if exit.exit_signal is not None:
        return Outcome(kind="crashed", detail=f"killed by signal {exit.exit_signal}")
    if attempt.result is not None:
        return Outcome(kind="failed", detail=attempt.result.text[:200] or attempt.result.subtype)
    return Outcome(kind="crashed", detail=f"exit status {exit.exit_code} without a result")
