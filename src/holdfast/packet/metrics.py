"""Compute figures from the packets. metrics.json is derived, and also serves as a cache.

A journal only grows. So the figures of an ended task are valid as long as its journal has the same size, and
was not written since (another task may have the same id): a home with thousands of ended tasks costs one stat
per task.

Only the counters of removed tasks (`removed`) are not derived. A task that is in the last metrics.json but in
the home no more is added to them when the next one replaces it: so it is counted once, wherever a command is
killed. A task of which no metrics.json knew was never part of a counter.
"""

from __future__ import annotations

import json
import os

from holdfast import clock, files
from holdfast.errors import HoldfastError
from holdfast.model import metrics
from holdfast.model.analysis import Analysis
from holdfast.packet import load
from holdfast.store import atomic
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any


def lines(path: str, *, start: int = 0, end: int | None = None) -> Iterator[dict[str, Any]]:
    """The lines of a journal between two offsets, as objects; incomplete and invalid lines are skipped."""
    for _, line in placed_lines(path, start=start, end=end):
        yield line


def placed_lines(
    path: str, *, start: int = 0, end: int | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The same, each with the offset after it."""
    try:
        with atomic.stream(path) as file:
            at = file.seek(start)
            for raw in files.lines(file):
                at += len(raw)
                if not raw.endswith(b"\n") or (end is not None and at > end):
                    return
                try:
                    data = json.loads(raw)
                except (ValueError, RecursionError):
                    continue
                if isinstance(data, dict):
                    yield at, data
    except FileNotFoundError:
        return
    except OSError as error:
        atomic.storage_failed(error, f"cannot read {path}")


def analyse(packet: Packet) -> Analysis:
    """The analysis of a task's journal."""
    analysis = Analysis()
    for line in lines(packet.journal):
        analysis.apply(line)
    return analysis


def of_packet(packet: Packet) -> dict[str, Any]:
    """The figures of one task. Raises NotFound, CorruptFile."""
    return metrics.of_task(load.read_manifest(packet), analyse(packet))


def gather(home: Home) -> list[dict[str, Any]]:
    """The figures of every task, with archived ones, each with the size of its journal."""
    return _gather(home, _last(home))


def _gather(home: Home, last: dict[str, Any]) -> list[dict[str, Any]]:
    known, last_at = _known(last), str(last.get("at"))
    packets = [home.packet(task_id) for task_id in load.task_ids(home)]
    packets += [home.archived(task_id) for task_id in load.archived_ids(home)]
    figures: list[dict[str, Any]] = []
    for packet in packets:
        try:
            journal = _journal_stat(packet)
            size = journal.st_size if journal is not None else None
            old = known.get(packet.task_id)
            if journal is not None and clock.iso(journal.st_mtime) > last_at:
                old = None
            # The manifest of a live task may be behind its journal.
            is_known = old is not None and old.get("finished_at") and size in (None, old.get("journal_bytes"))
            # An older version counted the active time of the last run only.
            if old is not None and is_known and "runs" in old:
                figures.append(old)
            elif old is not None and is_known and size is None:
                figures.append({**of_packet(packet), **old})
            else:
                figures.append({**of_packet(packet), "journal_bytes": size or 0})
        except (OSError, HoldfastError, KeyError, ValueError):
            continue  # removed in the meantime, or unreadable: `status` and `show` report it
    return figures


def _journal_stat(packet: Packet) -> os.stat_result | None:
    """Of its journal; None if only the summary of an archived task is left."""
    if packet.path.startswith(f"{packet.home.archive}/") and load.is_stripped(packet):
        return None
    return os.stat(packet.journal)


def report(home: Home, *, held: Mapping[str, str]) -> dict[str, Any]:
    """All figures, as in metrics.json. `held`: tasks that the queue holds, and their states in it."""
    last, now = _last(home), clock.now()
    tasks = _gather(home, last)
    tasks += _unread(home, last, tasks, now)
    return {
        "schema": metrics.SCHEMA,
        "at": clock.iso(now),
        "home": metrics.of_home(tasks, now, held=held),
        "last_24h": metrics.of_home(tasks, now, since=now - metrics.DAY_S, held=held),
        "tasks": {task["task_id"]: task for task in tasks},
        "removed": _removed(last, tasks, now),
    }


def _unread(
    home: Home, last: dict[str, Any], tasks: list[dict[str, Any]], now: float
) -> list[dict[str, Any]]:
    """Of tasks that cannot be read at the moment, what was known last."""
    read = {task["task_id"] for task in tasks}
    missing = {task_id: task for task_id, task in _known(last).items() if task_id not in read}
    if not missing:
        return []
    there = {*load.task_ids(home), *load.archived_ids(home)}
    found: list[dict[str, Any]] = []
    for task_id in there.intersection(missing):
        try:
            if missing[task_id]["task_id"] == task_id:
                metrics.of_home([missing[task_id]], now)
                found.append(missing[task_id])
        except (AttributeError, KeyError, TypeError, ValueError):
            continue  # an agent can write the file
    return found


def _removed(last: dict[str, Any], tasks: list[dict[str, Any]], now: float) -> dict[str, Any] | None:
    """The counters of all removed tasks, as far as they are known; null if there is none."""
    # An id may be that of another task by now.
    present = {(task["task_id"], task["started_at"]) for task in tasks}
    before: dict[str, Any] | None = last.get("removed")
    try:
        gone = [
            task for task in _known(last).values() if (task["task_id"], task["started_at"]) not in present
        ]
        if not gone and before is None:
            return None
        counters = metrics.counters(metrics.of_home(gone, now))
        return counters if before is None else metrics.added(counters, before)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None  # an agent can write the file


def refresh(home: Home, *, held: Mapping[str, str]) -> dict[str, Any]:
    """Compute all figures, and write metrics.json if possible."""
    figures = report(home, held=held)
    try:
        atomic.write_json(home.metrics, figures, durable=False)
    except HoldfastError:
        return figures  # a read-only home
    return figures


def _last(home: Home) -> dict[str, Any]:
    """The last metrics.json; empty if there is none that can be read."""
    try:
        data = atomic.read_json(home.metrics) or {}
    except HoldfastError:
        return {}
    return data if data.get("schema") == metrics.SCHEMA else {}


def _known(last: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The figures of each task in it."""
    tasks: Any = last.get("tasks")
    return tasks if isinstance(tasks, dict) else {}  # pyright: ignore[reportUnknownVariableType]
