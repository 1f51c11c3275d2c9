"""The queue of one machine: `<home>/queue.db`.

A claim is one short write transaction; nothing is kept in memory.
"""

from __future__ import annotations

import json
import os

from holdfast import clock
from holdfast.queue import rows, user_changes
from holdfast.queue.claim_owner import EXTERNAL, is_external
from holdfast.queue.database import Database
from holdfast.queue.engine import ALL, POISON_AFTER, Capacity, Item, QueueSummary
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import Any, Self

#: Why tasks that wait for a task are held, by its end.
_ENDED_AS = {
    "failed": "failed",
    "abandoned": "was abandoned",
    "killed": "was stopped",
    "timeout": "timed out",
    # Removed, or never created: an import may have refused it.
    "gone": "is not in this home",
}
_CLAIM = (
    "UPDATE items SET state = 'claimed', claimed_by = ?, claimed_at = ?, attempts = attempts + 1, front = 0"
    " WHERE seq = ?"
)
_SELECT_FOR_ACK = (
    "SELECT seq, waits, EXISTS (SELECT 1 FROM waits WHERE on_id = items.task_id), state, claimed_by"
    " FROM items WHERE task_id = ?"
)
#: The usual case, from the keeper: claimed by this owner, no dependents, and no changes by users.
_ACK_SIMPLE = (
    "DELETE FROM items WHERE task_id = ? AND state = 'claimed' AND claimed_by = ? AND waits = 0"
    " AND NOT EXISTS (SELECT 1 FROM waits WHERE on_id = items.task_id) AND NOT EXISTS (SELECT 1 FROM paused)"
    " AND NOT EXISTS (SELECT 1 FROM items AS other WHERE other.line = 1"
    f" AND substr(other.claimed_by, 1, {len(EXTERNAL)}) = '{EXTERNAL}')"
)


