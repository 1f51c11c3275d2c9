"""Claude Code's stream-json (`claude -p --output-format stream-json --verbose`).

Names, nesting and exit statuses follow streams recorded from version 2.1.197. It is a subset: keys that say
nothing about the work (ttft_ms, request_id, fast_mode_state, memory_paths…) are left out, and keys may come
in another order. Ids are counted instead of random, so that two plays of a scenario differ only in their
times.
"""

from __future__ import annotations

import json
import time

from holdfast.testing.agent import claude_shapes as shapes
from holdfast.testing.agent.dialect import Dialect
from holdfast.testing.agent.output import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it "
    "was a file edit, the new_string was NOT written to the file). STOP what you are doing and "
    "wait for the user to tell you how to proceed."
)


class ClaudeDialect(Dialect):
    """One JSON object per line; one content block per assistant line."""

    # INT ends with a result; after TERM and HUP it exits (it is not killed) without output.
    signal_actions: ClassVar[dict[str, Any]] = {
        "INT": "interrupt",
        "TERM": {"exit": 143},
        "HUP": {"exit": 129},
    }
    is_strict_about_sessions = True

    def __init__(self, out: Any, **kwargs: Any) -> None:
        super().__init__(out, **kwargs)
        self._began_mono = time.monotonic()
        self._events = 0
        self._messages = 0
        self._tools = 0
        self._turns = 0  # stays 0 if the session is not found
        self._tool_id = ""
        self._request = (0, 0)  # input and cached tokens of the current request
        self._sum = (0, 0, 0)  # input, output and cached tokens of this process
        self._cost_usd = 0.0

    def begin(self) -> None:
        self._turns = 1
        self._emit(shapes.init(self.session_id, self.model))

    def text_line(self, text: str) -> bytes:
        self._messages += 1
        return self._assistant_line({"type": "text", "text": text})

    def tool_started(self, name: str, arguments: dict[str, Any]) -> None:
        self._tools += 1
        self._turns += 1
        self._tool_id = f"toolu_{self.process_number:04x}{self._tools:012x}"
        self.has_open_tool = True
        block = {"type": "tool_use", "id": self._tool_id, "name": name, "input": arguments}
        self.out.write(self._assistant_line(block))

    def tool_finished(self, output: str, *, exit_code: int) -> None:
        if exit_code:
            output = f"Exit code {exit_code}\n{output}".rstrip("\n")
            self._tool_result(output, is_error=True, summary=f"Error: {output}")
        else:
            summary = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
            self._tool_result(output, is_error=False, summary=summary)

    def retry_announced(
        self, *, delay_s: float, attempt: int, max_retries: int, error_status: int, error: str
    ) -> None:
        self._emit(
            {
                "type": "system",
                "subtype": "api_retry",
                "attempt": attempt,
                "max_retries": max_retries,
                "retry_delay_ms": delay_s * 1000,
                "error_status": error_status,
                "error": error,
                "session_id": self.session_id,
            }
        )

    def use(self, *, input_tokens: int, output_tokens: int, cache_read_tokens: int, cost_usd: float) -> None:
        self._request = (input_tokens, cache_read_tokens)
        total_in, total_out, total_cached = self._sum
        self._sum = (
            total_in + input_tokens,
            total_out + output_tokens,
            total_cached + cache_read_tokens,
        )
        self._cost_usd = round(self._cost_usd + cost_usd, 9)

    def rate_limited(self, text: str) -> None:
        self._messages += 1
        message = self._message({"type": "text", "text": text})
        message |= {"model": "<synthetic>", "stop_reason": "stop_sequence", "stop_sequence": ""}
        self._emit(shapes.assistant(self.session_id, message) | {"error": "rate_limit"})
        # As recorded: an API failure is subtype "success" with is_error true.
        self.result(text=text, is_error=True, api_error_status=429)

    def result(
        self,
        *,
        text: str | None = None,
        subtype: str = "success",
        is_error: bool | None = None,
        api_error_status: int | None = None,
        terminal_reason: str | None = None,
        errors: list[str] | None = None,
        denied: list[str] | None = None,
    ) -> bool:
        self.has_result = True
        if is_error is None:
            is_error = subtype != "success"
        fields: dict[str, Any] = {"type": "result", "subtype": subtype, "is_error": is_error}
        if subtype == "success":
            fields["api_error_status"] = api_error_status
            fields["result"] = self.last_text if text is None else text
            terminal_reason = terminal_reason or "completed"
        duration_ms = int((time.monotonic() - self._began_mono) * 1000)
        fields |= {"duration_ms": duration_ms, "duration_api_ms": 0, "num_turns": self._turns}
        stop_reason = "end_turn" if subtype == "success" else None
        fields |= {"stop_reason": stop_reason, "session_id": self.session_id}
        fields |= shapes.totals(self.model, self._sum, self._cost_usd)
        fields["permission_denials"] = [
            {"tool_name": name, "tool_use_id": f"toolu_denied{i:06x}", "tool_input": {}}
            for i, name in enumerate(denied or [])
        ]
        if terminal_reason:
            fields["terminal_reason"] = terminal_reason
        if subtype != "success":
            fields["errors"] = errors or ([text] if text else [])
        self._emit(fields)
        return is_error

    def interrupted(self) -> int:
        during_tool = self.has_open_tool
        if during_tool:
            self._tool_result(REJECTED, is_error=True, summary="User rejected tool use")
        text = "[Request interrupted by user" + (" for tool use]" if during_tool else "]")
        self._emit(shapes.user(self.session_id, {"type": "text", "text": text}))
        self._turns += 1  # the interruption counts as one
        reason = "aborted_tools" if during_tool else "aborted_streaming"
        self.result(subtype="error_during_execution", terminal_reason=reason)
        return 1 if during_tool else 0  # as recorded: 0 in mid-stream, although it failed

    def _emit(self, fields: dict[str, Any]) -> None:
        self.out.write(self._line(fields))

    def _line(self, fields: dict[str, Any]) -> bytes:
        self._events += 1
        tail = self.session_id.replace("-", "")[-12:].rjust(12, "0")
        fields["uuid"] = f"{self._events:08x}-{self.process_number & 0xFFFF:04x}-4000-8000-{tail}"
        return encode(json.dumps(fields, ensure_ascii=False, separators=(",", ":")) + "\n")

    def _assistant_line(self, block: dict[str, Any]) -> bytes:
        return self._line(shapes.assistant(self.session_id, self._message(block)))

    def _message(self, block: dict[str, Any]) -> dict[str, Any]:
        message_id = f"msg_{self.process_number:04x}{self._messages:08x}"
        return shapes.message(message_id, self.model, block, self._request)

    def _tool_result(self, text: str, *, is_error: bool, summary: Any) -> None:
        self.has_open_tool = False
        self._messages += 1  # what follows a tool's result is a new message
        block = {"tool_use_id": self._tool_id, "type": "tool_result", "content": text}
        event = shapes.user(self.session_id, block | {"is_error": is_error})
        self._emit(event | {"tool_use_result": summary})
