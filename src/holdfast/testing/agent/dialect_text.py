"""Plain text, as any command prints it. Signals have their usual effect."""

from __future__ import annotations

from holdfast.testing.agent.dialect import Dialect
from holdfast.testing.agent.output import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class TextDialect(Dialect):
    """Lines of text on stdout, errors on stderr."""

    _tool = ""

    def begin(self) -> None:
        pass

    def text_line(self, text: str) -> bytes:
        return encode(text + "\n")

    def tool_started(self, name: str, arguments: dict[str, Any]) -> None:
        self._tool = name
        self.has_open_tool = True
        self.out.line(f"[tool] {name} started")

    def tool_finished(self, output: str, *, exit_code: int) -> None:
        self.has_open_tool = False
        if output:
            self.out.line(output)
        how = f"failed with exit code {exit_code}" if exit_code else "finished"
        self.out.line(f"[tool] {self._tool} {how}")

    def retry_announced(
        self, *, delay_s: float, attempt: int, max_retries: int, error_status: int, error: str
    ) -> None:
        self.out.line(
            f"retrying in {delay_s:g} s: {error} ({error_status}), attempt {attempt} of {max_retries}"
        )

    def use(self, **_: Any) -> None:
        pass  # plain text has no place for it, and an invented line could be taken for a real one

    def rate_limited(self, text: str) -> None:
        self.result(text=text, is_error=True)

    def result(
        self,
        *,
        text: str | None = None,
        subtype: str = "success",
        is_error: bool | None = None,
        errors: list[str] | None = None,
        **_: Any,
    ) -> bool:
        self.has_result = True
        if is_error is None:
            is_error = subtype != "success"
        if is_error:
            why = "; ".join(errors or []) or text or subtype
            self.out.line(f"error: {why}", 2)
        elif text:
            self.out.line(text)
        return is_error

    def interrupted(self) -> int:
        return 130
