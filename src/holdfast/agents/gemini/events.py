"""Events from the Gemini CLI's `-o stream-json`, and its errors.

Assistant text comes only in deltas; a text ends where something else begins. Retries are reported only on
stderr.
"""

from __future__ import annotations

import re

import msgspec

from holdfast import clock
from holdfast.agents.shared import json_lines, refusals, spans, todo_list
from holdfast.model import events as ev

_TEXT_CHARS = 16_000
#: Bytes of JSON kept of one text's deltas: more than the text is cut to, however it is escaped.
_HELD_BYTES = 8 * _TEXT_CHARS
_REASON_CHARS = 2000
_MESSAGE_CHARS = 4000

_MESSAGE = b'{"type":"message",'
_ASSISTANT = b'"role":"assistant"'
_USER = b'"role":"user"'
#: The role comes before the content, which may be megabytes.
_HEAD_BYTES = 120

#: Built-in tools that are removed without a person to approve them; the model calls them anyway.
_GUARDED = frozenset({"run_shell_command", "write_file", "replace"})


class _Error(msgspec.Struct):
    type: str | None = None
    message: str | None = None


class _Stats(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None


class _Line(msgspec.Struct):
    """The fields of all lines; a line has few of them."""

    type: str
    timestamp: str | None = None
    session_id: str | None = None
    model: str | None = None
    role: str | None = None
    content: str | None = None
    tool_id: str | None = None
    tool_name: str | None = None
    parameters: msgspec.Raw = msgspec.Raw(b"")
    output: msgspec.Raw = msgspec.Raw(b"")
    status: str | None = None
    severity: str | None = None
    message: str | None = None
    error: _Error | str | None = None
    stats: _Stats | None = None


_DECODER = msgspec.json.Decoder(_Line)


class GeminiReader:
    """Holds back text deltas until their text is complete, and remembers the tool of each id."""

    timestamp = staticmethod(json_lines.timestamp)

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._guarded: set[str] = set()
        #: Unanswered calls of `write_todos`; their parameters have the whole list.
        self._todos: dict[str, bytes] = {}

    def read(self, line: bytes) -> list[ev.AgentEvent]:
        """The events of one line of stdout."""
        if line.startswith(_MESSAGE):
            if line.find(_ASSISTANT, 0, _HEAD_BYTES) > 0:
                return self._hold(line)
            if line.find(_USER, 0, _HEAD_BYTES) > 0:
                return self._flush()
        elif not line.startswith(b"{"):
            return []
        data = json_lines.decode(_DECODER, line)
        return [] if data is None else self._events(data, line)

    def read_stderr(self, line: bytes) -> list[ev.AgentEvent]:
        """Retries: stdout does not mention them."""
        if b"Retrying" not in line:
            return []
        text = line[:_MESSAGE_CHARS].decode("utf-8", "replace")
        delay = re.search(r"Retrying after (\d+)ms", text)
        delay_s, reason = int(delay[1]) / 1000 if delay else None, text[:_REASON_CHARS]
        return [ev.AgentRetry(delay_s=delay_s, reason=reason, is_limited=refusals.quotes_limit(reason))]

    def finish(self) -> list[ev.AgentEvent]:
        """Text that was cut off."""
        return self._flush()

    def _hold(self, line: bytes) -> list[ev.AgentEvent]:
        if self._held_bytes < _HELD_BYTES:
            self._held.append(line)
            self._held_bytes += max(len(line) - _HEAD_BYTES, 1)
        return []

    def _flush(self) -> list[ev.AgentEvent]:
        if not self._held:
            return []
        parts = [data.content or "" for line in self._held if (data := json_lines.decode(_DECODER, line))]
        self._held.clear()
        self._held_bytes = 0
        text = "".join(parts)[:_TEXT_CHARS]
        return [ev.AgentText(text=text)] if text else []

    def _events(self, data: _Line, line: bytes) -> list[ev.AgentEvent]:
        match data.type:
            case "message":
                return self._hold(line) if data.role == "assistant" else self._flush()
            case "init" if data.session_id:
                return [ev.AgentSession(session_id=data.session_id, model=data.model)]
            case "tool_use" if data.tool_id:
                if data.tool_name in _GUARDED:
                    self._guarded.add(data.tool_id)
                elif data.tool_name == "write_todos":
                    self._todos[data.tool_id] = bytes(data.parameters)
                started = ev.AgentToolStarted(
                    tool_id=data.tool_id,
                    name=data.tool_name or "",
                    summary=json_lines.summary(data.parameters),
                )
                return [*self._flush(), started]
            case "tool_result" if data.tool_id:
                finished = self._finished(data, data.tool_id)
                todos = self._todos.pop(data.tool_id, b"")
                progress = todo_list.of_call(todos) if todos and not finished.is_error else []
                return [*self._flush(), finished, *progress]
            case "error" if data.severity == "error":
                message = (data.message or "")[:_MESSAGE_CHARS]
                return [ev.AgentError(kind=error_kind(message, "", None) or "crashed", message=message)]
            case "result":
                return [*self._flush(), *_result(data)]
            case _:
                return []

    def _finished(self, data: _Line, tool_id: str) -> ev.AgentToolFinished:
        error = data.error.type if isinstance(data.error, _Error) else None
        is_guarded = tool_id in self._guarded
        self._guarded.discard(tool_id)
        message = data.error.message if isinstance(data.error, _Error) else None
        denied = (
            error == "policy_violation"
            or (error == "tool_not_registered" and is_guarded)
            or (message or "").startswith("Path not in workspace")
        )
        return ev.AgentToolFinished(
            tool_id=tool_id,
            is_error=data.status != "success",
            denied=denied,
            result=json_lines.result_text(data.output) or (message or "")[:_MESSAGE_CHARS],
        )


def _result(data: _Line) -> list[ev.AgentEvent]:
    events: list[ev.AgentEvent] = []
    if data.stats is not None:
        events.append(
            ev.AgentUsage(
                input_tokens=data.stats.input_tokens,
                output_tokens=data.stats.output_tokens,
                cumulative=True,
            )
        )
    if data.status == "success":
        return [*events, ev.AgentResult(is_error=False, subtype="success")]
    error = data.error if isinstance(data.error, _Error) else _Error(message=data.error)
    message, type_ = (error.message or "")[:_MESSAGE_CHARS], error.type or ""
    events.append(ev.AgentError(kind=error_kind(message, type_, None) or "crashed", message=message))
    resets_at = _resets_at(message, data.timestamp or "")
    if resets_at is not None:
        events.append(ev.AgentRateLimit(resets_at=resets_at, reason=message[:_REASON_CHARS]))
    return [*events, ev.AgentResult(is_error=True, subtype=type_)]


# ── errors ──────────────────────────────────────────────────────────────────

#: Checked in this order; the first match decides.
_TEXTS = [
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), kind)
    for pattern, kind in (
        (r"max(imum)? session turns", "max_turns"),
        (r"token count.*exceeds|maximum number of tokens|context window", "context_too_long"),
        (r"api key (not valid|expired)|API_KEY_INVALID", "auth"),
        (r"overloaded", "overloaded"),
        (r"daily quota|PerDay", "quota"),
        (r"empty response|NO_RESPONSE_TEXT|without a finish reason", "empty_reply"),
        (
            r"is not found for API version|entity was not found|model not found|ModelNotFound",
            "model_not_found",
        ),
    )
]
_NETWORK = re.compile(
    r"terminated|fetch failed|socket|ECONN|ENOTFOUND|EAI_AGAIN|EPIPE|time(d)? ?out|network|other side closed"
    r"|premature",
    re.IGNORECASE,
)
#: Used for the limit of a day and of a minute; the wait tells them apart.
_ALLOWANCE = re.compile(
    r"exceeded your current quota|exhausted your capacity|quota will reset|QUOTA_EXHAUSTED", re.IGNORECASE
)
_LONG_WAIT_S = 600.0
#: `reset after 1h49m8s`, `retry in 34.07s`
_DELAY = re.compile(
    r"(?:reset after|retry in|retry after)\s*((?:\d+(?:\.\d+)?(?:ms|[dhms]))+)", re.IGNORECASE
)
_CODE = re.compile(r'"code":\s*(\d{3})\b')


