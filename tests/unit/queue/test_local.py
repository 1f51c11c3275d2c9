"""queue.db: private, versioned, and never in the way when it is broken."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable

import pytest

from holdfast.errors import CorruptFile, StorageError
from holdfast.queue import tables
from holdfast.queue.engine import Item, is_ready, parse_priority
from holdfast.queue.local import LocalQueue
from holdfast.store import index_tables
from holdfast.store.layout import Home


def aside(home: str) -> list[str]:
    return sorted(name for name in os.listdir(home) if ".broken-" in name and name.endswith("Z"))


@pytest.mark.parametrize("connect", [lambda path: tables.connect(path)[0], index_tables.connect])
def test_it_is_private_from_its_creation_on(
    home: str, connect: Callable[[str], sqlite3.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of mode would follow a link that an agent has put there meanwhile."""
    monkeypatch.delattr(os, "chmod")
    path = os.path.join(home, "x.db")
    connect(path).close()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_it_is_private_and_has_a_version(home: str) -> None:
    with LocalQueue(Home(home)) as queue:
        assert queue.is_new
        queue.add(Item(task_id="a"))
        for name in ("queue.db", "queue.db-wal"):
            assert stat.S_IMODE(os.stat(os.path.join(home, name)).st_mode) == 0o600
    connection = sqlite3.connect(os.path.join(home, "queue.db"))
    assert connection.execute("PRAGMA user_version").fetchone()[0] == tables.VERSION
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    connection.close()
    with LocalQueue(Home(home)) as queue:
        assert not queue.is_new
        assert [item.task_id for item in queue.items()] == ["a"]


