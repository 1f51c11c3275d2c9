"""What a dialect is: how the agent's deeds are put into the output of one CLI.

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
    """One process's voice. Subclasses say everything that is left open here."""

    #: signal name → "interrupt", {"exit": N} or "default": what the imitated CLI does
    signal_actions: ClassVar[dict[str, Any]] = {}
    #: Sessions must have a UUID and are found again only from the directory of their start.
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
        """The first sign of life."""
        raise NotImplementedError

    def text_line(self, text: str) -> bytes:
        """One whole output line that carries `text`."""
        raise NotImplementedError

    def say(self, text: str) -> None:
        """A text of the model."""
        self.last_text = text
        self.out.write(self.text_line(text))

    def tool_started(self, name: str, arguments: dict[str, Any]) -> None:
        """A tool call begins."""
        raise NotImplementedError

    def tool_finished(self, output: str, *, exit_code: int) -> None:
        """The tool call that is open ends, with what it printed."""
        raise NotImplementedError

    def retry_announced(
        self, *, delay_s: float, attempt: int, max_retries: int, error_status: int, error: str
    ) -> None:
        """The CLI says that it tries again, and when."""
        raise NotImplementedError

    def use(self, *, input_tokens: int, output_tokens: int, cache_read_tokens: int, cost_usd: float) -> None:
        """Count tokens and money; shown where the CLI shows them."""
        raise NotImplementedError

    def rate_limited(self, text: str) -> None:
        """The model refuses: shown as the CLI does it, the final result included."""
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
        """The final word. Returns whether it reports an error."""
        raise NotImplementedError

    def interrupted(self) -> int:
        """The last words after an interrupt by the user, and the exit status that follows."""
        raise NotImplementedError


def dialect_class(name: str) -> type[Dialect]:
    """The dialect of a name."""
    from importlib import import_module

    module, attribute = DIALECTS[name]
    return getattr(import_module("holdfast.testing.agent." + module), attribute)