def error_kind(message: str, type_: str, status: int | None) -> str | None:
    """The outcome of an error, from its text and the HTTP status, if known; None if neither is known."""
    if type_ == "FatalTurnLimitedError":
        return "max_turns"
    if type_ == "FatalCancellationError":
        return "interrupted"
    for pattern, kind in _TEXTS:
        if pattern.search(message):
            return kind
    if status is None and (code := _CODE.search(message)):
        status = int(code[1])
    if status in (None, 429) and _ALLOWANCE.search(message):
        delay_s = _delay_s(message)
        return "quota" if delay_s is None or delay_s >= _LONG_WAIT_S else "rate_limit"
    if status is not None:
        return status_kind(status)
    if _NETWORK.search(message):
        return "network"
    return "no_auth" if type_ == "FatalAuthenticationError" else None


def status_kind(status: int) -> str:
    """The outcome of an HTTP status alone."""
    match status:
        case 401 | 403:
            return "auth"
        case 404:
            return "model_not_found"
        case 429:
            return "rate_limit"
        case 529:
            return "overloaded"
        case _:
            return "server_error" if status >= 500 else "invalid_request"


def _delay_s(message: str) -> float | None:
    delay = _DELAY.search(message)
    return spans.seconds(delay[1]) if delay is not None else None


def _resets_at(message: str, said_at: str) -> str | None:
    delay_s = _delay_s(message)
    if delay_s is None or delay_s > spans.LONGEST_S:
        return None
    try:
        return clock.iso(clock.parse_iso(said_at) + delay_s)
    except (ValueError, IndexError):
        return None
