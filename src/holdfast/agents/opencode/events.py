"""Events from OpenCode: lines of `{type, timestamp, sessionID, part | error}`.

Types are step_start, text, tool_use, step_finish and error. A text and a tool call are printed when they are
complete, so each tool_use starts and ends a call. A step after the last `step_finish` means that the run
continued; so the result is known only when stdout ends.

The log on stderr (`timestamp=… level=… run=… message=…`) reports two things sooner: the created session, and
failed model requests. It then retries by itself, after the delay the server asks for, without another
message.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw, Struct

from holdfast import clock
from holdfast.agents.shared import api_errors, json_lines, refusals, todo_list
from holdfast.model import events as ev
from holdfast.model import outcome as oc

_TEXT_CHARS = 16_000
_REJECTED = ("rejected permission", "rule which prevents you")
_UNAVAILABLE = re.compile(r"unavailable tool '(bash|edit|write|patch|apply_patch|multiedit)'")
_TYPES = frozenset({b"step_start", b"text", b"tool_use", b"step_finish", b"error"})
#: Errors with a name.
_BY_NAME = {
    "ProviderAuthError": "no_auth",
    "ContextOverflowError": "context_too_long",
    "ContentFilterError": "invalid_request",
    "MessageOutputLengthError": "truncated",
    "MessageAbortedError": "interrupted",
    "ProviderModelNotFoundError": "model_not_found",
    "ProviderInitError": "usage_error",
}


_LOG = b"timestamp="
#: Values with spaces are quoted, so text of a model cannot look like the beginning of a line.
_CREATED = re.compile(
    rb"timestamp=\S+ level=INFO +run=\S+ message=created id=(ses_\w+) .*? parentID=undefined "
)
_STREAM_ERROR = re.compile(
    rb'timestamp=(\S+) level=ERROR +run=\S+ message="stream error"'
    rb' .*? small=false .*?error\.error="((?:[^"\\]|\\.)*)'
)
#: Errors that it does not retry.
_NOT_RETRIED = frozenset({"auth", "no_auth", "context_too_long", "invalid_request", "model_not_found"})
#: A wait that the process should sit out. A longer one is a limit, and the task waits without an agent.
_SHORT_WAIT_S = 120.0
_LOG_LINE_BYTES = 16_384


class _Tokens(Struct):
    input: int | None = None
    output: int | None = None


class _Times(Struct, frozen=True):
    """Milliseconds since 1970."""

    start: float | None = None


class _State(Struct):
    status: str = ""
    input: Raw = Raw(b"")
    output: Raw = Raw(b"")
    error: str = ""
    #: A call is printed when it has ended: when it really began.
    time: _Times = _Times()


class _Part(Struct):
    text: str = ""
    #: Written by the program in the user's name, for example after a compaction.
    synthetic: bool = False
    reason: str = ""
    tokens: _Tokens | None = None
    cost: float | None = None
    tool: str = ""
    call_id: str = msgspec.field(default="", name="callID")
    state: _State | None = None


class _Data(Struct, rename="camel"):
    message: str = ""
    status_code: int | None = None
    response_headers: dict[str, str] | None = None
    response_body: str | None = None


class _Error(Struct):
    name: str = ""
    data: _Data | None = None


class _Line(Struct):
    type: str = ""
    #: Milliseconds since 1970.
    timestamp: float = 0.0
    session_id: str = msgspec.field(default="", name="sessionID")
    part: _Part | None = None
    error: _Error | None = None


_DECODER = msgspec.json.Decoder(_Line)
_NOTHING = _Part()


class OpencodeLines:
    """The reader. It remembers the session and the result of the current or last step."""

    timestamp = staticmethod(json_lines.timestamp)

    def __init__(self) -> None:
        self._session_id = ""
        self._has_stepped = False
        self._begin_step()

    def _begin_step(self) -> None:
        #: Why the last step ended; empty while one is open.
        self._reason = ""
        self._text = ""
        self._was_rejected = False

    def read(self, line: bytes) -> list[ev.AgentEvent]:
        """The events of one line."""
        kind = json_lines.kind(line)
        if kind == b"step_start":
            self._has_stepped = True
            self._begin_step()
            if self._session_id:
                return []
        decoded = json_lines.decode(_DECODER, line) if kind in _TYPES else None
        if decoded is None:
            return []
        match decoded.type:
            case "text":
                events = self._said(decoded.part or _NOTHING)
            case "tool_use":
                events = self._called(decoded.part or _NOTHING)
            case "step_finish":
                events = self._finished_step(decoded.part or _NOTHING)
            case "error":
                events = self._failed(decoded)
            case _:
                events = []
        if decoded.session_id and decoded.session_id != self._session_id:
            self._session_id = decoded.session_id
            events.insert(0, ev.AgentSession(session_id=decoded.session_id))
        return events

    def read_stderr(self, line: bytes) -> list[ev.AgentEvent]:
        """The created session, and failed requests."""
        if not line.startswith(_LOG):
            return []
        line = line[:_LOG_LINE_BYTES]
        if match := _CREATED.match(line):
            if self._session_id:
                return []
            self._session_id = match[1].decode("ascii")
            return [ev.AgentSession(session_id=self._session_id)]
        match = _STREAM_ERROR.match(line)
        return _stream_error(match[2], match[1]) if match else []

    def hides_stderr(self, line: bytes) -> bool:
        """Whether the line is a log message that is not an error."""
        return line.startswith(_LOG) and b" level=ERROR " not in line[:80]

    def finish(self) -> list[ev.AgentEvent]:
        """The result of the run, from its last step."""
        match self._reason:
            case "stop" if self._text:
                return [ev.AgentResult(is_error=False, subtype="stop", text=self._text)]
            case "tool-calls" if self._was_rejected:
                # A rejected permission ends the run without a message and with exit status 0.
                return [ev.AgentResult(is_error=False, subtype="rejected")]
            case "stop":
                return _bad_end("empty_reply", "the model's last reply has no text")
            case "length":
                return _bad_end("truncated", "the model's last reply was cut off at its output limit")
            case "content-filter":
                return _bad_end("invalid_request", "the model's last reply was stopped by a content filter")
            case _:
                return []

    def _said(self, part: _Part) -> list[ev.AgentEvent]:
        if part.synthetic:
            # The previous step was a summary of the session, which ends like an answer, but the run
            # continues.
            self._begin_step()
            return []
        if not part.text:
            return []
        self._text = part.text[:_TEXT_CHARS]
        return [ev.AgentText(text=self._text)]

    def _called(self, part: _Part) -> list[ev.AgentEvent]:
        state = part.state or _State()
        is_error = state.status == "error"
        denied = is_error and any(words in state.error for words in _REJECTED)
        self._was_rejected = self._was_rejected or denied
        summary, name = json_lines.summary(state.input), part.tool
        if name == "invalid" and (taken_away := _UNAVAILABLE.search(summary)):
            # The model called a tool that the permissions take away. The program reports success.
            name, is_error, denied = taken_away.group(1), True, True
        return [
            ev.AgentToolStarted(
                tool_id=part.call_id, name=name, summary=summary, said_at=json_lines.iso(state.time.start)
            ),
            ev.AgentToolFinished(
                tool_id=part.call_id,
                is_error=is_error,
                denied=denied,
                result=json_lines.result_text(state.output) or state.error[:_TEXT_CHARS],
            ),
            # The tool gets the whole list each time.
            *(todo_list.of_call(bytes(state.input)) if part.tool == "todowrite" and not is_error else ()),
        ]

    def _finished_step(self, part: _Part) -> list[ev.AgentEvent]:
        self._reason = part.reason
        tokens = part.tokens or _Tokens()
        return [
            ev.AgentUsage(input_tokens=tokens.input, output_tokens=tokens.output, cost_usd=part.cost),
        ]

    def _failed(self, line: _Line) -> list[ev.AgentEvent]:
        error = line.error or _Error()
        data = error.data or _Data()
        text = f"{data.message} {data.response_body or ''}"
        kind = _BY_NAME.get(error.name) or api_errors.kind(data.status_code, text)
        if error.name == "UnknownError" and not self._has_stepped:
            # Its only message about an unknown model, or a provider that is not configured.
            kind = kind or "usage_error"
        kind = kind or "crashed"
        events: list[ev.AgentEvent] = [ev.AgentError(kind=kind, message=data.message or error.name)]
        if kind in oc.MUST_WAIT:
            at = api_errors.resets_at(text, line.timestamp / 1000, data.response_headers)
            events.insert(0, ev.AgentRateLimit(resets_at=at, reason=data.message))
        return events


def _stream_error(quoted: bytes, said_at: bytes) -> list[ev.AgentEvent]:
    text = quoted.decode("utf-8", "replace").replace('\\"', '"')
    kind = api_errors.kind(None, text)
    if kind in _NOT_RETRIED:
        return []
    try:
        at = clock.parse_iso(said_at.decode("ascii", "replace"))
    except (ValueError, IndexError):
        at = clock.now()
    lifted_at = api_errors.resets_at(text, at)
    delay_s = None if lifted_at is None else clock.parse_iso(lifted_at) - at
    events: list[ev.AgentEvent] = []
    if kind in oc.MUST_WAIT:
        events.append(ev.AgentRateLimit(resets_at=lifted_at, reason=text[:_TEXT_CHARS]))
    if delay_s is None or delay_s <= _SHORT_WAIT_S:
        reason = text[:_TEXT_CHARS]
        events.append(ev.AgentRetry(delay_s=delay_s, reason=reason, is_limited=refusals.quotes_limit(reason)))
    return events


def without_logs(stderr: str) -> str:
    """The readable part of stderr."""
    return "".join(line for line in stderr.splitlines(keepends=True) if not line.startswith("timestamp="))


def _bad_end(kind: str, message: str) -> list[ev.AgentEvent]:
    return [ev.AgentError(kind=kind, message=message), ev.AgentResult(is_error=True, subtype=kind)]
