"""The summary of a task's events as rows of text."""

from __future__ import annotations

from holdfast import clock
from holdfast.views.cli.rows.fact_rows import named_rows
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.attempt_numbers import AttemptNumbers


def rows(summary: dict[str, Any], numbers: AttemptNumbers) -> list[tuple[str, str]]:
    """Rows of name and text of `facts.event_summary`; a row without a name continues the one before."""
    turns = f", {amounts.plural(summary['turns'], 'turn')}" if summary["turns"] else ""
    first, last = amounts.second(summary["first_at"]), amounts.second(summary["last_at"])
    trouble = [
        amounts.plural(summary["errors"], "error"),
        amounts.plural(summary["retries"], "retry"),
        amounts.plural(summary["interrupts"], "interrupt"),
    ]
    return [
        ("task", summary["task_id"]),
        ("state", summary["status"]),
        ("span", f"{first} to {last} ({clock.duration_text(summary['span_s'])})"),
        ("active", f"{clock.duration_text(summary['active_s'])}{amounts.in_runs(summary)}"),
        ("events", str(sum(summary["events"].values()))),
        ("messages", f"{summary['messages']}{turns}"),
        ("usage", amounts.usage(summary["usage"])),
        ("trouble", ", ".join(trouble)),
        *named_rows("attempts", [_attempt(attempt, numbers) for attempt in summary["attempts"]]),
        *named_rows(
            "tools", [_tool(name, tool) for name, tool in summary["tool_usage"]["breakdown"].items()]
        ),
    ]


def _attempt(attempt: dict[str, Any], numbers: AttemptNumbers) -> str:
    lived = f" after {clock.duration_text(attempt['lived_s'])}" if attempt["lived_s"] is not None else ""
    outcome = f"{attempt['outcome'] or 'open'}{lived}"
    calls = amounts.plural(attempt["tool_calls"], "tool call")
    return f"{numbers.shown(attempt['attempt'])} {attempt['stage']} ({attempt['mode']}): {outcome}, {calls}"


def _tool(name: str, tool: dict[str, Any]) -> str:
    failed = f", {tool['errors']} failed" if tool["errors"] else ""
    return f"{name}  {tool['calls']}{failed}, {clock.duration_text(tool['seconds'])}"
