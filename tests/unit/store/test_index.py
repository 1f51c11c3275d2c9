"""index.db agrees with the packets, however far behind it was."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest

from holdfast import paths
from holdfast.model import events as ev
from holdfast.model.spec import Limits, StageSpec, TaskSpec
from holdfast.model.status import ENDS, Status
from holdfast.packet.create import create
from holdfast.store import atomic, index_tables
from holdfast.store import index as index_module
from holdfast.store.index import Index
from holdfast.store.index_rows import read_row
from holdfast.store.layout import Home
from tests.support.journals import append


def put(home: Home, task_id: str, status: str) -> None:
    """Write a manifest; for an end, also the journal, which confirms it."""
    packet = home.packet(task_id)
    if status in ENDS:
        if not os.path.exists(packet.journal):
            shutil.rmtree(packet.path, ignore_errors=True)
            _create(home, task_id)
        append(packet, ev.TaskMoved(old="running", new=status, reason=""))
    os.makedirs(packet.path, exist_ok=True)
    manifest = {
        "task_id": task_id,
        "status": status,
        "agent": "command",
        "started_at": "2026-01-01T00:00:00.000Z",
    }
    with open(home.packet(task_id).manifest, "w", encoding="utf-8") as file:
        json.dump(manifest, file)


def _create(home: Home, task_id: str) -> None:
    stages = (StageSpec(name="command_run", agent="command"),)
    spec = TaskSpec(
        task_id=task_id,
        task_name="",
        goal="",
        agent="command",
        project_dir="/",
        stages=stages,
        limits=Limits(),
    )
    paths.ensure_home(home.path)
    create(home, spec, prompt=None, env={"env": {}}, status=Status.RUNNING)


def overview(home: Home) -> tuple[dict[str, str], dict[str, int]]:
    index = Index(home)
    try:
        live, ended = index.overview()
    finally:
        index.close()
    return {row["task_id"]: row["status"] for row in live}, ended


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE meta ADD COLUMN more CHECK (1)",
        "CREATE INDEX more ON tasks (task_id) WHERE 1",
        "DROP TABLE gone",
        "PRAGMA user_version = 0; DROP TABLE meta; CREATE TABLE meta (key PRIMARY KEY, value CHECK (1))",
    ],
)
def test_an_index_with_other_tables_is_made_anew(tmp_path: Path, statement: str) -> None:
    home = Home(str(tmp_path))
    put(home, "a", Status.RUNNING)
    overview(home)
    connection = sqlite3.connect(home.index)
    connection.executescript(statement)
    connection.close()
    with pytest.raises(sqlite3.DatabaseError):
        index_tables.connect(home.index)
    assert overview(home) == ({"a": Status.RUNNING}, {})
    index_tables.connect(home.index).close()


@pytest.mark.parametrize(
    "change",
    [
        """UPDATE tasks SET short = '{"task_id":"b","status":"completed"}' WHERE task_id = 'b'""",
        """UPDATE tasks SET short = '5' WHERE task_id = 'b'""",
        "UPDATE tasks SET short = replace(short, '\"2026-01-01T00:00:00.000Z\"', '\"\"')",
        'UPDATE tasks SET short = replace(short, \'"agent":"command"\', \'"agent":[]\')',
        "UPDATE tasks SET short = replace(short, '\"goal\":null', '\"goal\":5')",
        "UPDATE tasks SET status = NULL",
        "UPDATE tasks SET task_id = x'ff' WHERE task_id = 'b'",
        """UPDATE brief SET text = '{"task_id":"a","status":"running"}'""",
        """UPDATE brief SET text = '{"task_id":"a","status":"queued","agent":"x","stage":null,"""
        """"started_at":"2026-01-01T00:00:00.000Z"}'""",
        "DELETE FROM meta",
    ],
)
def test_rows_that_are_not_ours_are_made_anew(tmp_path: Path, change: str) -> None:
    home = Home(str(tmp_path))
    put(home, "a", Status.RUNNING)
    put(home, "b", Status.COMPLETED)

    def rows() -> list[object]:
        index = Index(home)
        try:
            live, counts = index.overview()
            return [live, counts, index.brief(), index.ended(None), index.ended_ids(), index.numbers()]
        finally:
            index.close()

    os.utime(home.packet("a").manifest, (1, 1))
    os.utime(home.tasks, (1, 1))
    before = rows()
    connection = sqlite3.connect(home.index)
    connection.execute(change)
    connection.commit()
    connection.close()
    assert rows() == before


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
    # As its manifest says now, or as the index does already.
    assert overview(home) in (({"d": "completed"}, {"completed": 1}), ({}, {"completed": 2}))
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


# ── brief rows ──


def brief(home: Home) -> dict[str, str]:
    index = Index(home)
    try:
        return {row["task_id"]: row["status"] for row in index.brief()}
    finally:
        index.close()


def test_brief_rows_follow_the_manifests_too(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    for task_id, status in (("a", "running"), ("b", "running"), ("c", "completed")):
        put(home, task_id, status)
        long_ago(home, task_id)
    assert brief(home) == {"a": "running", "b": "running"}
    put(home, "a", "waiting")
    assert brief(home) == {"a": "waiting", "b": "running"}
    put(home, "b", "failed")
    assert brief(home).get("b") in ("failed", None), "as its manifest says now, or the index already"
    assert brief(home) == {"a": "waiting"}, "and from then on as the index does"
    index_update(home, "b", "queued")  # a retry, as the keeper notes it
    put(home, "b", "queued")
    assert brief(home) == {"a": "waiting", "b": "queued"}
    shutil.rmtree(home.packet("a").path)
    assert brief(home) == {"b": "queued"}
    assert overview(home)[0] == {"b": "queued"}


def index_update(home: Home, task_id: str, status: str) -> None:
    found = read_row(home, task_id)
    assert found is not None
    index_module.update(home, {**found[0], "status": status})


def test_a_heartbeat_alone_is_no_reason_to_write(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    for number in range(30):
        put(home, f"t{number}", "running")
        long_ago(home, f"t{number}")
    brief(home)
    (before,) = changes_of(home)
    for number in range(5):
        os.utime(home.packet(f"t{number}").manifest, (2e9 - number, 1.1e9))
    assert len(brief(home)) == 30
    assert changes_of(home) == [before]
    put(home, "t3", "waiting")
    assert brief(home)["t3"] == "waiting"
    assert changes_of(home) != [before]


def changes_of(home: Home) -> list[tuple[object, ...]]:
    """What the index has of t0, which changes whenever a reader writes it."""
    connection = sqlite3.connect(home.index)
    try:
        return connection.execute("SELECT stamp FROM brief WHERE task_id = 't0'").fetchall()
    finally:
        connection.close()


def test_no_two_changes_have_the_same_number(tmp_path: Path) -> None:
    """Many runners write at once. A reader who knows one of two changes with one number misses the other."""
    home = Home(str(tmp_path))
    index_tables.connect(home.index).close()
    rows, writers = 40, 6
    start = threading.Barrier(writers)

    def write(writer: int) -> None:
        connection = index_tables.connect(home.index)
        connection.execute("PRAGMA busy_timeout = 20000")
        start.wait(20)
        for number in range(rows):
            row = {"task_id": f"{writer}-{number}", "status": "completed", "agent": "x"}
            index_tables.put(connection, row, inode=0)
            connection.commit()
        connection.close()

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    with contextlib.closing(sqlite3.connect(home.index)) as connection:
        numbers = [number for (number,) in connection.execute("SELECT seq FROM tasks ORDER BY seq")]
    assert numbers == list(range(1, rows * writers + 1))
