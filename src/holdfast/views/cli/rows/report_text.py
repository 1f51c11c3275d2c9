"""A report as text, as Markdown or as a page of HTML: sections of lines, rendered in three ways."""

from __future__ import annotations

import re

from holdfast import clock
from holdfast.model.record import Record
from holdfast.views.text import amounts, describe
from holdfast.views.text.fit_text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Rows of the queue without --detailed.
_ROWS = 10
#: Tools named in the statistics.
_TOOLS = 6
#: Characters that mean something in Markdown.
_SPECIAL = frozenset("\\`*_{}[]<>#|~!")
#: Commands in a line: in quotes, or what to type next, before what it does.
_COMMAND = re.compile(r"'(?P<quoted>holdfast [^']+)'|(?<=→ )(?P<next>holdfast .+?)(?= \([^()]*\)$|$)")
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color:#1a1a1a;background:#fff}h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}"
    "li{margin:.3rem 0;overflow-wrap:anywhere}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#111}}"
)


class Section(Record):
    """A heading and its lines."""

    title: str
    lines: list[str]


def render(facts: dict[str, Any], *, detailed: bool) -> str:
    """The facts of `report.gather` as text for a terminal."""
    return _joined(facts, sections(facts, detailed=detailed), lambda text: text)


def markdown(facts: dict[str, Any], *, detailed: bool) -> str:
    """The same as Markdown in which no text of an agent is markup, and commands are code."""
    return _joined(facts, sections(facts, detailed=detailed), _as_markdown)


def html(facts: dict[str, Any], *, detailed: bool) -> str:
    """The same as a page that needs no other file, loads nothing and runs no script."""
    from html import escape

    parts = [
        f"<h2>{escape(each.title)}</h2>\n<ul>\n"
        + "\n".join(f"<li>{escape(line)}</li>" for line in _items(each))
        + "\n</ul>"
        for each in sections(facts, detailed=detailed)
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(_title(facts))}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(_title(facts))}</h1>\n<p>{escape(_place(facts))}</p>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def sections(facts: dict[str, Any], *, detailed: bool) -> list[Section]:
    """What needs a person first, then results, then the rest. Only the queue is shortened."""
    keeper = facts["keeper"]
    keeper_state = (
        f"process {keeper['pid']}" if keeper else "not running" + (" (down)" if facts["down"] else "")
    )
    counts = amounts.by_state(facts["counts"]) or "none"
    state = [f"keeper: {keeper_state}", f"tasks: {counts}", *(f"! {line}" for line in facts["attention"])]
    removed_usd: float | None = facts["removed_usd"]
    needs, ended, active = facts["needs"], facts["ended"], facts["active"]
    queue = facts["queue"]
    # Those that are open need you.
    interrupts = [row for row in facts["interrupts"] if row["resolved_at"]]
    told = {need["task_id"] for need in needs}
    waiting = [_queue_line(row) for row in queue]
    if not detailed and len(waiting) > _ROWS:
        waiting = [*waiting[:_ROWS], f"… and {len(waiting) - _ROWS} more (--detailed)"]
    found = [
        Section(title=f"Needs you ({len(needs)})", lines=[*map(_need_line, needs), *_how_to_leave(facts)]),
        Section(
            title=f"Results ({len(ended)})",
            lines=[_ended_line(row, is_told=row["task_id"] in told) for row in ended],
        ),
        Section(
            title=f"Working ({len(active)})", lines=[_active_line(row, detailed=detailed) for row in active]
        ),
        Section(title=f"Queue ({len(queue)})", lines=waiting),
        Section(title=f"Resolved ({len(interrupts)})", lines=[_interrupt_line(row) for row in interrupts]),
        *_takeovers(facts["takeovers"]),
        *_schedules(facts["schedules"]),
        Section(title="State", lines=state),
        Section(title="Statistics (archive included)", lines=_statistics(facts["statistics"], removed_usd)),
    ]
    if detailed:
        found.append(
            Section(title="All-time statistics", lines=_statistics(facts["statistics_of_all"], removed_usd))
        )
    return found


def _title(facts: dict[str, Any]) -> str:
    return f"holdfast, {amounts.minute(facts['at'])}"


def _place(facts: dict[str, Any]) -> str:
    return f"{facts['home']}, since {amounts.minute(facts['since'])}"


def _items(section: Section) -> list[str]:
    # An agent's reason may have several lines, or characters that change their order; a list item has one.
    return [printable(line) for line in section.lines] or ["none"]


def _joined(facts: dict[str, Any], found: list[Section], escape: Callable[[str], str]) -> str:
    parts = [f"# {_title(facts)}", escape(_place(facts))]
    parts += [
        "\n".join([f"## {each.title}", "", *(f"- {escape(line)}" for line in _items(each))]) for each in found
    ]
    return "\n\n".join(parts)


def _as_markdown(text: str) -> str:
    parts, at = list[str](), 0
    for found in _COMMAND.finditer(text):
        parts += [_escaped(text[at : found.start()]), _code(found["quoted"] or found["next"])]
        at = found.end()
    return "".join([*parts, _escaped(text[at:])])


