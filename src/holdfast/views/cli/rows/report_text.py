"""A report as Markdown text."""

from __future__ import annotations

from holdfast import clock
from holdfast.views.text import amounts, describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Rows of each list without --detailed.
_ROWS = 10
#: Tools named in the statistics.
_TOOLS = 6


def render(facts: dict[str, Any], *, detailed: bool) -> str:
    """The facts of `report.gather` as text."""
    limit = None if detailed else _ROWS
    keeper = facts["keeper"]
    keeper_state = (
        f"process {keeper['pid']}" if keeper else "not running" + (" (down)" if facts["down"] else "")
    )
    counts = ", ".join(f"{count} {state}" for state, count in sorted(facts["counts"].items())) or "none"
    state = [f"keeper: {keeper_state}", f"tasks: {counts}", *(f"! {line}" for line in facts["attention"])]
    active, queue, ended, interrupts = facts["active"], facts["queue"], facts["ended"], facts["interrupts"]
    parts = [
        f"# holdfast, {amounts.minute(facts['at'])}",
        f"{facts['home']}, since {amounts.minute(facts['since'])}",
        _section("State", state),
        _section("Active", [_active_line(row, detailed=detailed) for row in active], limit),
        _section(f"Queue ({len(queue)})", [_queue_line(row) for row in queue], limit),
        _section(f"Ended ({len(ended)})", [_ended_line(row) for row in ended], limit),
        _section(f"Interrupts ({len(interrupts)})", [_interrupt_line(row) for row in interrupts], limit),
        _section("Statistics", _statistics(facts["statistics"])),
    ]
    if detailed:
        parts.append(_section("All-time statistics", _statistics(facts["statistics_of_all"])))
    return "\n\n".join(parts)


def _section(title: str, lines: list[str], limit: int | None = None) -> str:
    shown = lines if limit is None else lines[:limit]
    more = [f"… and {len(lines) - len(shown)} more (--detailed)"] if len(shown) < len(lines) else []
    # An agent's reason may have several lines; a list item has one.
    items = [line.replace("\n", " ") for line in [*shown, *more]] or ["none"]
    return "\n".join([f"## {title}", "", *(f"- {line}" for line in items)])


def _active_line(row: dict[str, Any], *, detailed: bool) -> str:
    wakes = f", wakes {amounts.minute(row['wake_at'])}" if row["wake_at"] else ""
    line = f"{row['task_id']}  {row['status']}, {row['agent']}, {clock.words(row['elapsed_s'])}{wakes}"
    return f"{line}: {row['last_line']}" if detailed and row["last_line"] else line


def _queue_line(row: dict[str, Any]) -> str:
    reason = f": {row['reason']}" if row["reason"] else ""
    return f"{row['task_id']}  {row['state']} since {amounts.minute(row['since'])}{reason}"


def _ended_line(row: dict[str, Any]) -> str:
    cost = "" if row["cost_usd"] is None else f", ${row['cost_usd']:.2f}"
    why = row["concerns"] if row["status"] == "completed" else row["reason"]
    reason = f": {why}" if why else ""
    took = clock.words(row["took_s"])
    return f"{row['finished_at'][11:16]}  {row['task_id']}  {row['status']} after {took}{cost}{reason}"


def _interrupt_line(row: dict[str, Any]) -> str:
    state = f"resolved {row['resolved_at'][11:16]}" if row["resolved_at"] else "open"
    return f"{row['at'][11:16]}  {row['task_id']}  {state}: {row['reason']}{describe.answer(row)}"


def _statistics(statistics: dict[str, Any]) -> list[str]:
    average, tools = statistics["average_duration_s"], statistics["tool_usage"]
    names = ", ".join(f"{name} {count}" for name, count in list(tools["breakdown"].items())[:_TOOLS])
    return [
        f"{statistics['ended']} ended, {statistics['completed']} completed"
        + _percent(statistics["success_rate"], " ({})"),
        amounts.plural(statistics["interrupts"], "interrupt")
        + _percent(statistics["interrupt_rate"], ", in {} of tasks")
        + f"; {amounts.plural(statistics['retries'], 'retry')}",
        f"{amounts.plural(statistics['iterations_per_hour'] or 0, 'task')} an hour, "
        + ("no duration yet" if average is None else f"{clock.words(average)} on average"),
        amounts.usage(statistics["api_usage"]),
        amounts.plural(tools["total"], "tool call") + (f": {names}" if names else ""),
    ]


def _percent(rate: float | None, form: str) -> str:
    return "" if rate is None else form.format(f"{rate * 100:.0f} %")
