"""Events from Pi's JSON mode, versions 0.73 to 1.5.

`session` comes first. An assistant message streams in `message_update` lines and is complete in
`message_end`, which alone has its usage, stop reason and error. `agent_end` closes one run, which Pi may
repeat by itself; `agent_settled` (from 0.80.4) means that nothing follows. Older versions just exit, so for
them the end of stdout counts.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw, Struct

from holdfast.agents.shared import api_errors, json_lines, refusals
from holdfast.model import events as ev
from holdfast.model import outcome as oc

_TEXT_CHARS = 16_000
#: How much of a streaming text is kept.
_PARTIAL_BYTES = 16_000
_UPDATE = b'{"type":"message_update"'
_DELTA = b'"delta":"'
_STATUS = re.compile(r"(\d{3})\b")


class _Block(Struct):
    type: str = ""
    text: str = ""


class _Cost(Struct):
    total: float | None = None


class _Usage(Struct):
    input: int | None = None
    output: int | None = None
    cost: _Cost | None = None


class _Message(Struct, rename="camel"):
    role: str = ""
    content: list[_Block] | str = ""
    usage: _Usage | None = None
    stop_reason: str | None = None
    error_message: str | None = None
    #: Milliseconds since 1970.
    timestamp: float = 0.0


class _Line(Struct, rename="camel"):
    """The fields of all lines; a line has few of them."""

    type: str = ""
    id: str = ""
    message: _Message | None = None
    tool_call_id: str = ""
    tool_name: str = ""
    args: Raw = Raw(b"")
    is_error: bool = False
    result: Raw = Raw(b"")
    will_retry: bool = False
    aborted: bool = False
    delay_ms: float | None = None
    error_message: str = ""


#: Tools that a permission profile may leave out.
_TAKEN_AWAY = frozenset({"bash", "edit", "write"})
_SEARCHED_BYTES = 200
_DECODER = msgspec.json.Decoder(_Line)
_TEXT_DECODER = msgspec.json.Decoder(str)
_NEEDED = frozenset(
    (
        b"session", b"agent_start", b"message_end", b"tool_execution_start", b"tool_execution_end",
        b"agent_end",
        b"agent_settled", b"auto_retry_start",
    )
)  # fmt: skip


def _is_taken_away(line: _Line) -> bool:
    """Whether the model called a tool that `--tools` leaves out."""
    words = f"Tool {line.tool_name} not found".encode()
    return line.tool_name in _TAKEN_AWAY and words in bytes(memoryview(line.result)[:_SEARCHED_BYTES])


class PiLines:
    """The reader. It remembers the streaming text, and how the last assistant message stopped."""

    def __init__(self) -> None:
        #: Pieces of the streaming text, still escaped.
        self._pieces: list[bytes] = []
        self._pieces_bytes = 0
        #: Old versions repeat the whole message in each update: the last one is enough.
        self._update = b""
        self._stop_reason = ""
        self._text = ""
        self._has_failed = False
        #: Between `agent_start` and an `agent_end` that is not repeated.
        self._is_open = False
        self._has_ended = False
        self._has_result = False

    def read(self, line: bytes) -> list[ev.AgentEvent]:
        """The events of one line."""
        if line.startswith(_UPDATE):
            self._streamed(line)
            return []
        if json_lines.kind(line) not in _NEEDED:
            return []
        decoded = json_lines.decode(_DECODER, line)
        if decoded is None:
            return []
        match decoded.type:
            case "message_end":
                return self._said(decoded.message) if decoded.message is not None else []
            case "tool_execution_start":
                summary = json_lines.summary(decoded.args)
                return [
                    ev.AgentToolStarted(tool_id=decoded.tool_call_id, name=decoded.tool_name, summary=summary)
                ]
            case "tool_execution_end":
                denied = decoded.is_error and _is_taken_away(decoded)
                finished = ev.AgentToolFinished(
                    tool_id=decoded.tool_call_id,
                    is_error=decoded.is_error,
                    denied=denied,
                    result=json_lines.result_text(decoded.result),
                )
                return [finished]
            case "session":
                return [ev.AgentSession(session_id=decoded.id)] if decoded.id else []
            case "agent_start":
                self._is_open, self._has_ended = True, False
                self._stop_reason = ""
            case "agent_end":
                self._is_open = self._has_ended = False
                if not decoded.will_retry:
                    self._has_ended = True
            case "auto_retry_start":
                self._is_open, self._has_ended = True, False
                delay_s = None if decoded.delay_ms is None else decoded.delay_ms / 1000
                reason = decoded.error_message
                is_limited = refusals.quotes_limit(reason)
                return [ev.AgentRetry(delay_s=delay_s, reason=reason, is_limited=is_limited)]
            case "agent_settled":
                self._is_open = self._has_ended = False
                return self._result("settled", aborted=decoded.aborted)
            case _:
                pass
        return []

    def finish(self) -> list[ev.AgentEvent]:
        """Text that was cut off, and the result of a version that does not report when it has settled."""
        events: list[ev.AgentEvent] = []
        partial = self._partial()
        if partial:
            events.append(ev.AgentText(text=partial))
        if self._has_ended:
            events += self._result("ended")
        elif self._is_open and self._has_result:
            events.append(ev.AgentResult(is_error=True, subtype="unfinished"))
        if self._is_open and self._has_failed and self._stop_reason != "error":
            # The last error was not the end.
            events.append(ev.AgentError(kind="truncated", message="stdout ends before the end of the run"))
        return events

    # ── streaming text ──

    def _streamed(self, line: bytes) -> None:
        begin = line.find(b'"text_delta"')
        if begin < 0:
            if b'"type":"text_start"' in line:
                self._forget()
            return
        begin = line.find(_DELTA, begin)
        if begin < 0:
            return
        if line.find(b'","partial":', begin) >= 0:
            self._update = line
        elif self._pieces_bytes < _PARTIAL_BYTES and line.endswith(b'"}}'):
            piece = line[begin + len(_DELTA) : -3]
            self._pieces.append(piece)
            self._pieces_bytes += len(piece)

    def _forget(self) -> None:
        self._pieces, self._pieces_bytes, self._update = [], 0, b""

    def _partial(self) -> str:
        if self._update:
            decoded = json_lines.decode(_DECODER, self._update)
            texts = _texts(decoded.message) if decoded is not None and decoded.message is not None else []
            return texts[-1] if texts else ""
        quoted = b'"' + b"".join(self._pieces) + b'"'
        return (json_lines.decode(_TEXT_DECODER, quoted) or "")[:_TEXT_CHARS]

    # ── messages and results ──

    def _said(self, message: _Message) -> list[ev.AgentEvent]:
        if message.role != "assistant":
            return []
        self._forget()
        self._stop_reason = message.stop_reason or ""
        texts = _texts(message)
        self._text = texts[-1] if texts else ""
        events: list[ev.AgentEvent] = [ev.AgentText(text=text) for text in texts]
        usage = message.usage
        if usage is not None:
            events.append(
                ev.AgentUsage(
                    input_tokens=usage.input,
                    output_tokens=usage.output,
                    cost_usd=usage.cost.total if usage.cost is not None else None,
                )
            )
        if self._stop_reason == "error":
            events += self._failed(message)
        return events

    def _failed(self, message: _Message) -> list[ev.AgentEvent]:
        self._has_failed = True
        text = message.error_message or "no error message"
        status = _STATUS.match(text)
        kind = api_errors.kind(int(status[1]) if status else None, text) or "crashed"
        error = ev.AgentError(kind=kind, message=text)
        if kind not in oc.MUST_WAIT:
            return [error]
        at = api_errors.resets_at(text, message.timestamp / 1000)
        return [ev.AgentRateLimit(resets_at=at, reason=text), error]

    def _result(self, subtype: str, *, aborted: bool = False) -> list[ev.AgentEvent]:
        self._has_result = True
        if aborted:
            return _bad_end(subtype, "interrupted", "the run was aborted")
        match self._stop_reason:
            case "stop" if self._text:
                return [ev.AgentResult(is_error=False, subtype=subtype, text=self._text)]
            case "stop":
                return _bad_end(subtype, "empty_reply", "the model's last reply has no text")
            case "length":
                return _bad_end(
                    subtype, "truncated", "the model's last reply was cut off at its output limit"
                )
            case "aborted":
                return _bad_end(subtype, "interrupted", "the run was aborted")
            case "error":
                return [ev.AgentResult(is_error=True, subtype=subtype)]
            case _:
                return _bad_end(subtype, "truncated", "the run ended without a last reply")


def _texts(message: _Message) -> list[str]:
    if isinstance(message.content, str):
        return [message.content[:_TEXT_CHARS]] if message.content else []
    return [block.text[:_TEXT_CHARS] for block in message.content if block.type == "text" and block.text]


def _bad_end(subtype: str, kind: str, message: str) -> list[ev.AgentEvent]:
    return [ev.AgentError(kind=kind, message=message), ev.AgentResult(is_error=True, subtype=subtype)]