@pytest.mark.parametrize(
    "garbage", [b"this is no database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 4000]
)
def test_a_corrupt_database_is_put_aside_and_not_deleted(home: str, garbage: bytes) -> None:
    with open(os.path.join(home, "queue.db"), "wb") as file:
        file.write(garbage)
    with LocalQueue(Home(home)) as queue:
        assert queue.is_new
        assert queue.add(Item(task_id="a"))
    (name,) = aside(home)
    with open(os.path.join(home, name), "rb") as file:
        assert file.read() == garbage


#: What never ends, or takes very long, could stand in place of each 1.
OTHER_TABLES = (
    "ALTER TABLE paused ADD COLUMN more CHECK (1)",
    "ALTER TABLE items ADD COLUMN more AS (1)",
    "CREATE INDEX more ON items (task_id) WHERE 1",
    "CREATE VIEW more AS SELECT 1",
)


def change_tables(home: str, statement: str) -> None:
    connection = sqlite3.connect(os.path.join(home, "queue.db"))
    connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("statement", OTHER_TABLES)
def test_other_tables_than_ours_are_put_aside(home: str, statement: str) -> None:
    LocalQueue(Home(home)).close()
    change_tables(home, statement)
    with LocalQueue(Home(home)) as queue:
        assert queue.is_new
        assert queue.add(Item(task_id="a"))
    assert len(aside(home)) == 1


def test_tables_that_change_while_it_is_open_are_put_aside_too(home: str) -> None:
    with LocalQueue(Home(home)) as queue:
        change_tables(home, OTHER_TABLES[0])
        with pytest.raises(CorruptFile):
            queue.pause()
    assert len(aside(home)) == 1


@pytest.mark.parametrize(
    "values",
    [
        "pool = x'ff'",
        "agent = x'00'",
        "priority = 'high'",
        "not_before = 'tomorrow'",
        "added_at = ''",
        "state = 'else'",
        "task_id = '../a'",
        "claimed_by = x'ff'",
    ],
)
def test_a_row_that_is_not_ours_is_deleted_and_can_be_added_again(home: str, values: str) -> None:
    with LocalQueue(Home(home)) as queue:
        queue.add(Item(task_id="a"))
        queue.add(Item(task_id="b"))
        change_tables(home, f"UPDATE items SET {values} WHERE task_id = 'a'")
        assert [item.task_id for item in queue.items()] == ["b"]
        assert queue.summary(0.0).count == 1
        assert queue.add(Item(task_id="a"))
        assert [item.task_id for item in queue.items()] == ["b", "a"]
        change_tables(home, f"UPDATE items SET {values} WHERE task_id = 'a'")
        change_tables(home, "UPDATE items SET state = 'held' WHERE task_id = 'b'")
        assert queue.claim("me") is None


def test_a_pause_of_no_pool_stops_nothing(home: str) -> None:
    with LocalQueue(Home(home)) as queue:
        queue.add(Item(task_id="a"))
        queue.pause("night")
        change_tables(home, "INSERT INTO paused VALUES (NULL), (x'ff')")
        assert queue.paused() == ["night"]
        assert queue.claim("me") is not None


def test_another_version_is_put_aside(home: str) -> None:
    connection = sqlite3.connect(os.path.join(home, "queue.db"))
    connection.execute("CREATE TABLE future (x)")
    connection.execute(f"PRAGMA user_version = {tables.VERSION + 1}")
    connection.commit()
    connection.close()
    with LocalQueue(Home(home)) as queue:
        assert queue.is_new
    assert len(aside(home)) == 1


def test_a_missing_table_is_put_aside(home: str) -> None:
    connection = sqlite3.connect(os.path.join(home, "queue.db"))
    connection.execute(f"PRAGMA user_version = {tables.VERSION}")
    connection.commit()
    connection.close()
    with LocalQueue(Home(home)) as queue:
        assert queue.items() == []


def test_what_breaks_while_it_is_open_is_put_aside_with_words(home: str) -> None:
    path = os.path.join(home, "queue.db")
    with LocalQueue(Home(home)) as queue:
        queue.add_many([Item(task_id=f"t{number}") for number in range(2000)])
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.seek(size // 2)
        file.write(b"\x7f" * (size - size // 2))
    queue = LocalQueue(Home(home))
    with pytest.raises(CorruptFile, match="has been renamed"):
        queue.items()
    assert len(aside(home)) == 1
    with LocalQueue(Home(home)) as queue:
        assert queue.is_new


def test_a_healthy_database_is_not_put_aside_by_a_latecomer(home: str) -> None:
    with LocalQueue(Home(home)) as queue:
        queue.add(Item(task_id="a"))
        tables.put_aside(queue.path)
        assert aside(home) == []
        assert [item.task_id for item in queue.items()] == ["a"]


def test_a_locked_queue_is_a_readable_error(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "BUSY_S", 0.05)
    with LocalQueue(Home(home)) as queue:
        holder = sqlite3.connect(queue.path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="cannot use the queue"):
            queue.add(Item(task_id="a"))
        holder.execute("ROLLBACK")
        holder.close()
        assert queue.add(Item(task_id="a"))


def test_what_is_no_database_is_put_aside(home: str) -> None:
    os.mkfifo(os.path.join(home, "queue.db"))
    with LocalQueue(Home(home)) as queue:
        assert queue.add(Item(task_id="a"))
    assert os.path.lexists(os.path.join(home, "queue.db.aside-1"))


@pytest.mark.parametrize(("text", "number"), [("high", 10), ("Medium", 5), ("low", 1), ("7", 7), (-2, -2)])
def test_a_priority_is_a_word_or_a_number(text: str | int, number: int) -> None:
    assert parse_priority(text) == number


@pytest.mark.parametrize("text", ["urgent", "1.5", "", str(2**40)])
def test_other_words_are_no_priority(text: str) -> None:
    with pytest.raises(ValueError, match="priority"):
        parse_priority(text)


def test_ready_is_what_could_be_claimed() -> None:
    item = Item(task_id="a", pool="p")
    assert is_ready(item, now=0.0, paused=[])
    assert not is_ready(item, now=0.0, paused=["p"])
    assert not is_ready(item, now=0.0, paused=["*"])
    assert not is_ready(item.evolve(waits_for=("b",)), now=0.0, paused=[])
    assert not is_ready(item.evolve(state="held"), now=0.0, paused=[])
    late = item.evolve(not_before="1970-01-01T00:01:00.000Z")
    assert [is_ready(late, now=now, paused=[]) for now in (59.0, 60.0)] == [False, True]