def _code(command: str) -> str:
    """A code span. Within it, nothing is markup but as many backticks as it begins with."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", command)), default=0))
    return f"{fence}{command}{fence}" if len(fence) == 1 else f"{fence} {command} {fence}"


def _escaped(text: str) -> str:
    return "".join(f"\\{char}" if char in _SPECIAL else char for char in text)


def _how_to_leave(facts: dict[str, Any]) -> list[str]:
    """A failure whose log was read stays there: reading changes nothing."""
    ended = {row["task_id"] for row in facts["ended"]}
    if not any(need["task_id"] in ended for need in facts["needs"]):
        return []
    return ["(retry, apply, archive or rm takes an ended task off this list; so do 24 hours)"]


def _need_line(row: dict[str, Any]) -> str:
    until = f" until {amounts.hour(row['until'])}" if row["until"] else ""
    text = f"{until}: {row['text']}" if row["text"] else until
    # Some texts name what it is, or the command.
    kind = "" if row["kind"] in row["text"].partition(":")[0].split() else row["kind"]
    what = f"{kind}{text}" if kind else text.removeprefix(": ")
    command = f" → {row['next']} ({row['does']})" if row["next"] and f"'{row['next']}'" not in text else ""
    return f"{row['task_id'] or 'the queue'}  {what}{command}"


def _active_line(row: dict[str, Any], *, detailed: bool) -> str:
    wakes = f", wakes {amounts.hour(row['wake_at'])}" if row["wake_at"] else ""
    line = (
        f"{row['task_id']}  {row['status']}, {row['agent']}, {clock.duration_text(row['elapsed_s'])}{wakes}"
    )
    line += f", {row['waits']}" if row["waits"] else ""
    return f"{line}: {row['last_line']}" if detailed and row["last_line"] else line


def _queue_line(row: dict[str, Any]) -> str:
    reason = f": {row['reason']}" if row["reason"] else ""
    return f"{row['task_id']}  {row['state']} since {amounts.hour(row['since'])}{reason}"


def _ended_line(row: dict[str, Any], *, is_told: bool) -> str:
    """`is_told`: it needs you, so why, and what to do, is said there."""
    known = amounts.dollars(row["cost_usd"], is_partial=bool(row.get("unpriced_calls")))
    cost = known + amounts.in_runs(row) if known else "cost unknown" if row["paid_calls"] else ""
    took = clock.duration_text(row["took_s"])
    if (row.get("waited_s") or 0.0) >= 1.0:
        took += f" (waited {clock.duration_text(row['waited_s'])})"
    parts = [f"{row['status']} after {took}"]
    counts = ((row["repairs"], "repair"), (row["retries"], "retry"))
    parts += [amounts.plural(count, name) for count, name in counts if count]
    parts += [cost, _changed(row), row["applied"], row["accepted"]]
    line = f"{_hour(row['finished_at'])}  {row['task_id']}  {', '.join(part for part in parts if part)}"
    why = row["concerns"] if row["status"] == "completed" else row["reason"]
    said = describe.without_headings(row["last_words"] or "")
    words = f"; “{said}”" if said and said.lstrip("- ") not in (why or "") else ""
    if is_told:
        return f"{line}{words}"
    # That the log can be read goes without saying.
    step = row["next"] if not row["next"].startswith("holdfast logs ") else ""
    return (f"{line}: {why}" if why else line) + words + (f" → {step}" if step else "")


def _changed(row: dict[str, Any]) -> str:
    """`holdfast/fix (1 file changed)`, of a task with a worktree."""
    if not row["branch"] or row["diffstat"] == "no changes":
        return row["diffstat"] or ""
    return f"{row['branch']} ({row['diffstat'] or 'unknown changes'})"


def _interrupt_line(row: dict[str, Any]) -> str:
    answer = f" “{row['answer']}”" if row["answer"] else ""
    how = f"{row['how'] or 'resolved'}, {_hour(row['resolved_at'])}"
    return f"{_hour(row['at'])}  {row['task_id']}  {row['reason']}{answer} ({how})"


def _takeovers(rows: list[dict[str, Any]]) -> list[Section]:
    """Nothing if no session was taken over, as on most days."""
    return [Section(title=f"Takeovers ({len(rows)})", lines=list(map(_takeover_line, rows)))] if rows else []


def _schedules(rows: list[dict[str, Any]]) -> list[Section]:
    """Nothing if there are no schedules, as in most homes."""
    lines = [
        f"{row['name']}  every {row['every']}, next {amounts.hour(row['next_at'])}"
        f" → holdfast queue rm {row['name']} (end it)"
        for row in rows
    ]
    return [Section(title=f"Schedules ({len(rows)})", lines=lines)] if rows else []


def _takeover_line(row: dict[str, Any]) -> str:
    state = (
        f"{describe.takeover_end(row['how'])} {_hour(row['ended_at'])}" if row["ended_at"] else "not ended"
    )
    changed = f", {amounts.plural(row['files'], 'file')} changed" if row["files"] else ""
    return (
        f"{_hour(row['at'])}  {row['task_id']}  {row['agent']} by {row['by'] or 'a person'}: {state}{changed}"
    )


def _hour(at: str) -> str:
    return clock.local(at, "%H:%M")


def _statistics(statistics: dict[str, Any], removed_usd: float | None) -> list[str]:
    average, tools = statistics["average_duration_s"], statistics["tool_usage"]
    used = statistics["api_usage"]
    names = ", ".join(f"{name} {count}" for name, count in list(tools["breakdown"].items())[:_TOOLS])
    return [
        f"{statistics['ended']} ended, {statistics['completed']} completed"
        + _percent(statistics["success_rate"], " ({})"),
        amounts.plural(statistics["interrupts"], "interrupt")
        + _percent(statistics["interrupt_rate"], ", in {} of tasks")
        + f"; {amounts.plural(statistics['retries'], 'retry')}",
        f"{amounts.plural(round(statistics['iterations_per_hour'] or 0, 1), 'task')} an hour, "
        + ("no duration yet" if average is None else f"{clock.duration_text(average)} on average"),
        amounts.usage(used, paid_calls=used["paid_calls"]) + amounts.without_removed(removed_usd),
        amounts.plural(tools["total"], "tool call") + (f": {names}" if names else ""),
    ]


def _percent(rate: float | None, form: str) -> str:
    return "" if rate is None else form.format(f"{rate * 100:.0f} %")
