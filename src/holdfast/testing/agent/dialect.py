"""A dialect: how the agent's actions appear in the output of one CLI.

A new dialect is a new file `dialect_<name>.py` and a line in `DIALECTS`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from holdfast.testing.agent.output import Output

#: name on the command line → module and class
DIALECTS = {
    "stream-json": ("dialect_claude", "ClaudeDialect"),
    "text": ("dialect_text", "TextDialect"),
}


class Dialect:
    """The output of one process. Subclasses implement the open methods."""

    #: signal name → "interrupt", {"exit": N} or "default": what the imitated CLI does
    signal_actions: ClassVar[dict[str, Any]] = {}
    #: Session ids must be UUIDs, and a session is found only from the directory of its start.
    is_strict_about_sessions = False

    def __init__(self, out: Output, *, session_id: str, model: str, process_number: int) -> None:
        self.out = out
        self.session_id = session_id
        self.model = model
        self.process_number = process_number
        self.last_text = ""
        self.has_result = False
        self.has_open_tool = False

    def begin(self) -> None:
        """The first output."""
        raise NotImplementedError

    def text_line(self, text: str) -> bytes:
        """One complete output line that contains `text`."""
        raise NotImplementedError

    def say(self, text: str) -> None:
        """A text of the model."""
        self.last_text = text
        self.out.write(self.text_line(text))

    def tool_started(self, name: str, arguments: dict[str, Any]) -> None:
        """A tool call starts."""
        raise NotImplementedError

    def tool_finished(self, output: str, *, exit_code: int) -> None:
        """The open tool call ends, with its output."""
        raise NotImplementedError

    def retry_announced(
        self, *, delay_s: float, attempt: int, max_retries: int, error_status: int, error: str
    ) -> None:
        """The CLI announces a retry and its time."""
        raise NotImplementedError

    def use(self, *, input_tokens: int, output_tokens: int, cache_read_tokens: int, cost_usd: float) -> None:
        """Count tokens and cost; shown where the CLI shows them."""
        raise NotImplementedError

    def rate_limited(self, text: str) -> None:
        """The model refuses: shown as the CLI does it, including the final result."""
        raise NotImplementedError

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
        """The final output. Returns whether it reports an error."""
        raise NotImplementedError

    def interrupted(self) -> int:
        """The final output after an interrupt by the user, and the exit status that follows."""
        raise NotImplementedError


def dialect_class(name: str) -> type[Dialect]:
    """The dialect with this name."""
    from importlib import import_module

    module, attribute = DIALECTS[name]
    return getattr(import_module("holdfast.testing.agent." + module), attribute)
