"""index.db agrees with the packets, however far behind it was."""

from __future__ import annotations

import json
import os
from pathlib import Path

from holdfast.store.index import Index
from holdfast.store.layout import Home


def put(home: Home, task_id: str, status: str) -> None:
    os.makedirs(home.packet(task_id).path, exist_ok=True)
    manifest = {
        "task_id": task_id,
        "status": status,
        "agent": "command",
        "started_at": "2026-01-01T00:00:00.000Z",
    }
    with open(home.packet(task_id).manifest, "w", encoding="utf-8") as file:
        json.dump(manifest, file)


def overview(home: Home) -> tuple[dict[str, str], dict[str, int]]:
    index = Index(home)
    try:
        live, ended = index.overview()
    finally:
        index.close()
    return {row["task_id"]: row["status"] for row in live}, ended


def test_an_overview_has_each_task_once(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    for task_id, status in (("a", "completed"), ("b", "failed"), ("c", "completed"), ("d", "running")):
        put(home, task_id, status)
    assert overview(home) == ({"d": "running"}, {"completed": 2, "failed": 1})


def test_a_task_that_has_ended_since_is_not_counted_twice(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    put(home, "a", "completed")
    put(home, "d", "running")
    assert overview(home) == ({"d": "running"}, {"completed": 1})
    put(home, "d", "completed")
    assert overview(home) == ({"d": "completed"}, {"completed": 1}), "as its manifest says now"
    assert overview(home) == ({}, {"completed": 2}), "and from then on as the index does"
