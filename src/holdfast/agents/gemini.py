"""gemini: Google's Gemini CLI, headless with `-o stream-json`.

Its last word is a `result` line; without one it did not finish, whatever the exit status (signals end it with 0). Assistant
text comes in deltas only. Retries are told on stderr alone. An API error exits with the HTTP status modulo 256.
"""

from __future__ import annotations

import re

import msgspec

from holdfast import clock
from holdfast.agents.base import Capabilities, End, Launch, LaunchSpec, StopStep
from holdfast.model import events as ev
from holdfast.model import outcome as oc
from holdfast.model.outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.agents.base import Adapter, Reader
    from holdfast.model.task import Attempt

# ── the lines ───────────────────────────────────────────────────────────────

_TEXT_CHARS = 4000
#: Deltas of one text that are kept, in bytes of JSON: more than the text is cut to, however it is escaped.
_HELD_BYTES = 8 * _TEXT_CHARS
_SUMMARY_CHARS = 200
_MESSAGE_CHARS = 2000

_MESSAGE = b'{"type":"message",'
_ASSISTANT = b'"role":"assistant"'
_USER = b'"role":"user"'
#: The role stands in front of the content, which may be megabytes.
_HEAD_BYTES = 120

#: Built in, and taken away from the model where nobody may approve them; the model asks for them all the same.
_GUARDED = frozenset({"run_shell_command", "write_file", "replace"})


class _Error(msgspec.Struct):
    type: str | None = None
    message: str | None = None


