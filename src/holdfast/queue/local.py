"""The queue of one machine: `<home>/queue.db`. One short write transaction for a claim, and nothing kept in memory."""

from __future__ import annotations

import json
import os
import sqlite3

from holdfast import clock
from holdfast.errors import CorruptFile, StorageError
from holdfast.queue import kept, schema
from holdfast.queue.engine import ALL, POISON_AFTER, Item, Outlook, Room
from holdfast.queue.owner import OUTSIDE, is_outside
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self, TypeVar

    T = TypeVar("T")

_COLUMNS = (
    "task_id", "priority", "pool", "agent", "after", "not_before", "state", "reason", "front", "claimed_by",
    "claimed_at", "attempts", "lost", "added_at", "memory_mb",
)  # fmt: skip
_ATTEMPTS = 1 + _COLUMNS.index("attempts")
_SELECT = f"SELECT seq, {', '.join(_COLUMNS)} FROM items"
_ORDER = "ORDER BY front DESC, priority DESC, seq"
_READY = "line = 0"
_CANDIDATES = (
    f"{_SELECT} WHERE {_READY} AND not_before_s <= ? AND (NOT EXISTS (SELECT 1 FROM paused) OR"
    f" (pool NOT IN (SELECT pool FROM paused) AND NOT EXISTS (SELECT 1 FROM paused WHERE pool = '{ALL}')))"
)
_FIRST = f"{_CANDIDATES} {_ORDER} LIMIT 1"
_CLAIM = "UPDATE items SET state = 'claimed', claimed_by = ?, claimed_at = ?, attempts = attempts + 1, front = 0 WHERE seq = ?"
_LEAVING = (
    "SELECT seq, waits, EXISTS (SELECT 1 FROM waits WHERE on_id = items.task_id), state, claimed_by"
    " FROM items WHERE task_id = ?"
)
#: Most items go like this, from the keeper: claimed by whom it says, nobody waits, and people have said nothing to the queue.
_LEAVE_PLAINLY = (
    "DELETE FROM items WHERE task_id = ? AND state = 'claimed' AND claimed_by = ? AND waits = 0"
    " AND NOT EXISTS (SELECT 1 FROM waits WHERE on_id = items.task_id) AND NOT EXISTS (SELECT 1 FROM paused)"
    " AND NOT EXISTS (SELECT 1 FROM items AS other WHERE other.line = 1"
    f" AND substr(other.claimed_by, 1, {len(OUTSIDE)}) = '{OUTSIDE}')"
)
_ANYTHING = Room()


