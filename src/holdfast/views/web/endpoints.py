"""What pages may read. Each function reads files, in a thread, and returns data."""

from __future__ import annotations

from holdfast import __version__, clock
from holdfast.errors import HoldfastError, NotFound, UsageError
from holdfast.packet import load
from holdfast.views.facts import (
    detail,
    diff,
    figures,
    home_status,
    log,
    packet_files,
    queue_state,
    replay,
    task_list,
    timeline,
    usage,
)
from holdfast.views.facts.events import EventReader
from holdfast.views.facts.queue_places import QueuePlaces
from holdfast.views.output_refresh import refresh_once
from holdfast.views.text import describe
from holdfast.views.web import new_task
from holdfast.views.web.body import parse_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from holdfast.store.layout import Home, Packet

    Query = Mapping[str, str]
    Read = Callable[[Home, Query], Any]
    ReadTask = Callable[[Home, Packet, Query], Any]

#: Ended tasks of the board, and with `all`.
_ENDED, _ALL_ENDED = 100, 2000
_EVENTS_BYTES = 512 * 1024
_DAY_S = 86400.0
#: Days of the figures.
_DAYS = 30


def board(home: Home, query: Query) -> dict[str, Any]:
    """Rows of all live tasks and the newest of the ended ones. What matters most is at the end: if there are
    more than an answer can hold, it keeps that."""
    everything = query.get("all") == "1"
    rows = QueuePlaces(home).arrange(task_list.tasks(home, everything=True, state=None))
    shown: list[dict[str, Any]] = []
    most, ended = _ALL_ENDED if everything else _ENDED, 0
    for row in rows:
        if describe.group(row) == "ended":
            ended += 1
            if ended > most:
                continue
        shown.append(task_list.shown(home, row))
    shown.sort(key=lambda row: describe.GROUPS.index(row["group"]), reverse=True)
    return {
        "at": clock.iso_now(),
        "groups": describe.GROUPS,
        "rows": shown,
        "left_out": max(0, ended - most),
    }


def status(home: Home, query: Query) -> dict[str, Any]:
    """The state of the home."""
    return {**home_status.gather(home), "at": clock.iso_now(), "version": __version__}


def of_task(home: Home, packet: Packet, query: Query) -> dict[str, Any]:
    """Everything about a task, with its timeline."""
    found = detail.detail(home, packet.task_id).to_json()
    return {**found, "at": clock.iso_now(), "timeline": timeline.gather(packet)}


def usage_of(home: Home, packet: Packet, query: Query) -> dict[str, Any]:
    """Reports of usage."""
    return {"reports": usage.series(packet)}


def replay_of(home: Home, packet: Packet, query: Query) -> dict[str, Any]:
    """The task as it was at each moment."""
    return replay.gather(packet)


def log_of(home: Home, packet: Packet, query: Query) -> dict[str, Any]:
    """A window of the log: from byte `begin`, before byte `end`, or as it was `at` a time; else its end."""
    if "begin" in query:
        return log.window(packet, begin=_number(query, "begin"), limit=_number(query, "limit", 65536))
    if "at" in query:
        return log.window(packet, at=_time(query, "at"), limit=_number(query, "limit", 65536))
    if "end" not in query:
        refresh_once(packet)
    end = _number(query, "end", 1 << 60)
    return log.window(packet, end=end, limit=_number(query, "limit", 65536))


def search_in(home: Home, packet: Packet, query: Query) -> dict[str, Any]:
    """Lines of the log with a text."""
    text = query.get("text", "")
    return log.search(packet, text, begin=_number(query, "begin"), limit=200) if text else {"lines": []}


def diff_of(home: Home, packet: Packet, query: Query) -> dict[str, Any]:
    """What the task, or a stage of it, changed."""
    found = diff.diff(home, packet.task_id, stage=query.get("stage"), candidate=query.get("candidate"))
    return found.to_json()


def events_of(home: Home, packet: Packet, query: Query) -> dict[str, Any]:
    """Events of the journal from byte `begin` on, up to about half a megabyte. `end` is where they go on."""
    reader = EventReader(packet, offset=_number(query, "begin"))
    events: list[dict[str, Any]] = []
    end = reader.offset
    for place, event in reader.placed():
        events.append(event)
        if place - _number(query, "begin") > _EVENTS_BYTES:
            end = place
            break
        end = place
    return {"events": events, "end": end}


def file_of(home: Home, packet: Packet, query: Query) -> str:
    """The text of a file on the list of `packet_files`."""
    text, left_out = packet_files.read(packet, query.get("path", ""), limit=900 * 1024)
    return f"{text}\n… {left_out} bytes left out\n" if left_out else text


def form(home: Home, query: Query) -> dict[str, Any]:
    """What the form for a new task offers."""
    return new_task.form(home)


def queue(home: Home, query: Query) -> dict[str, Any]:
    """The queue, and how many tasks waited in it during the last day."""
    return queue_state.gather(home, since_s=_DAY_S)


def metrics(home: Home, query: Query) -> dict[str, Any]:
    """Figures of the home, by day and by agent."""
    return figures.gather(home, days=_DAYS)


READS: dict[str, Read] = {
    "tasks": board,
    "status": status,
    "form": form,
    "queue": queue,
    "metrics": metrics,
}
READS_OF_TASK: dict[str, ReadTask] = {
    "": of_task,
    "log": log_of,
    "search": search_in,
    "diff": diff_of,
    "events": events_of,
    "usage": usage_of,
    "replay": replay_of,
}


def packet_of(home: Home, task_id: str, *, archived: bool = True) -> Packet:
    """The packet of exactly this task, not of one whose id begins so. Raises NotFound."""
    packet = load.find(home, task_id, archived=archived)
    if packet.task_id != task_id:
        raise NotFound(f"no task {task_id}")
    return packet


def status_of(error: HoldfastError) -> int:
    """The status of an answer that is an error."""
    return {"not-found": 404, "usage": 400, "unanswered": 504}.get(
        error.code, 400 if error.exit_status == 2 else 409
    )


def _time(query: Query, name: str) -> str:
    """A time as in the journal. Raises UsageError."""
    try:
        return clock.iso(clock.parse_iso(query.get(name, "")))
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{name} is not a time", hint="for example 2026-01-31T12:00:00Z") from error


def _number(query: Query, name: str, default: int = 0) -> int:
    number = parse_number(query.get(name, ""))
    return default if number is None else number