class _Stats(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None


class _Line(msgspec.Struct):
    """All kinds of lines in one; what a kind lacks stays empty."""

    type: str
    timestamp: str | None = None
    session_id: str | None = None
    model: str | None = None
    role: str | None = None
    content: str | None = None
    tool_id: str | None = None
    tool_name: str | None = None
    parameters: msgspec.Raw = msgspec.Raw(b"")
    status: str | None = None
    severity: str | None = None
    message: str | None = None
    error: _Error | str | None = None
    stats: _Stats | None = None


_DECODER = msgspec.json.Decoder(_Line)


def _decode(line: bytes) -> _Line | None:
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass
    try:
        # Invalid UTF-8 inside a string is no reason to lose an event.
        return _DECODER.decode(line.decode("utf-8", "replace"))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


class GeminiReader:
    """Holds back text deltas until their text is complete, and remembers which tool an id belongs to."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._guarded: set[str] = set()

    def read(self, line: bytes) -> list[ev.AgentEvent]:
        """The events of one line of stdout."""
        if line.startswith(_MESSAGE):
            if line.find(_ASSISTANT, 0, _HEAD_BYTES) > 0:
                return self._hold(line)
            if line.find(_USER, 0, _HEAD_BYTES) > 0:
                return self._flush()
        elif not line.startswith(b"{"):
            return []
        data = _decode(line)
        return [] if data is None else self._events(data, line)

    def read_stderr(self, line: bytes) -> list[ev.AgentEvent]:
        """The retries: nothing on stdout tells of them."""
        if b"Retrying" not in line:
            return []
        text = line[:_MESSAGE_CHARS].decode("utf-8", "replace")
        delay = re.search(r"Retrying after (\d+)ms", text)
        return [ev.AgentRetry(delay_s=int(delay[1]) / 1000 if delay else None, reason=text[:200])]

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
        parts = [data.content or "" for line in self._held if (data := _decode(line))]
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
                started = ev.AgentToolStarted(
                    tool_id=data.tool_id, name=data.tool_name or "", summary=_summary(data.parameters)
                )
                return [*self._flush(), started]
            case "tool_result" if data.tool_id:
                return [*self._flush(), self._finished(data, data.tool_id)]
            case "error" if data.severity == "error":
                message = data.message or ""
                kind = _kind(message, "", None) or "crashed"
                return [ev.AgentError(kind=kind, message=message[:_MESSAGE_CHARS])]
            case "result":
                return [*self._flush(), *_result(data)]
            case _:
                return []

    def _finished(self, data: _Line, tool_id: str) -> ev.AgentToolFinished:
        error = data.error.type if isinstance(data.error, _Error) else None
        is_guarded = tool_id in self._guarded
        self._guarded.discard(tool_id)
        denied = error == "policy_violation" or (error == "tool_not_registered" and is_guarded)
        return ev.AgentToolFinished(tool_id=tool_id, is_error=data.status != "success", denied=denied)


def _summary(parameters: msgspec.Raw) -> str:
    cut = bytes(memoryview(parameters)[: 4 * _SUMMARY_CHARS])
    return cut.decode("utf-8", "ignore")[:_SUMMARY_CHARS]


def _result(data: _Line) -> list[ev.AgentEvent]:
    found: list[ev.AgentEvent] = []
    if data.stats is not None:
        found.append(
            ev.AgentUsage(
                input_tokens=data.stats.input_tokens,
                output_tokens=data.stats.output_tokens,
                cumulative=True,
            )
        )
    if data.status == "success":
        return [*found, ev.AgentResult(is_error=False, subtype="success")]
    error = data.error if isinstance(data.error, _Error) else _Error(message=data.error)
    message, type_ = error.message or "", error.type or ""
    kind = _kind(message, type_, None) or "crashed"
    found.append(ev.AgentError(kind=kind, message=message[:_MESSAGE_CHARS]))
    delay_s = _delay_s(message)
    if delay_s is not None:
        resets_at = _later(data.timestamp or "", delay_s)
        found.append(ev.AgentRateLimit(resets_at=resets_at, reason=message[:_SUMMARY_CHARS]))
    return [*found, ev.AgentResult(is_error=True, subtype=type_)]


# ── the verdict ─────────────────────────────────────────────────────────────

#: HTTP statuses that can stand behind an exit status.
_HTTP_STATUS = {
    status % 256: status for status in (400, 401, 403, 404, 408, 409, 413, 429, 500, 502, 503, 504, 529)
}
_EXITS = {
    41: "no_auth",
    44: "usage_error",  # no sandbox
    52: "usage_error",  # bad settings
    53: "max_turns",
    55: "not_trusted",
    129: "interrupted",
    130: "interrupted",
    143: "interrupted",
    137: "killed",
}
_SIGNALS = {1: "interrupted", 2: "interrupted", 15: "interrupted", 9: "killed"}

#: In this order; what is found first decides.
_TEXTS = [
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), kind)
    for pattern, kind in (
        (r"max(imum)? session turns", "max_turns"),
        (r"token count.*exceeds|maximum number of tokens|context window", "context_too_long"),
        (r"api key (not valid|expired)|API_KEY_INVALID", "auth"),
        (r"overloaded", "overloaded"),
        (r"daily quota|PerDay", "quota"),
        (r"empty response|NO_RESPONSE_TEXT|without a finish reason", "empty_reply"),
        (r"is not found for API version|model not found|ModelNotFound", "model_not_found"),
    )
]
_NETWORK = re.compile(
    r"terminated|fetch failed|socket|ECONN|ENOTFOUND|EAI_AGAIN|EPIPE|time(d)? ?out|network|other side closed",
    re.IGNORECASE,
)
#: Said of the allowance of a day and of a minute alike; the wait tells them apart.
_ALLOWANCE = re.compile(
    r"exceeded your current quota|exhausted your capacity|quota will reset|QUOTA_EXHAUSTED", re.IGNORECASE
)
_LONG_WAIT_S = 600.0
_DELAY = re.compile(
    r"(?:reset after|retry in|retry after|retryDelay\"?:\s*\"?)\s*((?:\d+(?:\.\d+)?(?:ms|[dhms]))+)"
)
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NO_SESSION = re.compile(
    r"Error resuming session|No previous sessions found|Session ID .* already exists", re.IGNORECASE
)
_USAGE = re.compile(r"Unknown argument|Usage: gemini|Show version number|Not enough arguments")


def _delay_s(message: str) -> float | None:
    found = _DELAY.search(message)
    return sum(float(n) * _UNIT_S[unit] for n, unit in _PART.findall(found[1])) if found else None


def _later(timestamp: str, delay_s: float) -> str | None:
    try:
        return clock.iso(clock.parse_iso(timestamp) + delay_s)
    except (ValueError, OverflowError, IndexError):
        return None


def _kind(message: str, type_: str, status: int | None) -> str | None:
    """The class of an error, by its text and by the HTTP status, where one is known."""
    if type_ == "FatalTurnLimitedError":
        return "max_turns"
    if type_ == "FatalCancellationError":
        return "interrupted"
    for pattern, kind in _TEXTS:
        if pattern.search(message):
            return kind
    if status is None and (code := re.search(r'"code":\s*(\d{3})\b', message)):
        status = int(code[1])
    if _ALLOWANCE.search(message) and status in (None, 429):
        delay_s = _delay_s(message)
        return "quota" if delay_s is None or delay_s >= _LONG_WAIT_S else "rate_limit"
    if status is not None:
        return _kind_of_status(status)
    if _NETWORK.search(message):
        return "network"
    return "no_auth" if type_ == "FatalAuthenticationError" else None


def _kind_of_status(status: int) -> str:
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


def _without_result(end: End) -> Outcome:
    code, signal, stderr = end.exit.exit_code, end.exit.exit_signal, end.stderr_tail
    last = next((text for text in reversed(stderr.splitlines()) if text.strip()), "")[:200]
    if signal is not None:
        return Outcome(kind=_SIGNALS.get(signal, "crashed"), detail=f"ended by signal {signal}")
    if code == 0 and end.is_torn:
        return Outcome(kind="truncated", detail="its output ends inside a line")
    if code == 0 and "stdin input truncated" in stderr:
        return Outcome(kind="usage_error", detail="the prompt is longer than 8 MiB")
    if code == 0:
        return Outcome(kind="interrupted", detail="exit status 0 without a result")
    if code == 42:
        kind = "unknown_session" if _NO_SESSION.search(stderr) else "usage_error"
        return Outcome(kind=kind, detail=last)
    if code == 55:
        hint = "run gemini there once and trust it, or allow everything with --yolo"
        return Outcome(kind="not_trusted", detail=f"gemini does not trust this directory: {hint}")
    if code == 1 and _USAGE.search(stderr):
        return Outcome(kind="usage_error", detail=stderr.strip().splitlines()[0][:200])
    if code in _EXITS:
        return Outcome(kind=_EXITS[code], detail=last)
    status = _HTTP_STATUS.get(code) if code is not None else None
    kind = _kind_of_status(status) if status is not None else "crashed"
    return Outcome(kind=kind, detail=f"exit status {code} without a result")


class Gemini:
    """Runs `gemini` in one process: its launcher would ignore signals and outlive nobody."""

    name = "gemini"
    capabilities = Capabilities(
        program="gemini",
        chooses_session_id=True,
        session_id_from="chosen",
        can_resume=True,
        resume_needs_same_cwd=True,
        stdin_prompt=True,
        prompt_bytes=8 * 1024 * 1024,
        has_events=True,
        silent_during=("tool", "retry"),
        usage_scope="process",
        # It gives up a silent stream by itself after 300 s and tries again.
        stale_s=330.0,
        stop=(StopStep(signal="TERM", pause_s=10.0), StopStep(signal="KILL", pause_s=5.0)),
        env=("GEMINI_*", "GOOGLE_*", "NODE_EXTRA_CA_CERTS"),
        login="gemini (then /auth), or set GEMINI_API_KEY",
        memory_mb=260,
    )

    def launch(self, spec: LaunchSpec) -> Launch:
        """A new session. An id that was used before is refused, also after a first turn that failed."""
        return _line(spec, "--session-id")

    def resume(self, spec: LaunchSpec) -> Launch:
        """The same session, from the same directory."""
        return _line(spec, "--resume")

    def reader(self) -> Reader:
        """stream-json of its own kind."""
        return GeminiReader()

    def classify(self, end: End, attempt: Attempt) -> Outcome:
        """By the result line; the exit status says what an error was, or why there is no result."""
        result, code = attempt.result, end.exit.exit_code
        if result is None:
            return _without_result(end)
        if not result.is_error:
            if code and end.exit.exit_signal is None:
                return Outcome(kind="crashed", detail=f"exit status {code} after its result")
            if attempt.tool_denied:
                return Outcome(kind="permission_denied_but_finished")
            return Outcome(kind="tool_failed_but_finished" if attempt.tool_failed else "success")
        message = attempt.error.message if attempt.error else ""
        known = code if code is not None else 0
        kind = _kind(message, result.subtype, _HTTP_STATUS.get(known)) or _EXITS.get(known, "crashed")
        limit = attempt.rate_limit if kind in oc.WAITS else None
        detail = message.splitlines()[0][:200] if message else result.subtype
        return Outcome(kind=kind, detail=detail, resets_at=limit.resets_at if limit else None)


def _line(spec: LaunchSpec, flag: str) -> Launch:
    argv = [spec.program or "gemini", "-o", "stream-json"]
    if spec.session_id is not None:
        argv += [flag, spec.session_id]
    if spec.model:
        # Without a model it asks another one first which to take.
        argv += ["-m", spec.model]
    if spec.yolo:
        # In a directory that it does not trust it would fall back to asking, and stop.
        argv += ["--approval-mode", "yolo", "--skip-trust"]
    argv += [f"--allowed-tools={tool}" for tool in spec.allowed_tools]
    env = {"GEMINI_CLI_NO_RELAUNCH": "1"}
    if spec.settings_path:
        # The layer above the user's and the project's settings.
        env["GEMINI_CLI_SYSTEM_SETTINGS_PATH"] = spec.settings_path
    return Launch(argv=argv, env=env, stdin=spec.prompt_path or None)


ADAPTER: Adapter = Gemini()