class LocalQueue:
    """An Engine on SQLite. Raises StorageError when the database cannot be used now, CorruptFile when it was put aside.

    Whoever only looks (`reads_only`) gets a copy in memory where the home cannot be written; the file is left alone.
    """

    def __init__(self, home: Home, *, poison_after: int = POISON_AFTER, reads_only: bool = False) -> None:
        self.path = home.queue
        self._kept_path = home.queue_kept
        self.poison_after = poison_after
        self._is_copy = reads_only and not _is_writable(home)
        if self._is_copy:
            self._copy()
            return
        try:
            self._connection, self.is_new = schema.connect(self.path)
        except schema.UnusableFile:
            schema.put_aside(self.path)
            self._connection, self.is_new = self._reconnect()
        except sqlite3.OperationalError as error:
            raise self._unusable(error) from error
        self._inode = os.stat(self.path).st_ino
        self._restore_pauses()

    def _copy(self) -> None:
        self.is_new, self._inode = False, 0
        try:
            self._connection = schema.copied(self.path)
        except (schema.UnusableFile, sqlite3.OperationalError) as error:
            raise self._unusable(error) from error
        self._restore_pauses()

    @property
    def is_current(self) -> bool:
        """Whether the file is still the one that was opened; it is put aside where it cannot be used."""
        try:
            return os.stat(self.path).st_ino == self._inode
        except FileNotFoundError:
            return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    # ── the engine ──

    def add(self, item: Item) -> bool:
        """See Engine."""
        return self._write(lambda: self._insert(item))

    def add_many(self, items: list[Item]) -> int:
        """Put items in, in one transaction; returns how many were not there."""
        return self._write(lambda: sum(self._insert(item) for item in items))

    def claim(self, owner: str, room: Room = _ANYTHING, *, task_id: str | None = None) -> Item | None:
        """See Engine."""
        return self._write(lambda: self._take(owner, room, task_id))

    def ack(self, task_id: str, *, owner: str | None = None, status: str | None = None) -> bool:
        """See Engine."""

        def act() -> bool:
            plainly = owner is not None and not os.path.exists(self._kept_path)
            if plainly and self._execute(_LEAVE_PLAINLY, task_id, owner).rowcount:
                return True
            row = self._execute(_LEAVING, task_id).fetchone()
            if row is None or (owner is not None and row[3:] != ("claimed", owner)):
                return False
            self._execute("DELETE FROM items WHERE seq = ?", row[0])
            self._keep(lambda found: kept.without(found, task_id))
            if row[1]:
                self._execute("DELETE FROM waits WHERE task_id = ?", task_id)
            if row[2] and status is not None:
                self._settle(task_id, status)
            return True

        return self._write(act)

    def release(
        self,
        task_id: str,
        *,
        owner: str | None = None,
        lost: bool = False,
        front: bool = False,
        not_before: str | None = None,
    ) -> bool:
        """See Engine."""
        due_s = 0.0 if not_before is None else clock.parse_iso(not_before)

        def act() -> bool:
            changed = (
                self._execute(
                    "UPDATE items SET state = CASE WHEN lost + ? >= ? THEN 'poison' ELSE 'queued' END,"
                    " reason = CASE WHEN lost + ? >= ? THEN 'its claim was lost ' || (lost + ?) || ' times' ELSE '' END,"
                    " lost = lost + ?, claimed_by = NULL, claimed_at = NULL, front = front OR ?,"
                    " not_before = coalesce(?, not_before), not_before_s = max(not_before_s, ?)"
                    " WHERE task_id = ? AND state = 'claimed' AND (? IS NULL OR claimed_by = ?)",
                    *(lost, self.poison_after, lost, self.poison_after, lost, lost, front, not_before, due_s),
                    *(task_id, owner, owner),
                ).rowcount
                > 0
            )
            if changed:
                self._keep(lambda found: kept.unclaimed(found, task_id))
            return changed

        return self._write(act)

    def condemn(self, task_id: str, reason: str) -> bool:
        """See Engine."""
        query = "UPDATE items SET state = 'poison', reason = ?, claimed_by = NULL, claimed_at = NULL WHERE task_id = ?"
        return self._write(lambda: self._execute(query, reason, task_id).rowcount > 0)

    def retry(self, task_id: str) -> bool:
        """See Engine."""

        def act() -> bool:
            changed = self._execute(
                "UPDATE items SET state = 'queued', reason = '', lost = 0"
                " WHERE task_id = ? AND state IN ('held', 'poison')",
                task_id,
            ).rowcount
            if changed:
                self._execute("DELETE FROM waits WHERE task_id = ? AND has_failed", task_id)
                self._count_waits(task_id)
            return changed > 0

        return self._write(act)

    def prioritize(self, task_id: str, priority: int) -> bool:
        """See Engine."""

        def act() -> bool:
            query = "UPDATE items SET priority = ? WHERE task_id = ? AND state <> 'claimed'"
            if not self._execute(query, priority, task_id).rowcount:
                return False
            self._keep(lambda found: found.evolve(priorities={**found.priorities, task_id: priority}))
            return True

        return self._write(act)

    def settle(self, task_id: str, status: str) -> int:
        """See Engine."""
        return self._write(lambda: self._settle(task_id, status))

    def hold(self, task_id: str, on_id: str, reason: str) -> bool:
        """See Engine."""

        def act() -> bool:
            self._execute("UPDATE waits SET has_failed = 1 WHERE task_id = ? AND on_id = ?", task_id, on_id)
            return (
                self._execute(
                    "UPDATE items SET state = 'held', reason = ? WHERE task_id = ? AND state = 'queued'",
                    *(reason, task_id),
                ).rowcount
                > 0
            )

        return self._write(act)

    def expect(self, task_id: str, on_id: str) -> bool:
        """See Engine."""

        def act() -> bool:
            self._execute("UPDATE waits SET has_failed = 0 WHERE task_id = ? AND on_id = ?", task_id, on_id)
            return self._let_go(task_id)

        return self._write(act)

    def items(self, task_id: str | None = None) -> list[Item]:
        """See Engine."""

        def act() -> list[Item]:
            where, values = ("", ()) if task_id is None else (" WHERE task_id = ?", (task_id,))
            waits: dict[str, tuple[str, ...]] = {}
            query = f"SELECT task_id, on_id FROM waits{where} ORDER BY rowid"
            for waiter, on_id in self._execute(query, *values).fetchall():
                waits[waiter] = (*waits.get(waiter, ()), on_id)
            rows = self._execute(f"{_SELECT}{where} {_ORDER}", *values).fetchall()
            return [_item(row, waits.get(row[1], ())) for row in rows]

        return self._read(act)

    def claims(self) -> list[Item]:
        """See Engine."""
        query = f"{_SELECT} WHERE line = 1 {_ORDER}"
        return self._read(lambda: [_item(row, ()) for row in self._execute(query).fetchall()])

    def outlook(self, now: float) -> Outlook:
        """See Engine."""

        def act() -> Outlook:
            agents = self._execute("SELECT DISTINCT agent FROM items WHERE state = 'queued' ORDER BY agent")
            due = "SELECT min(not_before_s) FROM items WHERE state = 'queued' AND not_before_s > ?"
            return Outlook(
                count=self._execute("SELECT count(*) FROM items").fetchone()[0],
                agents=tuple(row[0] for row in agents.fetchall()),
                due_at=self._execute(due, now).fetchone()[0],
            )

        return self._read(act)

    def strangers(self) -> list[str]:
        """See Engine."""
        query = "SELECT DISTINCT on_id FROM waits WHERE on_id NOT IN (SELECT task_id FROM items)"
        return self._read(lambda: [row[0] for row in self._execute(query).fetchall()])

    def pause(self, pool: str = ALL, *, is_paused: bool = True) -> None:
        """See Engine."""
        query = (
            "INSERT OR IGNORE INTO paused VALUES (?)" if is_paused else "DELETE FROM paused WHERE pool = ?"
        )

        def act() -> None:
            self._execute(query, pool)
            self._keep(lambda found: found.evolve(paused=self._paused()))

        self._write(act)

    def paused(self) -> list[str]:
        """See Engine."""
        return self._read(self._paused)

    # ── inside a transaction ──

    def _paused(self) -> list[str]:
        return [row[0] for row in self._execute("SELECT pool FROM paused ORDER BY pool").fetchall()]

    def _keep(self, change: Callable[[kept.Kept], kept.Kept]) -> None:
        """Change what outlives the rows, where that changes anything. A copy is nobody's word, and leaves it alone."""
        if self._is_copy:
            return
        found = kept.read(self._kept_path)
        changed = change(found or self._as_rows_say())
        if changed != (found or kept.Kept()):
            kept.write(self._kept_path, changed)

    def _as_rows_say(self) -> kept.Kept:
        """What the file would say, had it not been lost: an empty one would end every pause."""
        query = "SELECT task_id, claimed_by, claimed_at FROM items WHERE line = 1 ORDER BY seq"
        found = kept.Kept(paused=self._paused())
        for task_id, by, at in self._execute(query).fetchall():
            if is_outside(by):
                found = kept.claimed(found, task_id, by=by, at=at)
        return found

    def _insert(self, item: Item) -> bool:
        item = kept.as_left(item, kept.read(self._kept_path))
        waits = tuple(dict.fromkeys(item.after))
        added = self._execute(
            f"INSERT OR IGNORE INTO items ({', '.join(_COLUMNS)}, not_before_s, waits)"
            f" VALUES ({', '.join('?' * (len(_COLUMNS) + 2))})",
            *(item.task_id, item.priority, item.pool, item.agent, json.dumps(item.after), item.not_before),
            *(
                item.state,
                item.reason,
                item.front,
                item.claimed_by,
                item.claimed_at,
                item.attempts,
                item.lost,
            ),
            *(item.added_at or clock.iso_now(), item.memory_mb),
            *(0.0 if item.not_before is None else clock.parse_iso(item.not_before), len(waits)),
        ).rowcount
        if added:
            self._connection.executemany(
                "INSERT OR IGNORE INTO waits VALUES (?, ?, 0)", [(item.task_id, on_id) for on_id in waits]
            )
        return added > 0

    def _take(self, owner: str, room: Room, task_id: str | None) -> Item | None:
        if task_id is not None:
            row = self._execute(f"{_SELECT} WHERE task_id = ? AND {_READY}", task_id).fetchone()
        else:
            row = self._next(room)
        if row is None:
            return None
        at = clock.iso_now()
        self._execute(_CLAIM, owner, at, row[0])
        if is_outside(owner):
            self._keep(lambda found: kept.claimed(found, row[1], by=owner, at=at))
        return _item(row, (), state="claimed", claimed_by=owner, claimed_at=at, attempts=row[_ATTEMPTS] + 1)

    def _next(self, room: Room) -> tuple[Any, ...] | None:
        """The first row that may be claimed now."""
        if room is _ANYTHING:
            return self._execute(_FIRST, clock.now()).fetchone()
        full_agents, full_pools, is_full = self._full(room)
        if is_full:
            return None
        where = ""
        values: list[Any] = [clock.now()]
        for column, names in (("agent", full_agents), ("pool", full_pools)):
            if names:
                where += f" AND {column} NOT IN ({', '.join('?' * len(names))})"
                values += names
        if room.memory_mb is not None:
            where += " AND memory_mb <= ?"
            values.append(room.memory_mb)
        return self._execute(f"{_CANDIDATES}{where} {_ORDER} LIMIT 1", *values).fetchone()

    def _full(self, room: Room) -> tuple[list[str], list[str], bool]:
        """The agents and pools that have no room, and whether nothing has."""
        if room.slots is None and not room.agents and not room.pools:
            return [], [], False
        agents: dict[str, int] = {}
        pools: dict[str, int] = {}
        query = "SELECT agent, pool, count(*) FROM items WHERE line = 1 GROUP BY agent, pool"
        total = 0
        for agent, pool, count in self._execute(query).fetchall():
            agents[agent] = agents.get(agent, 0) + count
            pools[pool] = pools.get(pool, 0) + count
            total += count
        return (
            [name for name, most in room.agents.items() if agents.get(name, 0) >= most],
            [name for name, most in room.pools.items() if pools.get(name, 0) >= most],
            room.slots is not None and total >= room.slots,
        )

    def _settle(self, task_id: str, status: str) -> int:
        waiting = [
            row[0] for row in self._execute("SELECT task_id FROM waits WHERE on_id = ?", task_id).fetchall()
        ]
        if not waiting:
            return 0
        if status == "completed":
            self._execute("DELETE FROM waits WHERE on_id = ?", task_id)
            for waiter in waiting:
                self._count_waits(waiter)
                self._let_go(waiter)
            return len(waiting)
        self._execute("UPDATE waits SET has_failed = 1 WHERE on_id = ?", task_id)
        return self._execute(
            "UPDATE items SET state = 'held', reason = ? WHERE state = 'queued'"
            " AND task_id IN (SELECT task_id FROM waits WHERE on_id = ?)",
            *(f"{task_id} is {status}", task_id),
        ).rowcount

    def _let_go(self, task_id: str) -> bool:
        """A held item that nothing holds any more waits like the others."""
        return (
            self._execute(
                "UPDATE items SET state = 'queued', reason = '' WHERE task_id = ? AND state = 'held'"
                " AND NOT EXISTS (SELECT 1 FROM waits WHERE waits.task_id = items.task_id AND has_failed)",
                task_id,
            ).rowcount
            > 0
        )

    def _count_waits(self, task_id: str) -> None:
        self._execute(
            "UPDATE items SET waits = (SELECT count(*) FROM waits WHERE waits.task_id = items.task_id)"
            " WHERE task_id = ?",
            task_id,
        )

    # ── the database ──

    def _restore_pauses(self) -> None:
        """The file is the truth: the database may be new, or have lost its last writes with the power."""
        found = kept.read(self._kept_path)
        if found is None or sorted(found.paused) == self.paused():
            return

        def act() -> None:
            # Once more, now that nobody writes: somebody may have paused or resumed since.
            found = kept.read(self._kept_path)
            if found is not None:
                self._execute("DELETE FROM paused")
                pools = [(pool,) for pool in found.paused]
                self._connection.executemany("INSERT OR IGNORE INTO paused VALUES (?)", pools)

        self._write(act)

    def _execute(self, query: str, *values: Any) -> sqlite3.Cursor:
        return self._connection.execute(query, values)

    def _write(self, act: Callable[[], T]) -> T:
        """One transaction. IMMEDIATE: two that both read and then write would refuse each other."""
        return self._guarded("BEGIN IMMEDIATE", act)

    def _read(self, act: Callable[[], T]) -> T:
        return self._guarded("BEGIN", act)

    def _guarded(self, begin: str, act: Callable[[], T]) -> T:
        execute = self._connection.execute
        try:
            execute(begin)
            try:
                result = act()
                execute("COMMIT")
                return result
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        except sqlite3.OperationalError as error:
            raise self._unusable(error) from error
        except sqlite3.DatabaseError as error:
            self._connection.close()
            if self._is_copy:
                raise self._unusable(error) from error
            schema.put_aside(self.path)
            raise CorruptFile(
                f"the queue {self.path} was corrupt and is put aside: {error}",
                hint="try again: it is built anew from the packets",
            ) from error

    def _reconnect(self) -> tuple[sqlite3.Connection, bool]:
        try:
            return schema.connect(self.path)
        except (schema.UnusableFile, sqlite3.DatabaseError) as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> StorageError:
        hint = "try again; 'holdfast doctor' looks at the disk"
        if os.path.exists(self.path) and not os.access(self.path, os.R_OK | os.W_OK):
            hint = "is it read-only, or does it belong to another user?"
        return StorageError(f"cannot use the queue {self.path}: {error}", hint=hint)


def _is_writable(home: Home) -> bool:
    """Whether the database can be written, and the files that SQLite puts beside it."""
    return os.access(home.path, os.W_OK) and (
        not os.path.exists(home.queue) or os.access(home.queue, os.W_OK)
    )


def _item(row: tuple[Any, ...], waits_for: tuple[str, ...], **changes: Any) -> Item:
    """The item of a row that begins with its sequence number."""
    values: dict[str, Any] = dict(zip(_COLUMNS, row[1:], strict=True), waits_for=waits_for)
    values["after"] = () if values["after"] == "[]" else tuple(json.loads(values["after"]))
    values["front"] = values["front"] == 1
    values.update(changes)
    return Item(**values)
