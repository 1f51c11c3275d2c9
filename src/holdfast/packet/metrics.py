"""Gathering figures from the packets; metrics.json is derived, and doubles as a cache.

A journal only grows, so what was read of an ended task is still true while its journal has the same size: a look at a home with thousands of
ended tasks costs a stat for each.
"""

from __future__ import annotations

import json
import os

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model import metrics
from holdfast.model.analysis import Analysis
from holdfast.packet import load
from holdfast.store import atomic
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def lines(path: str, *, start: int = 0, end: int | None = None) -> Iterator[dict[str, Any]]:
    """The lines of a journal, from one byte to another, as objects; what is torn or none is passed over."""
    try:
        with open(path, "rb") as file:
            at = file.seek(start)
            for raw in file:
                at += len(raw)
                if not raw.endswith(b"\n") or (end is not None and at > end):
                    return
                try:
                    data = json.loads(raw)
                except ValueError:
                    continue
                if isinstance(data, dict):
                    yield data
    except FileNotFoundError:
        return
    except OSError as error:
        atomic.storage_failed(error, f"cannot read {path}")


def analyse(packet: Packet) -> Analysis:
    """The analysis of a task's journal."""
    found = Analysis()
    for line in lines(packet.journal):
        found.apply(line)
    return found


def of_packet(packet: Packet) -> dict[str, Any]:
    """The figures of one task. Raises NotFound, CorruptFile."""
    return metrics.of_task(load.read_manifest(packet), analyse(packet))


def gather(home: Home, *, with_archive: bool = True) -> list[dict[str, Any]]:
    """The figures of every task, archived ones too, each with the size of the journal that it was read from."""
    known = _known(home)
    packets = [home.packet(task_id) for task_id in load.task_ids(home)]
    if with_archive:
        packets += [home.archived(task_id) for task_id in load.archived_ids(home)]
    found: list[dict[str, Any]] = []
    for packet in packets:
        try:
            size = os.stat(packet.journal).st_size
            old = known.get(packet.task_id)
            # A task that has not ended may show less than its journal has by now.
            if old is not None and old.get("finished_at") and old.get("journal_bytes") == size:
                found.append(old)
            else:
                found.append({**of_packet(packet), "journal_bytes": size})
        except (OSError, HoldfastError, KeyError, ValueError):
            continue  # removed meanwhile, or unreadable: `status` and `show` say so
    return found


def report(home: Home) -> dict[str, Any]:
    """Everything, as metrics.json holds it."""
    tasks, now = gather(home), clock.now()
    return {
        "schema": metrics.SCHEMA,
        "at": clock.iso(now),
        "home": metrics.of_home(tasks, now),
        "last_24h": metrics.of_home(tasks, now, since=now - metrics.DAY_S),
        "tasks": {task["task_id"]: task for task in tasks},
    }


def refresh(home: Home) -> dict[str, Any]:
    """Gather, and write metrics.json where that can be done."""
    found = report(home)
    try:
        atomic.write_json(home.metrics, found, durable=False)
    except HoldfastError:
        return found  # a home that we may only read: the figures are the same
    return found


def _known(home: Home) -> dict[str, dict[str, Any]]:
    try:
        data = atomic.read_json(home.metrics) or {}
    except HoldfastError:
        return {}
    tasks: Any = data.get("tasks") if data.get("schema") == metrics.SCHEMA else None
    return tasks if isinstance(tasks, dict) else {}  # pyright: ignore[reportUnknownVariableType]
