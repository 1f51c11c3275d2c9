"""The keeper keeps index.db up to date, so that a list of many live tasks has little to read."""

from __future__ import annotations

import json
import os
import selectors
from pathlib import Path

import pytest

from holdfast import clock
from holdfast.keeper.live_tasks import SCAN_S, LiveTasks
from holdfast.store import atomic
from holdfast.store import lock as locks
from holdfast.store.index import Index
from holdfast.store.layout import Home


def put(home: Home, task_id: str, status: str) -> None:
    packet = home.packet(task_id)
    os.makedirs(packet.inbox, exist_ok=True)
    manifest = {
        "task_id": task_id,
        "status": status,
        "agent": "command",
        "started_at": "2026-01-01T00:00:00.000Z",
    }
    with open(packet.manifest, "w", encoding="utf-8") as file:
        json.dump(manifest, file)
    # A manifest that has just been written is always read.
    os.utime(packet.manifest, (clock.now() - 1, clock.now() - 1))


def test_a_scan_reads_for_the_next_list_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now_mono = 1000.0
    monkeypatch.setattr(clock, "mono", lambda: now_mono)
    home = Home(str(tmp_path))
    for task_id in ("a", "b", "c"):
        put(home, task_id, "running")
    # As if this process were their runner.
    held = [locks.acquire(home.packet(task_id).runner_lock, role="runner") for task_id in ("a", "b", "c")]
    with selectors.DefaultSelector() as selector:
        found = LiveTasks(home, selector)
        found.step(rung=False)
        put(home, "b", "waiting")
        now_mono += SCAN_S
        found.step(rung=False)
    read: list[str] = []
    read_json = atomic.read_json
    monkeypatch.setattr(atomic, "read_json", lambda path: read.append(path) or read_json(path))
    index = Index(home)
    assert {row["task_id"]: row["status"] for row in index.live()} == {
        "a": "running",
        "b": "waiting",
        "c": "running",
    }
    index.close()
    assert read == []
    for lock in held:
        lock.release()
