"""Events from the Copilot CLI's `--output-format json`, and its errors.

A line is `{"type", "data", …}`; the last one, `result`, has another shape and is the only one with the
session id. A `result` with exit code 0 also follows an interrupt, so what came before it counts: an abort, or
an error that no later message corrected. Tokens are not on stdout but in a file written at the end.

Its todo list is a table that it changes with SQL, and `session.todos_changed` has no details (1.0.102), so
its progress is unknown.
"""

from __future__ import annotations

import re

import msgspec

from holdfast import clock
from holdfast.agents.shared import json_lines, refusals, spans
from holdfast.model import events as ev

_TEXT_CHARS = 16_000
#: Bytes of JSON kept of one text's deltas: more than the text is cut to, however it is escaped.
_HELD_BYTES = 8 * _TEXT_CHARS
#: Size of a delta line besides its text.
_DELTA_BYTES = 260
_REASON_CHARS = 2000
_MESSAGE_CHARS = 4000

_DELTA = b"assistant.message_delta"
#: Types with a meaning, besides deltas. Most lines are of other types and are not decoded.
_TYPES = frozenset(
    {
        b"assistant.message_start",
        b"assistant.message",
        b"assistant.turn_retry",
        b"assistant.idle",
        b"tool.execution_start",
        b"tool.execution_complete",
        b"model.call_failure",
        b"session.error",
        b"agent.interrupted",
        b"abort",
        b"result",
    }
)


class _Error(msgspec.Struct):
    message: str | None = None
    code: str | int | None = None


class _Data(msgspec.Struct, rename="camel"):
    """The fields of all types; a type has few of them."""

    content: str | None = None
    delta_content: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw(b"")
    success: bool | None = None
    result: msgspec.Raw = msgspec.Raw(b"")
    error: _Error | str | None = None
    reason: str | None = None
    aborted: bool | None = None
    error_type: str | None = None
    message: str | None = None
    status_code: int | None = None


class _Line(msgspec.Struct, rename="camel"):
    type: str
    data: _Data | None = None
    timestamp: str | None = None
    session_id: str | None = None
    exit_code: int | None = None


_DECODER = msgspec.json.Decoder(_Line)
_RESET_DATE = re.compile(rb'"resetDate":"([^"]{10,40})"')


class CopilotReader:
    """Holds back text deltas until the message is complete, and remembers whether the run was aborted or
    failed."""

    timestamp = staticmethod(json_lines.timestamp)

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._is_new_text = True
        self._is_aborted = False
        #: The last error, until a message shows that the run continued.
        self._failure = ""
        #: The last model call was cut off by the connection, not answered with an error.
        self._lost_connection = False
        self._reset_date: str | None = None

    def read(self, line: bytes) -> list[ev.AgentEvent]:
        """The events of one line."""
        kind = json_lines.kind(line)
        if kind == _DELTA:
            return self._hold(line)
        if kind not in _TYPES:
            return []
        data = json_lines.decode(_DECODER, line)
        return [] if data is None else self._events(data, line)

    def finish(self) -> list[ev.AgentEvent]:
        """Text that was cut off."""
        return self._flush()

    def _hold(self, line: bytes) -> list[ev.AgentEvent]:
        if self._is_new_text:
            self._drop()
        if self._held_bytes < _HELD_BYTES:
            self._held.append(line)
            self._held_bytes += max(len(line) - _DELTA_BYTES, 1)
        return []

    def _drop(self) -> None:
        self._held.clear()
        self._held_bytes = 0
        self._is_new_text = False

    def _flush(self) -> list[ev.AgentEvent]:
        if not self._held:
            return []
        lines = [data for line in self._held if (data := json_lines.decode(_DECODER, line))]
        self._drop()
        text = "".join(data.data.delta_content or "" for data in lines if data.data)[:_TEXT_CHARS]
        return [ev.AgentText(text=text)] if text else []

    def _events(self, line: _Line, raw: bytes) -> list[ev.AgentEvent]:
        data = line.data or _Data()
        match line.type:
            case "assistant.message_delta":
                return self._hold(raw)
            case "assistant.message_start":
                # A retried message starts again; until it has text, the previous text is the last one.
                self._is_new_text = True
            case "assistant.message":
                self._drop()
                self._failure = ""
                return [ev.AgentText(text=data.content[:_TEXT_CHARS])] if data.content else []
            case "tool.execution_start" if data.tool_call_id:
                summary = json_lines.summary(data.arguments)
                return [
                    *self._flush(),
                    ev.AgentToolStarted(
                        tool_id=data.tool_call_id, name=data.tool_name or "", summary=summary
                    ),
                ]
            case "tool.execution_complete" if data.tool_call_id:
                return [_finished(data, data.tool_call_id)]
            case "assistant.turn_retry":
                reason = data.reason or ""
                return [ev.AgentRetry(reason=reason, is_limited=refusals.quotes_limit(reason))]
            case "model.call_failure":
                self._lost_connection = data.status_code is None
                self._note_reset_date(raw)
            case "session.error":
                self._note_reset_date(raw)
                return self._failed(data, line.timestamp or "")
            case "agent.interrupted" | "abort":
                return self._aborted(data.reason or "")
            case "assistant.idle" if data.aborted:
                return self._aborted("")
            case "result":
                return [*self._flush(), *self._result(line)]
            case _:
                pass
        return []

    def _note_reset_date(self, raw: bytes) -> None:
        match = _RESET_DATE.search(raw)
        if match:
            self._reset_date = match[1].decode("ascii", "replace")

    def _failed(self, data: _Data, timestamp: str) -> list[ev.AgentEvent]:
        if self._is_aborted:
            # Failures after an abort are caused by it.
            return self._flush()
        message = (data.message or "")[:_MESSAGE_CHARS]
        kind = _kind(data.error_type or "", data.status_code, message)
        if kind is None:
            kind = "network" if self._lost_connection else "crashed"
        self._failure = data.error_type or kind
        events: list[ev.AgentEvent] = [*self._flush(), ev.AgentError(kind=kind, message=message)]
        resets_at = _resets_at(message, timestamp, self._reset_date if kind == "quota" else None)
        if resets_at is not None:
            events.append(ev.AgentRateLimit(resets_at=resets_at, reason=message[:_REASON_CHARS]))
        return events

    def _aborted(self, reason: str) -> list[ev.AgentEvent]:
        if self._is_aborted:
            return []
        self._is_aborted = True
        return [*self._flush(), ev.AgentError(kind="interrupted", message=reason or "aborted")]

    def _result(self, line: _Line) -> list[ev.AgentEvent]:
        events: list[ev.AgentEvent] = []
        if line.session_id:
            events.append(ev.AgentSession(session_id=line.session_id))
        subtype = "aborted" if self._is_aborted else self._failure
        return [*events, ev.AgentResult(is_error=line.exit_code != 0 or bool(subtype), subtype=subtype)]


