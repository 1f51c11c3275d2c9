"""index.db agrees with the packets, however far behind it was."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast.store import atomic
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


def test_only_manifests_that_changed_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(str(tmp_path))
    for task_id in ("a", "b", "c"):
        put(home, task_id, "running")
        long_ago(home, task_id)
    overview(home)
    read: list[str] = []
    read_json = atomic.read_json
    monkeypatch.setattr(atomic, "read_json", lambda path: read.append(path) or read_json(path))
    assert overview(home)[0] == {"a": "running", "b": "running", "c": "running"}
    assert read == []
    put(home, "b", "waiting")
    assert overview(home)[0] == {"a": "running", "b": "waiting", "c": "running"}
    assert read == [home.packet("b").manifest]


def test_two_changes_within_one_tick_of_the_clock_are_both_seen(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    put(home, "a", "running")
    overview(home)
    for status in ("waiting", "running", "crashed", "waiting") * 20:
        put(home, "a", status)
        assert overview(home)[0] == {"a": status}


def test_a_row_that_was_made_from_the_journal_is_made_again(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    put(home, "a", "running")
    long_ago(home, "a")
    overview(home)
    with open(home.packet("a").manifest, "w", encoding="utf-8") as file:
        file.write("{}")
    long_ago(home, "a")
    assert overview(home)[0] == {"a": "unreadable"}
    put(home, "a", "waiting")
    assert overview(home)[0] == {"a": "waiting"}


def long_ago(home: Home, task_id: str) -> None:
    """A manifest that has just been written may change again within the same tick, so it is always read."""
    os.utime(home.packet(task_id).manifest, (1e9, 1e9))
