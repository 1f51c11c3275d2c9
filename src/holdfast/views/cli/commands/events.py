"""holdfast events: show a task's journal, or a summary of it."""

from __future__ import annotations

import json
import sys

from holdfast import clock, paths
from holdfast.errors import NotFound, UsageError
from holdfast.model.analysis import TIMELINE, Analysis
from holdfast.model.attempt_numbers import AttemptNumbers
from holdfast.model.events import EVENTS
from holdfast.packet import load, metrics
from holdfast.store.layout import Home, Packet
from holdfast.views import option_values
from holdfast.views.cli.follow import events as journal_events
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.rows import event_summary as summary_rows
from holdfast.views.cli.show import out, user_file, wrapped_table
from holdfast.views.facts import event_summary, task_list
from holdfast.views.text import amounts, event_lines, suggest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

COMMAND = Command(
    name="events",
    summary="Show a task's journal, or a summary of it.",
    description="Prints one line per event. Works for archived tasks, too.",
    examples=(
        "holdfast events 20260131-fix --timeline",
        "holdfast events --latest --summary",
        "holdfast events 20260131-fix --type agent.tool_ --json | jq .name",
        "holdfast events 20260131-fix --errors --export errors.jsonl",
    ),
    arguments=(Argument(dest="task", metavar="[TASK]", required=False, completes="task"),),
    options=(
        Option(flags=("--latest",), dest="latest", kind="flag", help="Show the newest task."),
        Option(
            flags=("--summary",), dest="summary", kind="flag", help="Show counts, attempts, tools, usage."
        ),
        Option(flags=("--tools",), dest="tools", kind="flag", help="Show tool calls with their durations."),
        Option(flags=("--errors",), dest="errors", kind="flag", help="Show errors."),
        Option(
            flags=("--timeline",), dest="timeline", kind="flag",
            help="Show states, attempts, stages, requests.",
        ),
        Option(
            flags=("--type",), dest="type", metavar="TYPE",
            help="Only events of this type, or a family such as 'agent.'.",
        ),
        Option(
            flags=("-f", "--follow"), dest="follow", kind="flag", help="Follow until the task has ended."
        ),
        Option(
            flags=("--export",), dest="export", metavar="FILE", help="Write JSON lines to a file.",
            completes="file",
        ),
        JSON.evolve(help="Print JSON, one line per event, call or error."),
    ),
)  # fmt: skip


def run(values: dict[str, Any]) -> int:
    """Print the selected view."""
    home = Home(paths.home())
    packet = _packet(home, values)
    view = option_values.only_one(values, "summary", "tools", "errors", "timeline")
    if values["follow"] and (view in ("summary", "tools", "errors") or values["export"]):
        raise UsageError(
            "--follow cannot be combined with --summary, --tools, --errors or --export",
            hint="follow with --timeline, --type or neither",
        )
    if values["type"] and view in ("summary", "tools", "errors"):
        raise UsageError(f"--type and --{view} exclude each other", hint="give one of them")
    if values["type"]:
        _check_type(packet, values["type"])
    if view in (None, "timeline"):
        numbers = AttemptNumbers()
        rows = _events(packet, numbers, follow=values["follow"], view=view, kind=values["type"])
        return _print(rows, numbers, values)
    analysis = metrics.analyse(packet)
    if view == "summary":
        return _print_summary(packet, analysis, values)
    rows = iter(analysis.calls if view == "tools" else analysis.errors)
    return _print(rows, analysis.numbers, values, view=view)


def _packet(home: Home, values: dict[str, Any]) -> Packet:
    if values["latest"]:
        if values["task"]:
            raise UsageError("TASK and --latest exclude each other", hint="give one of them")
        rows = task_list.tasks(home, everything=False, state=None)
        if not rows:
            raise NotFound(f"no tasks in {home.path}")
        return home.packet(rows[0]["task_id"])
    if not values["task"]:
        raise UsageError("missing TASK", hint="'holdfast events TASK', or --latest")
    packet = load.find(home, values["task"], archived=True)
    load.require_whole(packet)
    return packet


def _check_type(packet: Packet, kind: str) -> None:
    """Raises UsageError for a type that is neither known nor in the journal (of a newer version)."""
    if any(_matches(name, kind) for name in EVENTS):
        return
    if any(_matches(str(event.get("type")), kind) for event in metrics.lines(packet.journal)):
        return
    families = tuple(dict.fromkeys(f"{name.partition('.')[0]}." for name in EVENTS))
    hint = suggest.did_you_mean(kind, (*families, *EVENTS)) or f"families: {', '.join(families)}"
    raise UsageError(f"--type: no such event type: {kind!r}", hint=hint)


def _matches(name: str, kind: str) -> bool:
    return name == kind or (kind.endswith((".", "_")) and name.startswith(kind))


def _events(
    packet: Packet, numbers: AttemptNumbers, *, follow: bool, view: str | None, kind: str | None
) -> Iterator[dict[str, Any]]:
    for event in journal_events.read(packet, follow=follow):
        numbers.apply(event)
        name = str(event.get("type"))
        if view == "timeline" and name not in TIMELINE:
            continue
        if kind is None or _matches(name, kind):
            yield event


def _print(
    rows: Iterator[dict[str, Any]],
    numbers: AttemptNumbers,
    values: dict[str, Any],
    *,
    view: str | None = None,
) -> int:
    if values["export"]:
        return _export(rows, values["export"])
    if not values["json"] and view in ("tools", "errors"):
        return _table(list(rows), numbers, view)
    for row in rows:
        if values["json"]:
            out.data(row)
        else:
            out.say(event_lines.line(row, numbers), rest=" " * event_lines.DETAIL_COLUMN)
            if values["follow"]:
                sys.stdout.flush()
    return 0


def _export(rows: Iterator[dict[str, Any]], path: str) -> int:
    user_file.check(path)
    data = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    user_file.write(path, "".join(data).encode("utf-8", "backslashreplace"))
    if path != user_file.STDOUT:
        out.talk(f"wrote {amounts.plural(len(data), 'line')} to {path}")
    return 0


def _table(rows: list[dict[str, Any]], numbers: AttemptNumbers, view: str) -> int:
    if not rows:
        out.talk("no tool calls" if view == "tools" else "no errors")
    elif view == "tools":
        wrapped_table.show(
            ("TIME", "ATTEMPT", "TOOK", "RESULT", "TOOL", "SUMMARY"),
            [
                (
                    clock.local(row["at"], "%H:%M:%S"), numbers.shown(row["attempt"]),
                    "-" if row["seconds"] is None else clock.duration_text(row["seconds"]),
                    _result(row), row["tool"], row["summary"],
                )
                for row in rows
            ],
        )  # fmt: skip
    else:
        wrapped_table.show(
            ("TIME", "ATTEMPT", "ERROR", "MESSAGE"),
            [
                (
                    clock.local(row["at"], "%H:%M:%S"),
                    numbers.shown(row["attempt"]),
                    row["kind"],
                    row["message"],
                )
                for row in rows
            ],
        )
    sys.stdout.flush()
    return 0


def _result(call: dict[str, Any]) -> str:
    if call["is_error"] is None:
        return "open"
    return "denied" if call["denied"] else "failed" if call["is_error"] else "ok"


def _print_summary(packet: Packet, analysis: Analysis, values: dict[str, Any]) -> int:
    summary = event_summary.summarize(packet, analysis)
    if values["export"]:
        return _export(iter([summary]), values["export"])
    if values["json"]:
        out.data(summary)
        return 0
    for name, text in summary_rows.rows(summary, analysis.numbers):
        out.fact(name, text, at=10)
    return 0
