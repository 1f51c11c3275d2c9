"""Compute figures from the packets. metrics.json is derived, and also serves as a cache.

A journal only grows. So the figures of an ended task are valid as long as its journal has the same size, and
a home with thousands of ended tasks costs one stat per task.
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


def gather(home: Home, *, with_archive: bool = True) -> list[dict[str, Any]]:
    """The figures of every task, optionally with archived ones, each with the size of its journal."""
    known = _known(home)
    packets = [home.packet(task_id) for task_id in load.task_ids(home)]
    if with_archive:
        packets += [home.archived(task_id) for task_id in load.archived_ids(home)]
    figures: list[dict[str, Any]] = []
    for packet in packets:
        try:
            size = _journal_bytes(packet)
            old = known.get(packet.task_id)
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


def _journal_bytes(packet: Packet) -> int | None:
    """The size of its journal; None if only the summary of an archived task is left."""
    if packet.path.startswith(f"{packet.home.archive}/") and load.is_stripped(packet):
        return None
    return os.stat(packet.journal).st_size


def report(home: Home, *, held: Mapping[str, str]) -> dict[str, Any]:
    """All figures, as in metrics.json. `held`: tasks that the queue holds, and their states in it."""
    tasks, now = gather(home), clock.now()
    return {
        "schema": metrics.SCHEMA,
        "at": clock.iso(now),
        "home": metrics.of_home(tasks, now, held=held),
        "last_24h": metrics.of_home(tasks, now, since=now - metrics.DAY_S, held=held),
        "tasks": {task["task_id"]: task for task in tasks},
    }


def refresh(home: Home, *, held: Mapping[str, str]) -> dict[str, Any]:
    """Compute all figures, and write metrics.json if possible."""
    figures = report(home, held=held)
    try:
        atomic.write_json(home.metrics, figures, durable=False)
    except HoldfastError:
        return figures  # a read-only home
    return figures


def _known(home: Home) -> dict[str, dict[str, Any]]:
    try:
        data = atomic.read_json(home.metrics) or {}
    except HoldfastError:
        return {}
    tasks: Any = data.get("tasks") if data.get("schema") == metrics.SCHEMA else None
    return tasks if isinstance(tasks, dict) else {}  # pyright: ignore[reportUnknownVariableType]
