"""Events from `codex exec --json`.

The first line has the only id; `error` is also used for retries, and an item of type `error` is a warning:
only `turn.failed` or the exit status is a failure. Errors are free text. Usage is the total of the thread,
over all resumes.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw, Struct

from holdfast import clock
from holdfast.agents.shared import json_lines, refusals, reset_times, todo_list
from holdfast.model import events as ev
from holdfast.model.outcome import HAS_RESET_TIME

TYPE_CHECKING = False
_TEXT_LIMIT = 16_000
_SUMMARY_LIMIT = 4000
#: How a command fails at the border of the sandbox, and how much of its output is searched for it.
_READ_ONLY, _SEARCHED_BYTES = b"Read-only file system", 4000
_TOOLS = frozenset({"command_execution", "file_change", "mcp_tool_call", "collab_tool_call", "web_search"})


class _Change(Struct):
    path: str = ""
    kind: str | None = None


class _Todo(Struct):
    text: str = ""
    completed: bool = False


class _Item(Struct):
    """`aggregated_output` can be megabytes; only its beginning is decoded."""

    id: str = ""
    type: str = ""
    text: str = ""
    status: str | None = None
    command: str = ""
    aggregated_output: Raw = Raw(b"")
    #: Of a call of an MCP tool.
    result: Raw = Raw(b"")
    changes: list[_Change] | None = None
    server: str = ""
    tool: str = ""
    query: str = ""
    items: Raw = Raw(b"")


def _is_refused(item: _Item) -> bool:
    output = memoryview(item.aggregated_output)[-_SEARCHED_BYTES:]
    return item.status == "failed" and _READ_ONLY in bytes(output)


class _Usage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None


class _Failure(Struct):
    message: str = ""


class _Thread(Struct):
    thread_id: str


class _OfItem(Struct):
    item: _Item


class _Completed(Struct):
    usage: _Usage | None = None


class _Failed(Struct):
    error: _Failure | None = None


_TODOS = msgspec.json.Decoder(list[_Todo])


class Lines(json_lines.ByType):
    """The reader of one attempt."""

    def __init__(self) -> None:
        super().__init__(
            {
                b"thread.started": (_Thread, self._thread),
                b"item.started": (_OfItem, self._started),
                b"item.updated": (_OfItem, self._updated),
                b"item.completed": (_OfItem, self._item),
                b"turn.completed": (_Completed, self._completed),
                b"turn.failed": (_Failed, self._failed),
                b"error": (_Failure, self._error),
            }
        )
        self._open: set[str] = set()
        self._last_text = ""
        #: Its todo list as last reported.
        self._todos = b""
        #: An error that no `turn.failed` has repeated yet.
        self._said: str | None = None

    def finish(self) -> list[ev.AgentEvent]:
        """An error that was not repeated, because the process ended before its turn did."""
        error, self._said = self._said, None
        return _errors(error) if error is not None else []

    def _thread(self, line: _Thread) -> list[ev.AgentEvent]:
        return [ev.AgentSession(session_id=line.thread_id)]

    def _started(self, line: _OfItem) -> list[ev.AgentEvent]:
        item = line.item
        if item.type not in _TOOLS:
            return self._updated(line)
        self._open.add(item.id)
        name = f"{item.server}.{item.tool}" if item.tool else item.type
        return [ev.AgentToolStarted(tool_id=item.id, name=name, summary=_summary(item))]

    def _item(self, line: _OfItem) -> list[ev.AgentEvent]:
        item = line.item
        if item.type == "agent_message" and item.text:
            self._last_text = item.text[:_TEXT_LIMIT]
            return [ev.AgentText(text=self._last_text)]
        if item.type not in _TOOLS:
            return self._updated(line)
        begun = [] if item.id in self._open else self._started(line)
        self._open.discard(item.id)
        denied = item.status == "declined" or _is_refused(item)
        return [
            *begun,
            ev.AgentToolFinished(
                tool_id=item.id,
                is_error=denied or item.status == "failed",
                denied=denied,
                result=json_lines.result_text(item.aggregated_output or item.result),
            ),
        ]

    def _updated(self, line: _OfItem) -> list[ev.AgentEvent]:
        """A `todo_list`: it starts with the first plan, is updated, and completes unchanged with the turn.

        A step is done or not; the current one is not marked, and a plan is worked from top to bottom.
        """
        if line.item.type != "todo_list" or bytes(line.item.items) == self._todos:
            return []
        self._todos = bytes(line.item.items)
        steps = json_lines.decode(_TODOS, self._todos)
        if steps is None:
            return []
        first = next((step for step in steps if not step.completed), None)
        return [
            todo_list.progress(
                ("completed" if step.completed else "in_progress" if step is first else "pending", step.text)
                for step in steps
            )
        ]

    def _completed(self, line: _Completed) -> list[ev.AgentEvent]:
        self._said = None
        usage = line.usage or _Usage()
        return [
            ev.AgentUsage(
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cumulative=True,
                of_session=True,
            ),
            ev.AgentResult(is_error=False, subtype="turn.completed", text=self._last_text),
        ]

    def _failed(self, line: _Failed) -> list[ev.AgentEvent]:
        message = (line.error.message if line.error else "") or self._said or ""
        self._said = None
        result = ev.AgentResult(is_error=True, subtype="turn.failed", text=message[:_TEXT_LIMIT])
        return [*_errors(message), result]

    def _error(self, line: _Failure) -> list[ev.AgentEvent]:
        if line.message.startswith("Reconnecting..."):
            reason = line.message[:_SUMMARY_LIMIT]
            return [ev.AgentRetry(reason=reason, is_limited=refusals.quotes_limit(reason))]
        self._said = line.message
        return []


def _summary(item: _Item) -> str:
    if item.changes:
        return ", ".join(change.path for change in item.changes)[:_SUMMARY_LIMIT]
    return (item.command or item.query)[:_SUMMARY_LIMIT]


def _errors(message: str) -> list[ev.AgentEvent]:
    kind = error_kind(message)
    events: list[ev.AgentEvent] = [ev.AgentError(kind=kind, message=message[:_TEXT_LIMIT])]
    if kind in HAS_RESET_TIME:
        at = reset_times.find(message, clock.now())
        events.insert(0, ev.AgentRateLimit(resets_at=at, reason=message[:_SUMMARY_LIMIT]))
    return events


#: Free text, so the order matters: specific patterns come before general ones.
_KINDS = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"no rollout found|no (?:thread|session|conversation) found", "unknown_session"),
        (r"not inside a trusted directory", "not_trusted"),
        (r"missing environment variable|not logged in|no api key|please (?:log|sign) in", "no_auth"),
        (r"usage limit|quota|billing|out of credits|spend cap", "quota"),
        (r"context window|context_length|ran out of room|input_too_large"
         r"|exceeds the maximum length", "context_too_long"),
        (r"\b429\b|too many requests|rate.?limit", "rate_limit"),
        (r"\b40[13]\b|unauthorized|forbidden|refresh token|invalid.api.key|sign.?in again", "auth"),
        (r"overloaded|at capacity|\b529\b", "overloaded"),
        (r"model\b.{0,80}(?:does not exist|not found|not supported|no access)"
         r"|model_not_found", "model_not_found"),
        (r"\b5\d\d\b|internal server error|server_error", "server_error"),
        (r"invalid_request|\b400\b|bad request|\b4\d\d\b", "invalid_request"),
        (r"stream disconnected|network|timed? ?out|connection|error sending request|dns", "network"),
        (r"no prompt provided|unexpected argument|error loading config|invalid value"
         r"|no longer supported", "usage_error"),
    )
)  # fmt: skip


def error_kind(message: str) -> str:
    """The outcome label of an error's text; `crashed` if unknown, so that it is retried."""
    head = message[:2000]
    return next((kind for pattern, kind in _KINDS if pattern.search(head)), "crashed")