class LocalQueue:
    """An Engine on SQLite.

    Raises StorageError if the database is unusable for now, CorruptFile if it was replaced.

    With `reads_only`, a read-only home is read into memory, and its file is not changed.
    """

    def __init__(self, home: Home, *, poison_after: int = POISON_AFTER, reads_only: bool = False) -> None:
        self.path = home.queue
        self._changes_path = home.queue_kept
        self.poison_after = poison_after
        self._database = Database(self.path, in_memory=reads_only and not _is_writable(home))
        self._execute, self._read, self._write = (
            self._database.execute,
            self._database.read,
            self._database.write,
        )
        #: Numbers of rows that are not ours.
        self._others: list[Any] = []
        self._restore_pauses()

    @property
    def is_new(self) -> bool:
        """Whether the database was just created and must be filled."""
        return self._database.is_new

    @property
    def is_current(self) -> bool:
        """Whether the file is still the one that was opened."""
        return self._database.is_current

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    # ── the engine ──

    def add(self, item: Item) -> bool:
        """See Engine."""
        return self._write(lambda: self._insert(item))

    def add_many(self, items: list[Item]) -> int:
        """Add items in one transaction; returns how many were new. Used only by benchmarks."""
        return self._write(lambda: sum(self._insert(item) for item in items))

    def claim(self, owner: str, capacity: Capacity = rows.ANY, *, task_id: str | None = None) -> Item | None:
        """See Engine."""
        return self._write(lambda: self._take(owner, capacity, task_id))

    def ack(self, task_id: str, *, owner: str | None = None, status: str | None = None) -> bool:
        """See Engine."""

        def act() -> bool:
            is_simple = owner is not None and not os.path.exists(self._changes_path)
            if is_simple and self._execute(_ACK_SIMPLE, task_id, owner).rowcount:
                return True
            row = self._execute(_SELECT_FOR_ACK, task_id).fetchone()
            if row is None:
                return False
            seq, waits, has_dependents, state, claimed_by = row
            if owner is not None and (state, claimed_by) != ("claimed", owner):
                return False
            self._execute("DELETE FROM items WHERE seq = ?", seq)
            self._change(lambda changes: user_changes.without(changes, task_id))
            if waits:
                self._execute("DELETE FROM waits WHERE task_id = ?", task_id)
            if has_dependents and status is not None:
                self._task_ended(task_id, status)
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
                    " reason = CASE WHEN lost + ? >= ?"
                    " THEN 'its worker died ' || (lost + ?) || ' times' ELSE '' END,"
                    " lost = lost + ?, claimed_by = NULL, claimed_at = NULL, front = front OR ?,"
                    " not_before = coalesce(?, not_before), not_before_s = max(not_before_s, ?)"
                    " WHERE task_id = ? AND state = 'claimed' AND (? IS NULL OR claimed_by = ?)",
                    *(lost, self.poison_after, lost, self.poison_after, lost, lost, front, not_before, due_s),
                    *(task_id, owner, owner),
                ).rowcount
                > 0
            )
            if changed:
                self._change(lambda changes: user_changes.unclaimed(changes, task_id))
            return changed

        return self._write(act)

    def poison(self, task_id: str, reason: str) -> bool:
        """See Engine."""
        query = (
            "UPDATE items SET state = 'poison', reason = ?, claimed_by = NULL, claimed_at = NULL"
            " WHERE task_id = ?"
        )
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
            self._change(lambda changes: changes.evolve(priorities={**changes.priorities, task_id: priority}))
            return True

        return self._write(act)

    def task_ended(self, task_id: str, status: str) -> int:
        """See Engine."""
        return self._write(lambda: self._task_ended(task_id, status))

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

    def unhold(self, task_id: str, on_id: str) -> bool:
        """See Engine."""

        def act() -> bool:
            self._execute("UPDATE waits SET has_failed = 0 WHERE task_id = ? AND on_id = ?", task_id, on_id)
            return self._requeue_if_unheld(task_id)

        return self._write(act)

    def items(self, task_id: str | None = None) -> list[Item]:
        """See Engine."""

        def act() -> list[Item]:
            where, values = ("", ()) if task_id is None else (" WHERE task_id = ?", (task_id,))
            waits: dict[str, tuple[str, ...]] = {}
            query = f"SELECT task_id, on_id FROM waits{where} ORDER BY rowid"
            for waiter, on_id in self._execute(query, *values).fetchall():
                if isinstance(on_id, str):
                    waits[waiter] = (*waits.get(waiter, ()), on_id)
            selected = self._execute(f"{rows.SELECT}{where} {rows.ORDER}", *values).fetchall()
            return self._sound([(row, rows.item(row, waits.get(row[1], ()))) for row in selected])

        return self._without_others(act)

    def claims(self) -> list[Item]:
        """See Engine."""
        query = f"{rows.SELECT} WHERE line = 1 {rows.ORDER}"
        return self._without_others(
            lambda: self._sound([(row, rows.item(row, ())) for row in self._execute(query).fetchall()])
        )

    def _sound(self, found: list[tuple[tuple[Any, ...], Item | None]]) -> list[Item]:
        """The items among them. What is no row of ours is noted."""
        self._others = [row[0] for row, item in found if item is None]
        return [item for _, item in found if item is not None]

    def _without_others(self, read: Callable[[], list[Item]]) -> list[Item]:
        """Read items, and delete rows that are not ours: the next comparison adds what the packets say."""
        items = self._read(read)
        if self._others and not self._database.is_copy:
            others, query = [(seq,) for seq in self._others], "DELETE FROM items WHERE seq = ?"
            self._write(lambda: self._database.execute_many(query, others))
        return items

    def summary(self, now: float) -> QueueSummary:
        """See Engine."""

        def act() -> QueueSummary:
            agents = self._execute("SELECT DISTINCT agent FROM items WHERE state = 'queued' ORDER BY agent")
            # Not a text, which is greater than every number: an agent can write the file.
            due = (
                "SELECT min(not_before_s) FROM items"
                " WHERE state = 'queued' AND not_before_s > ? AND typeof(not_before_s) = 'real'"
            )
            return QueueSummary(
                count=self._execute("SELECT count(*) FROM items").fetchone()[0],
                agents=tuple(row[0] for row in agents.fetchall() if isinstance(row[0], str)),
                due_at=self._execute(due, now).fetchone()[0],
            )

        return self._read(act)

    def failed_dependencies(self, task_id: str) -> list[str]:
        """See Engine."""
        query = "SELECT on_id FROM waits WHERE task_id = ? AND has_failed ORDER BY rowid"
        return self._read(lambda: _texts(self._execute(query, task_id)))

    def outside_dependencies(self) -> list[str]:
        """See Engine."""
        query = "SELECT DISTINCT on_id FROM waits WHERE on_id NOT IN (SELECT task_id FROM items)"
        return self._read(lambda: _texts(self._execute(query)))

    def pause(self, pool: str = ALL, *, is_paused: bool = True) -> None:
        """See Engine."""
        query = (
            "INSERT OR IGNORE INTO paused VALUES (?)" if is_paused else "DELETE FROM paused WHERE pool = ?"
        )

        def act() -> None:
            self._execute(query, pool)
            self._change(lambda changes: changes.evolve(paused=self._paused()))

        self._write(act)

    def paused(self) -> list[str]:
        """See Engine."""
        return self._read(self._paused)

    # ── inside a transaction ──

    def _paused(self) -> list[str]:
        return _texts(self._execute("SELECT pool FROM paused ORDER BY pool"))

    def _change(self, change: Callable[[user_changes.UserChanges], user_changes.UserChanges]) -> None:
        """Apply a change to queue.json, if it changes anything. A copy in memory does not write it."""
        if self._database.is_copy:
            return
        saved = user_changes.read(self._changes_path)
        changed = change(saved or self._changes_in_rows())
        if changed != (saved or user_changes.UserChanges()):
            user_changes.write(self._changes_path, changed)

    def _changes_in_rows(self) -> user_changes.UserChanges:
        """The content of queue.json rebuilt from the rows, if the file is lost: an empty one would end
        every pause."""
        query = "SELECT task_id, claimed_by, claimed_at FROM items WHERE line = 1 ORDER BY seq"
        changes = user_changes.UserChanges(paused=self._paused())
        for task_id, by, at in self._execute(query).fetchall():
            if is_external(by) and isinstance(task_id, str) and isinstance(at, str):
                changes = user_changes.claimed(changes, task_id, by=by, at=at)
        return changes

    def _insert(self, item: Item) -> bool:
        item = user_changes.with_user_changes(item, user_changes.read(self._changes_path))
        waits = tuple(dict.fromkeys(item.after))
        added = self._execute(
            f"INSERT OR IGNORE INTO items ({', '.join(rows.COLUMNS)}, not_before_s, waits)"
            f" VALUES ({', '.join('?' * (len(rows.COLUMNS) + 2))})",
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
            self._database.execute_many(
                "INSERT OR IGNORE INTO waits VALUES (?, ?, 0)", [(item.task_id, on_id) for on_id in waits]
            )
        return added > 0

    def _take(self, owner: str, capacity: Capacity, task_id: str | None) -> Item | None:
        if task_id is not None:
            row = self._execute(f"{rows.SELECT} WHERE task_id = ? AND {rows.READY}", task_id).fetchone()
        else:
            row = rows.next_row(self._database, capacity)
        if row is None:
            return None
        if rows.item(row, ()) is None:
            self._execute("DELETE FROM items WHERE seq = ?", row[0])
            return None
        at = clock.iso_now()
        self._execute(_CLAIM, owner, at, row[0])
        if is_external(owner):
            self._change(lambda changes: user_changes.claimed(changes, row[1], by=owner, at=at))
        return rows.item(
            row, (), state="claimed", claimed_by=owner, claimed_at=at, attempts=row[rows.ATTEMPTS] + 1
        )

    def _task_ended(self, task_id: str, status: str) -> int:
        waiting = [
            row[0] for row in self._execute("SELECT task_id FROM waits WHERE on_id = ?", task_id).fetchall()
        ]
        if not waiting:
            return 0
        if status == "completed":
            self._execute("DELETE FROM waits WHERE on_id = ?", task_id)
            for waiter in waiting:
                self._count_waits(waiter)
                self._requeue_if_unheld(waiter)
            return len(waiting)
        self._execute("UPDATE waits SET has_failed = 1 WHERE on_id = ?", task_id)
        reason = f"{task_id} {_ENDED_AS.get(status, f'is {status}')}"
        # One that is held because of it gets the new reason: a task that failed may be gone by now.
        return self._execute(
            "UPDATE items SET state = 'held', reason = ?1 WHERE task_id IN (SELECT task_id FROM waits"
            " WHERE on_id = ?2) AND (state = 'queued' OR (state = 'held' AND reason <> ?1"
            " AND substr(reason, 1, length(?2) + 1) = ?2 || ' '))",
            *(reason, task_id),
        ).rowcount

    def _requeue_if_unheld(self, task_id: str) -> bool:
        """Requeue a held item if nothing holds it any more."""
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

    def _restore_pauses(self) -> None:
        """Restore the pauses from queue.json: the database may be new or have lost its last writes."""
        saved = user_changes.read(self._changes_path)
        if saved is None or sorted(saved.paused) == self.paused():
            return

        def act() -> None:
            # Read again inside the transaction: another process may have paused or resumed.
            saved = user_changes.read(self._changes_path)
            if saved is not None:
                self._execute("DELETE FROM paused")
                pools = [(pool,) for pool in saved.paused]
                self._database.execute_many("INSERT OR IGNORE INTO paused VALUES (?)", pools)

        self._write(act)


def _texts(found: sqlite3.Cursor) -> list[str]:
    """The first column, as far as it is text: an agent can write the file."""
    return [row[0] for row in found.fetchall() if isinstance(row[0], str)]


def _is_writable(home: Home) -> bool:
    """Whether the database, and the files that SQLite puts next to it, can be written; or it cannot even be
    read, and is replaced."""
    if not os.access(home.path, os.W_OK):
        return False
    is_usable = os.access(home.queue, os.W_OK) or not os.access(home.queue, os.R_OK)
    return is_usable or not os.path.exists(home.queue)
