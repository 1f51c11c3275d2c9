"""Row 9: claim and finish of queued tasks, compared with the same statements on bare SQLite with the same
durability."""

from __future__ import annotations

import os
import sqlite3
import time

from benchmarks.place import Place
from benchmarks.stats import median
from benchmarks.table import Baseline, Line
from holdfast.queue.engine import Capacity, Item
from holdfast.queue.local import LocalQueue
from holdfast.store.layout import Home


def claims(place: Place) -> list[Line]:
    """Pairs per second with many items in the queue; ours and the bare ones in turn."""
    count, pairs, repeats = place.pick(100_000, 2_000), place.pick(5_000, 200), place.pick(5, 3)
    ours, bare = os.path.join(place.root, "ours"), os.path.join(place.root, "bare.db")
    os.makedirs(ours, exist_ok=True)
    queue = LocalQueue(Home(ours))
    began = time.monotonic_ns()
    queue.add_many([Item(task_id=f"t{number:06d}", priority=number % 10) for number in range(count)])
    fill_s = (time.monotonic_ns() - began) / 1e9
    connection = _fill(bare, count)
    rates: dict[str, list[float]] = {"ours": [], "limited": [], "bare": []}
    room = Capacity(slots=8, agents={"claude": 4}, pools={"default": 6})
    for _ in range(repeats):
        rates["ours"].append(_rate(pairs, lambda: _ours(queue)))
        rates["limited"].append(_rate(pairs, lambda: _ours(queue, room)))
        rates["bare"].append(_rate(pairs, lambda: _bare(connection)))
    queue.close()
    connection.close()
    rate = {name: median(values) for name, values in rates.items()}
    return [
        Line(
            row=9,
            what=f"claim and finish, {count} items",
            value=rate["ours"],
            unit="pairs/s",
            baseline=Baseline(name="bare SQLite, WAL, NORMAL", value=rate["bare"]),
            target="≥ 0.5× bare SQLite",
            met=rate["ours"] >= 0.5 * rate["bare"],
            notes=(f"{count / fill_s:.0f} items a second were put in, in one transaction",),
        ),
        Line(
            row=9,
            what="the same with limits for slots, agents and pools",
            value=rate["limited"],
            unit="pairs/s",
            baseline=Baseline(name="bare SQLite, WAL, NORMAL", value=rate["bare"]),
        ),
    ]


def _fill(path: str, count: int) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        """
        PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
        CREATE TABLE items (
            seq INTEGER PRIMARY KEY, task_id TEXT UNIQUE, priority INTEGER, state TEXT, owner TEXT
        );
        CREATE INDEX turn ON items (priority DESC, seq) WHERE state = 'queued';
        """
    )
    connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO items (task_id, priority, state) VALUES (?, ?, 'queued')",
        ((f"t{number:06d}", number % 10) for number in range(count)),
    )
    connection.execute("COMMIT")
    return connection


def _rate(pairs: int, act: object) -> float:
    assert callable(act)
    began = time.monotonic_ns()
    for _ in range(pairs):
        act()
    return pairs / ((time.monotonic_ns() - began) / 1e9)


def _ours(queue: LocalQueue, room: Capacity | None = None) -> None:
    item = queue.claim("bench") if room is None else queue.claim("bench", room)
    assert item is not None
    queue.ack(item.task_id, owner="bench", status="completed")


def _bare(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    row = connection.execute(
        "SELECT seq, task_id FROM items WHERE state = 'queued' ORDER BY priority DESC, seq LIMIT 1"
    ).fetchone()
    connection.execute("UPDATE items SET state = 'claimed', owner = 'bench' WHERE seq = ?", (row[0],))
    connection.execute("COMMIT")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM items WHERE task_id = ? AND owner = 'bench'", (row[1],))
    connection.execute("COMMIT")
