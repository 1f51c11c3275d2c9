"""Events from Claude Code's `--output-format stream-json --verbose --include-partial-messages`.

One JSON object per line; `assistant` has one block of a message, `user` the results of tools, `result` the
end, which is not always the last line. API failures come as `subtype: success` with `is_error: true`.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from holdfast import clock
from holdfast.agents.claude import errors
from holdfast.agents.claude.todos import TOOLS, Todos
from holdfast.agents.shared import json_lines, refusals, reset_times
from holdfast.model import events as ev
from holdfast.model.outcome import HAS_RESET_TIME

TYPE_CHECKING = False
_TEXT_LIMIT = 16_000
_SUMMARY_LIMIT = 4000
#: How far into a line the type of a delta is searched.
_HEAD = 200


class _Block(Struct):
    type: str = ""
    text: str = ""
    id: str = ""
    name: str = ""
    input: Raw = Raw(b"")
    tool_use_id: str = ""
    is_error: bool | None = None
    content: Raw = Raw(b"")


class _Message(Struct):
    content: list[_Block] | str | None = None


class _Input(Struct):
    """The most informative argument of a call."""

    command: str = ""
    file_path: str = ""


class _Assistant(Struct):
    message: _Message
    error: str | None = None
    #: The tool call of the sub-agent that said it; null for the agent itself.
    parent_tool_use_id: str | None = None


class _User(Struct):
    message: _Message
    #: The answer of the single tool in it, as data.
    tool_use_result: Raw = Raw(b"")


class _System(Struct):
    subtype: str = ""
    session_id: str = ""
    model: str | None = None
    retry_delay_ms: float | None = None
    error_status: int | None = None
    error: str | None = None


class _TextDelta(Struct):
    text: str = ""


class _DeltaEvent(Struct):
    delta: _TextDelta


class _Stream(Struct):
    event: _DeltaEvent


class _Tokens(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None


class _CallMessage(Struct):
    usage: _Tokens | None = None


class _CallEvent(Struct):
    type: str = ""
    #: In `message_start`: the tokens of the prompt.
    message: _CallMessage | None = None
    #: In `message_delta`: the tokens of the answer so far.
    usage: _Tokens | None = None


class _Call(Struct):
    """A step of one call of the model."""

    event: _CallEvent
    parent_tool_use_id: str | None = None


class _LimitInfo(Struct):
    status: str = ""
    resetsAt: float | None = None  # noqa: N815
    rateLimitType: str | None = None  # noqa: N815


class _Limit(Struct):
    rate_limit_info: _LimitInfo


class _ModelTokens(Struct):
    inputTokens: int = 0  # noqa: N815
    outputTokens: int = 0  # noqa: N815


class _Denial(Struct):
    tool_name: str = ""


class _Result(Struct):
    #: Required: a line without it is damaged, and not a success.
    is_error: bool
    subtype: str = ""
    result: str | None = None
    session_id: str = ""
    api_error_status: int | None = None
    terminal_reason: str | None = None
    num_turns: int | None = None
    total_cost_usd: float | None = None
    usage: _Tokens | None = None
    modelUsage: dict[str, _ModelTokens] | None = None  # noqa: N815
    permission_denials: list[_Denial] | None = None
    errors: list[str] | None = None


_INPUT = msgspec.json.Decoder(_Input)
_DELTA = msgspec.json.Decoder(_Stream)
_CALL = msgspec.json.Decoder(_Call)


class Lines(json_lines.ByType):
    """The reader of one attempt."""

    timestamp = staticmethod(json_lines.timestamp)

    def __init__(self) -> None:
        super().__init__(
            {
                b"assistant": (_Assistant, self._assistant),
                b"user": (_User, self._user),
                b"system": (_System, self._system),
                b"result": (_Result, self._result),
                b"rate_limit_event": (_Limit, self._limited),
            }
        )
        self._session = ""
        #: Text of an incomplete block.
        self._partial: list[str] = []
        #: Tokens of the unfinished calls of the model, by the sub-agent's tool call; None: the agent's own.
        self._calls: dict[str | None, _Tokens] = {}
        #: An API error reported before the result line.
        self._said: ev.AgentError | None = None
        #: The last refused limit: reset time and name.
        self._limit: _LimitInfo | None = None
        self._todos = Todos()
        self._last_text = ""

    def read(self, line: bytes) -> list[ev.AgentEvent]:
        """The events of one line."""
        if line.startswith(b'{"type":"stream_event"'):
            return self._stream(line)
        return super().read(line)

    def finish(self) -> list[ev.AgentEvent]:
        """Text and calls that were cut off, and an error that no result line repeated."""
        events: list[ev.AgentEvent] = [used for call in list(self._calls) for used in self._called(call)]
        if text := "".join(self._partial):
            events.append(ev.AgentText(text=text[:_TEXT_LIMIT]))
        if self._said is not None:
            events.append(self._said)
        self._partial, self._said = [], None
        return events

    def _stream(self, line: bytes) -> list[ev.AgentEvent]:
        if line.find(b'"text_delta"', 0, _HEAD) >= 0:
            try:
                self._partial.append(_DELTA.decode(line).event.delta.text)
            except ValueError:
                pass
        elif line.find(b'{"type":"message_', 0, _HEAD) >= 0:
            return self._call(json_lines.decode(_CALL, line))
        elif self._partial and line.find(b'"content_block_start"', 0, _HEAD) >= 0:
            self._partial = []
        return []

    def _call(self, line: _Call | None) -> list[ev.AgentEvent]:
        """Count the tokens of a call: the figures in `assistant` lines are those of its beginning."""
        if line is None:
            return []
        caller, event = line.parent_tool_use_id, line.event
        if event.type == "message_delta":
            if event.usage is not None and caller in self._calls:
                self._calls[caller].output_tokens = event.usage.output_tokens
            return []
        used = self._called(caller)
        if event.type == "message_start" and event.message is not None and event.message.usage is not None:
            self._calls[caller] = event.message.usage
        return used

    def _called(self, caller: str | None) -> list[ev.AgentEvent]:
        tokens = self._calls.pop(caller, None)
        if tokens is None:
            return []
        return [ev.AgentUsage(input_tokens=tokens.input_tokens, output_tokens=tokens.output_tokens)]

    def _assistant(self, line: _Assistant) -> list[ev.AgentEvent]:
        events: list[ev.AgentEvent] = []
        for block in _blocks(line.message):
            if block.type == "text" and block.text:
                self._partial = []
                events.append(ev.AgentText(text=block.text[:_TEXT_LIMIT]))
                self._last_text = block.text
                if line.error:
                    kind = errors.of_call(line.error, None, block.text, is_refused=self._limit is not None)
                    self._said = ev.AgentError(kind=kind, message=block.text[:_TEXT_LIMIT])
            elif block.type == "tool_use":
                # A sub-agent has its own TodoWrite list, which says nothing about the task; the other tools
                # share one list.
                if block.name in TOOLS and not (block.name == "TodoWrite" and line.parent_tool_use_id):
                    self._todos.called(block.id, block.name, bytes(block.input))
                events.append(
                    ev.AgentToolStarted(tool_id=block.id, name=block.name, summary=_summary(block.input))
                )
        return events

    def _user(self, line: _User) -> list[ev.AgentEvent]:
        events: list[ev.AgentEvent] = []
        for block in _blocks(line.message):
            if block.type != "tool_result":
                continue
            is_error = bool(block.is_error)
            events.append(
                ev.AgentToolFinished(
                    tool_id=block.tool_use_id,
                    is_error=is_error,
                    denied=is_error and _is_denial(block.content),
                    result=json_lines.result_text(block.content),
                )
            )
            if self._todos.awaits(block.tool_use_id):
                events += self._todos.answered(
                    block.tool_use_id, bytes(line.tool_use_result), is_error=is_error
                )
        return events

    def _system(self, line: _System) -> list[ev.AgentEvent]:
        if line.subtype == "init":
            return self._named(line.session_id, line.model)
        if line.subtype == "api_retry":
            delay_s = line.retry_delay_ms / 1000 if line.retry_delay_ms is not None else None
            status = f" ({line.error_status})" if line.error_status else ""
            return [
                ev.AgentRetry(
                    delay_s=delay_s,
                    reason=f"{line.error or 'no answer'}{status}",
                    is_limited=line.error_status == refusals.LIMITED,
                )
            ]
        return []

    def _named(self, session_id: str, model: str | None) -> list[ev.AgentEvent]:
        if not session_id or session_id == self._session:
            return []
        self._session = session_id
        return [ev.AgentSession(session_id=session_id, model=model)]

    def _limited(self, line: _Limit) -> list[ev.AgentEvent]:
        info = line.rate_limit_info
        self._limit = info if info.status in ("rejected", "denied") else None
        if self._limit is None:
            return []
        at = clock.iso(info.resetsAt) if info.resetsAt and 0 < info.resetsAt < 1e11 else None
        return [ev.AgentRateLimit(resets_at=at, reason=info.rateLimitType or "")]

    def _result(self, line: _Result) -> list[ev.AgentEvent]:
        text = line.result or "; ".join(line.errors or ())
        events = [*self._named(line.session_id, None), _usage(line)]
        is_error = line.is_error or line.subtype.startswith("error")
        if is_error:
            kind = self._failure(line, text)
            if kind in HAS_RESET_TIME and (at := reset_times.find(text, clock.now())):
                events.append(ev.AgentRateLimit(resets_at=at, reason=text[:_SUMMARY_LIMIT]))
            events.append(ev.AgentError(kind=kind, message=text[:_TEXT_LIMIT]))
        elif line.permission_denials:
            names = ", ".join(dict.fromkeys(denial.tool_name for denial in line.permission_denials))
            events.append(ev.AgentError(kind="permission_denied_but_finished", message=f"denied: {names}"))
        # The figures of the result include those of the calls.
        self._said, self._partial, self._calls = None, [], {}
        return [
            *events,
            ev.AgentResult(
                is_error=is_error,
                subtype=line.subtype,
                text=text[:_TEXT_LIMIT],
                turns=line.num_turns,
                is_new=not is_error and bool(text.strip()) and text.strip() != self._last_text.strip(),
            ),
        ]

    def _failure(self, line: _Result, text: str) -> str:
        kind = errors.of_result(line.subtype, line.terminal_reason or "", text)
        if kind is None and self._said is not None and line.api_error_status is None:
            kind = self._said.kind
        status, is_refused = line.api_error_status, self._limit is not None
        return kind or errors.of_call("", status, text, is_refused=is_refused)


def _blocks(message: _Message) -> list[_Block]:
    return message.content if isinstance(message.content, list) else []


def _summary(arguments: Raw) -> str:
    known = json_lines.decode(_INPUT, bytes(arguments))
    text = (known.command or known.file_path) if known is not None else ""
    return text[:_SUMMARY_LIMIT] if text else _head(arguments, _SUMMARY_LIMIT)


def _head(raw: Raw, limit: int) -> str:
    return bytes(memoryview(raw)[:limit]).decode("utf-8", "ignore")


#: How a refused tool call is answered. A tool that the profile takes away exists, but not here.
_DENIALS = (
    "requested permissions",
    "haven't granted",
    "Permission to use",
    *(f"No such tool available: {name}" for name in ("Edit", "Write", "NotebookEdit", "Bash")),
)


def _is_denial(content: Raw) -> bool:
    beginning = _head(content, 400)
    return any(words in beginning for words in _DENIALS)


def _usage(line: _Result) -> ev.AgentUsage:
    """Usage of the whole run: `modelUsage` includes sub-agents and retried calls; `usage` does not."""
    cost = round(line.total_cost_usd, 9) if line.total_cost_usd is not None else None
    if line.modelUsage:
        models = line.modelUsage.values()
        tokens = _Tokens(sum(m.inputTokens for m in models), sum(m.outputTokens for m in models))
    else:
        tokens = line.usage or _Tokens()
    return ev.AgentUsage(
        input_tokens=tokens.input_tokens, output_tokens=tokens.output_tokens, cost_usd=cost, cumulative=True
    )