def _finished(data: _Data, tool_id: str) -> ev.AgentToolFinished:
    code = data.error.code if isinstance(data.error, _Error) else None
    # On a resume, `interrupted` closes a call of the earlier process. It is not a failure of this one.
    is_error = data.success is not True and code != "interrupted"
    error = data.error.message if isinstance(data.error, _Error) else None
    return ev.AgentToolFinished(
        tool_id=tool_id,
        is_error=is_error,
        denied=code == "denied",
        result=json_lines.result_text(data.result) or (error or "")[:_MESSAGE_CHARS],
    )


# ── usage file ──────────────────────────────────────────────────────────────


class _Tokens(msgspec.Struct, rename="camel"):
    input_tokens: int | None = None
    output_tokens: int | None = None


class _Metrics(msgspec.Struct):
    usage: _Tokens | None = None


class _Usage(msgspec.Struct, rename="camel"):
    model_metrics: dict[str, _Metrics] = {}


_USAGE_DECODER = msgspec.json.Decoder(_Usage)


def usage_of(data: bytes) -> list[ev.AgentEvent]:
    """The tokens in `--usage-output-file`.

    They continue over resumes; cost is in credits, so it is unknown.
    """
    usage = json_lines.decode(_USAGE_DECODER, data)
    tokens = [each.usage for each in usage.model_metrics.values() if each.usage] if usage is not None else []
    if not tokens:
        return []
    return [
        ev.AgentUsage(
            input_tokens=sum(each.input_tokens or 0 for each in tokens),
            output_tokens=sum(each.output_tokens or 0 for each in tokens),
            cumulative=True,
            of_session=True,
        )
    ]


# ── errors ──────────────────────────────────────────────────────────────────

_BY_TYPE = {
    "authentication": "auth",
    "authorization": "auth",
    "quota": "quota",
    "rate_limit": "rate_limit",
    "context_limit": "context_too_long",
}
_BY_STATUS = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "model_not_found",
    413: "context_too_long",
    429: "rate_limit",
    529: "overloaded",
}

#: Checked in this order, before type and status; the first match decides.
_TEXTS = [
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (
            r"prompt budget|context (length|window)|maximum context|prompt is too long|too many tokens",
            "context_too_long",
        ),
        (r"overloaded", "overloaded"),
        (r"No response was returned", "empty_reply"),
        (r"insufficient_quota|exceeded your \w+ quota|out of (premium requests|credits)", "quota"),
        (r"model .*(not found|does not exist)", "model_not_found"),
    )
]
_NETWORK = re.compile(
    r"ECONN|ENOTFOUND|EAI_AGAIN|EPIPE|socket|time(d)? ?out|network|connection|fetch failed|stream (closed"
    r"|ended)",
    re.IGNORECASE,
)
_DELAY = re.compile(
    r"(?:try again in|retry after|retry in|resets? in)\s+((?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*(?:and\s+)?)+)", re.I
)


def _resets_at(message: str, said_at: str, date: str | None) -> str | None:
    delay = _DELAY.search(message)
    try:
        if delay:
            delay_s = spans.seconds(delay[1]) or 0.0
            return None if delay_s > spans.LONGEST_S else clock.iso(clock.parse_iso(said_at) + delay_s)
        return clock.iso(clock.parse_iso(date)) if date else None
    except (ValueError, IndexError):
        return None


def _kind(type_: str, status: int | None, message: str) -> str | None:
    for pattern, kind in _TEXTS:
        if pattern.search(message):
            return kind
    if type_ in _BY_TYPE:
        return _BY_TYPE[type_]
    if status is not None:
        return _BY_STATUS.get(status, "server_error" if status >= 500 else "invalid_request")
    return "network" if _NETWORK.search(message) else None
