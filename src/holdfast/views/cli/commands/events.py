"""holdfast events: what happened in a task, event by event or summed up."""

from __future__ import annotations

import json
import os
import sys

from holdfast import clock, paths
from holdfast.errors import NoSuchDirectory, NotFound, UsageError
from holdfast.model.analysis import TIMELINE, Analysis
from holdfast.model.events import EVENTS
from holdfast.model.status import ENDS
from holdfast.packet import load, metrics
from holdfast.store import atomic
from holdfast.store.layout import Home, Packet
from holdfast.views.cli.parse import option_values, suggest
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.show import amounts, event_lines, out, wrapped_table
from holdfast.views.wake import Waker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_PAUSE_S = 0.1

COMMAND = Command(
    name="events",
    summary="Show what happened in a task: its journal, or what it comes to.",
    description="Without options, every event, a line each. --summary, --tools, --errors and --timeline are views of the "
    "same. Archived tasks can be read too.",
    examples=(
        "holdfast events 20260131-fix --timeline",
        "holdfast events --latest --summary",
        "holdfast events 20260131-fix --type agent.tool_ --json | jq .name",
        "holdfast events 20260131-fix --errors --export errors.jsonl",
    ),
    arguments=(Argument(dest="task", metavar="[TASK]", required=False, completes="task"),),
    options=(
        Option(flags=("--latest",), dest="latest", kind="flag", help="Of the task that was made last."),
        Option(flags=("--summary",), dest="summary", kind="flag", help="Counts, attempts, tools, usage."),
        Option(flags=("--tools",), dest="tools", kind="flag", help="Each tool call, and how long it took."),
        Option(flags=("--errors",), dest="errors", kind="flag", help="Everything that went wrong."),
        Option(flags=("--timeline",), dest="timeline", kind="flag", help="States, attempts, stages, requests."),
        Option(
            flags=("--type",), dest="type", metavar="TYPE", help="Only events of this type, or ('agent.') family."
        ),
        Option(flags=("-f", "--follow"), dest="follow", kind="flag", help="Go on until the task has ended."),
        Option(
            flags=("--export",), dest="export", metavar="FILE", help="Write JSON lines to a file instead.",
            completes="file",
        ),
        JSON.evolve(help="Print JSON: a line for each event or call, one object for the summary."),
    ),
)  # fmt: skip


def run(values: dict[str, Any]) -> int:
    """Print the chosen view."""
    home = Home(paths.home())
    packet = _packet(home, values)
    view = option_values.only_one(values, "summary", "tools", "errors", "timeline")
    if values["follow"] and (view in ("summary", "tools", "errors") or values["export"]):
        raise UsageError(
            "--follow shows events as they come, not what they come to",
            hint="leave out --summary, --tools, --errors and --export",
        )
    if values["type"] and view in ("summary", "tools", "errors"):
        raise UsageError(
            f"--type chooses events, and --{view} is made of all of them", hint="give one of them"
        )
    if values["type"]:
        _check_type(packet, values["type"])
    if view in (None, "timeline"):
        rows = _events(packet, follow=values["follow"], view=view, kind=values["type"])
        return _print(rows, values)
    found = metrics.analyse(packet)
    if view == "summary":
        return _summary(packet, found, values)
    return _print(iter(found.calls if view == "tools" else found.errors), values, view=view)


def _packet(home: Home, values: dict[str, Any]) -> Packet:
    if values["latest"]:
        if values["task"]:
            raise UsageError("a task and --latest were given", hint="give one of them")
        from holdfast.views.cli.commands.ls import tasks

        rows = tasks(home, everything=False, state=None)
        if not rows:
            raise NotFound(f"there is no task in {home.path}")
        return home.packet(rows[0]["task_id"])
    if not values["task"]:
        raise UsageError("no task was named", hint="'holdfast events TASK', or --latest")
    return load.find(home, values["task"], archived=True)


def _check_type(packet: Packet, kind: str) -> None:
    """Raises UsageError where no event can be meant; one of a newer version may be in the journal."""
    if any(_is_of(name, kind) for name in EVENTS):
        return
    if any(_is_of(str(event.get("type")), kind) for event in metrics.lines(packet.journal)):
        return
    families = tuple(dict.fromkeys(f"{name.partition('.')[0]}." for name in EVENTS))
    hint = suggest.did_you_mean(kind, (*families, *EVENTS)) or f"families of types are {', '.join(families)}"
    raise UsageError(f"--type: there is no event of type {kind!r}", hint=hint)


def _is_of(name: str, kind: str) -> bool:
    return name == kind or (kind.endswith((".", "_")) and name.startswith(kind))


def _events(packet: Packet, *, follow: bool, view: str | None, kind: str | None) -> Iterator[dict[str, Any]]:
    for event in _grown(packet, follow=follow):
        name = str(event.get("type"))
        if view == "timeline" and name not in TIMELINE:
            continue
        if kind is None or _is_of(name, kind):
            yield event


def _grown(packet: Packet, *, follow: bool) -> Iterator[dict[str, Any]]:
    """Every line, and with `follow` those that come, until the task has ended."""
    offset = 0
    waker = Waker()
    while True:
        # The end is looked for first: what was written before it is then read below.
        status = load.read_manifest(packet)["status"] if follow else ""
        is_over = not follow or (status in ENDS and os.path.exists(packet.task_done))
        end = _whole_lines(packet.journal)
        if end > offset:
            yield from metrics.lines(packet.journal, start=offset, end=end)
            offset = end
        if is_over:
            return
        waker.look(packet, status)
        clock.sleep(_PAUSE_S)


def _whole_lines(path: str) -> int:
    """The size of a journal without a last line that is still being written."""
    try:
        with open(path, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            while end > 0:
                start = max(0, end - 65536)
                file.seek(start)
                cut = file.read(end - start).rfind(b"\n")
                if cut >= 0:
                    return start + cut + 1
                end = start
    except FileNotFoundError:
        return 0
    return 0


def _print(rows: Iterator[dict[str, Any]], values: dict[str, Any], *, view: str | None = None) -> int:
    if values["export"]:
        return _export(rows, values["export"])
    if not values["json"] and view in ("tools", "errors"):
        return _table(list(rows), view)
    for row in rows:
        if values["json"]:
            out.data(row)
        else:
            out.say(event_lines.line(row), rest=" " * event_lines.DETAIL_COLUMN)
            if values["follow"]:
                sys.stdout.flush()
    return 0


def _export(rows: Iterator[dict[str, Any]], path: str) -> int:
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise NoSuchDirectory(
            f"cannot write {path}: there is no directory {folder}", hint="make it, or name a file elsewhere"
        )
    data = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    atomic.write(os.path.abspath(path), "".join(data).encode("utf-8", "backslashreplace"), durable=False)
    out.talk(f"{amounts.plural(len(data), 'line')} in {path}")
    return 0


def _table(rows: list[dict[str, Any]], view: str) -> int:
    if not rows:
        out.talk("no tool calls" if view == "tools" else "no errors")
    elif view == "tools":
        wrapped_table.show(
            ("TIME", "ATTEMPT", "TOOK", "HOW", "TOOL", "WHAT"),
            [
                (
                    row["at"][11:19], str(row["attempt"]),
                    "-" if row["seconds"] is None else clock.words(row["seconds"]),
                    _how(row), row["tool"], row["summary"],
                )
                for row in rows
            ],
        )  # fmt: skip
    else:
        wrapped_table.show(
            ("TIME", "ATTEMPT", "ERROR", "WHAT"),
            [(row["at"][11:19], str(row["attempt"] or "-"), row["kind"], row["message"]) for row in rows],
        )
    sys.stdout.flush()
    return 0


def _how(call: dict[str, Any]) -> str:
    if call["is_error"] is None:
        return "open"
    return "denied" if call["denied"] else "failed" if call["is_error"] else "ok"


def _summary(packet: Packet, found: Analysis, values: dict[str, Any]) -> int:
    manifest = load.read_manifest(packet)
    data = {
        "schema": "holdfast.event-summary/1",
        "task_id": manifest["task_id"],
        "status": manifest["status"],
        "agent": manifest.get("agent"),
        "usage": manifest.get("usage"),
        "active_s": manifest.get("active_s"),
        **found.to_json(),
    }
    if values["export"]:
        return _export(iter([data]), values["export"])
    if values["json"]:
        out.data(data)
        return 0
    for name, text in _facts(data):
        out.fact(name, text, at=10)
    return 0


def _facts(data: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("task", data["task_id"]),
        ("state", data["status"]),
        ("span", f"{data['first_at']} to {data['last_at']} ({clock.words(data['span_s'])})"),
        ("active", clock.words(data["active_s"] or 0.0)),
        ("events", str(sum(data["events"].values()))),
        (
            "messages",
            f"{data['messages']}" + (f", {amounts.plural(data['turns'], 'turn')}" if data["turns"] else ""),
        ),
        ("usage", amounts.usage(data["usage"])),
        (
            "trouble",
            f"{amounts.plural(data['errors'], 'error')}, {amounts.plural(data['retries'], 'retry')}, "
            f"{amounts.plural(data['interrupts'], 'interrupt')}",
        ),
    ]
    for at, attempt in enumerate(data["attempts"]):
        lived = f" after {clock.words(attempt['lived_s'])}" if attempt["lived_s"] is not None else ""
        rows.append(
            (
                "attempts" if at == 0 else "",
                f"{attempt['attempt']} {attempt['stage']} ({attempt['mode']}): {attempt['outcome'] or 'open'}{lived}, "
                f"{amounts.plural(attempt['tool_calls'], 'tool call')}",
            )
        )
    for at, (name, tool) in enumerate(data["tool_usage"]["breakdown"].items()):
        failed = f", {tool['errors']} failed" if tool["errors"] else ""
        rows.append(
            ("tools" if at == 0 else "", f"{name}  {tool['calls']}{failed}, {clock.words(tool['seconds'])}")
        )
    return rows
