"""index.db: a derived list of all tasks, so that `ls` need not open ten thousand manifests.

The keeper writes a row when a task becomes live or ends, and skips it when the database is busy. A reader
looks at the manifest of each task that has not ended, and reads those that changed, and the names in `tasks/`
when that directory changed. A missing, corrupt or outdated index is rebuilt from the packets. Runners do not
use it: SQLite would take more memory than everything else in a runner (docs/contracts/files.md).
"""

from __future__ import annotations

import os

from holdfast import clock, files, ids, quick_json
from holdfast.errors import HoldfastError
from holdfast.model.soundness import are_sound
from holdfast.model.status import ENDS, Status
from holdfast.quick_sqlite import sqlite3
from holdfast.store import atomic, index_tables, layout
from holdfast.store.index_rows import (
    NEEDED,
    NEEDED_BRIEF,
    RACY_S,
    brief,
    has_ended_as,
    read_row,
    short,
    stamp_of,
)
from holdfast.store.layout import Home, manifest_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    T = TypeVar("T")

#: Rows that changed in nothing that was asked for are written if there are more than this.
_FEW = 20
#: The plus disables the SQL index: a full scan is faster when all rows are wanted.
_ALL_ENDED = "+ended = 1"


def update(home: Home, manifest: dict[str, Any]) -> None:
    """Write one row, unless the database is busy: the index may be behind."""
    row, inode = short(manifest), _inode(home, manifest["task_id"])
    _try_to_write(home, lambda connection: index_tables.put(connection, row, inode=inode))


def forget(home: Home, task_id: str) -> None:
    """Delete the row of a removed task."""
    if os.path.exists(home.index):
        _try_to_write(home, lambda connection: index_tables.delete(connection, task_id))


def _try_to_write(home: Home, write: Callable[[sqlite3.Connection], None]) -> None:
    try:
        connection = index_tables.connect(home.index)
    except sqlite3.Error:
        return
    try:
        write(connection)
        connection.commit()
    except sqlite3.Error:
        return
    finally:
        connection.close()


def refresh(home: Home) -> None:
    """Read what changed since the last list, so that the next one has less to read."""
    try:
        index = Index(home)
    except (sqlite3.Error, OSError):
        return
    try:
        index.live()
    except (sqlite3.Error, OSError):
        return
    finally:
        index.close()


class Index:
    """The index, brought up to date, for a reader."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._connection = self._open()
        self._read_or_rebuild(self._follow_directory)

    def _read_or_rebuild(self, read: Callable[[], T]) -> T:
        """Read the index. A corrupt one is rebuilt first: it contains nothing that the packets do not."""
        try:
            return read()
        except (sqlite3.DatabaseError, ValueError, TypeError, LookupError, RecursionError) as error:
            self._connection.close()
            # Another process writes for too long, or the file is read-only: use an index in memory. Otherwise
            # it is corrupt.
            is_ours = not isinstance(error, sqlite3.OperationalError) or "no such" in str(error)
            self._connection = self._rebuild() if is_ours else index_tables.connect(":memory:")
            self._follow_directory()
            return read()

    def live(self) -> list[dict[str, Any]]:
        """The tasks that have not ended, newest first, from their manifests.

        A packet that cannot be read is among them, with the state UNREADABLE and the reason.
        """
        return self._read_or_rebuild(self._live)

    def _live(self) -> list[dict[str, Any]]:
        return self._current(
            "SELECT task_id, short, stamp FROM tasks WHERE ended = 0 ORDER BY newest_at DESC, task_id DESC",
            lambda row: row,
            NEEDED,
        )

    def brief(self) -> list[dict[str, Any]]:
        """The tasks of `live`, in no order, with only what a table shows (`index_rows.brief`)."""
        return self._read_or_rebuild(
            lambda: self._current("SELECT task_id, text, stamp FROM brief", brief, NEEDED_BRIEF),
        )

    def _current(
        self,
        query: str,
        shape: Callable[[dict[str, Any]], dict[str, Any]],
        needed: frozenset[str],
    ) -> list[dict[str, Any]]:
        """The rows of a query. Those whose manifest has changed are read from it, and given their `shape`."""
        known = self._connection.execute(query).fetchall()
        if not known:
            return []
        texts: list[str] = []
        changed: list[tuple[dict[str, Any], str]] = []
        is_news = False
        now = clock.now()
        folder = files.open_folder(self.home.tasks)
        try:
            for task_id, text, stamp in known:
                if not stamp or stamp != stamp_of(manifest_in(task_id), now, folder):
                    if not ids.is_safe_name(task_id, 64):
                        raise ValueError("a row of no task")
                    found = read_row(self.home, task_id)
                    if found is None:
                        continue  # removed meanwhile
                    row, stamp = found
                    changed.append((row, stamp))
                    old, text = text, quick_json.dumps(shape(row), is_compact=True)
                    is_news = is_news or text != old
                texts.append(text)
        finally:
            os.close(folder)
        # A few heartbeats are read again by the next reader: that costs less than a transaction.
        if is_news or len(changed) > _FEW:
            self._write(changed)
        return self._parsed(texts, needed)

    def _parsed(self, texts: Iterable[str], needed: frozenset[str] = NEEDED) -> list[dict[str, Any]]:
        """The rows with these texts. An agent can write the index: a success counts only if the journal has
        it, an id is a word for scripts, and all fields have their types. Raises ValueError, TypeError."""
        # Parsed as one text: parsing ten thousand small ones takes twice as long.
        rows: list[Any] = quick_json.loads(f"[{','.join(texts)}]")
        if not are_sound(rows, needed) or not all(ids.is_safe_name(row["task_id"], 64) for row in rows):
            raise ValueError("a row of no task")
        # Of a table, these are complete.
        waiting = [row for row in rows if row["status"] in (Status.WAITING, Status.QUEUED)]
        if needed is not NEEDED and not are_sound(waiting, NEEDED):
            raise ValueError("a row that is not complete")
        doubted = [
            row["task_id"]
            for row in rows
            if row["status"] == Status.COMPLETED
            and not has_ended_as(self.home, row["task_id"], Status.COMPLETED)
        ]
        if not doubted:
            return rows
        found = {task_id: read_row(self.home, task_id) for task_id in doubted}
        self._write([each for each in found.values() if each is not None])
        kept = [row for row in rows if row["task_id"] not in found]
        return kept + [each[0] for each in found.values() if each is not None]

    def _write(self, rows: list[tuple[dict[str, Any], str]]) -> None:
        try:
            for row, stamp in rows:
                index_tables.put(self._connection, row, inode=_inode(self.home, row["task_id"]), stamp=stamp)
            self._connection.commit()
        except sqlite3.OperationalError:
            self._connection.rollback()  # busy: the next reader updates it

    def ended(self, limit: int | None) -> list[dict[str, Any]]:
        """The most recently ended tasks, newest first; with None, all of them in no order."""
        return self._read_or_rebuild(lambda: self._ended(limit))

    def _ended(self, limit: int | None) -> list[dict[str, Any]]:
        if limit is None:
            rows = self._connection.execute(f"SELECT short FROM tasks WHERE {_ALL_ENDED}").fetchall()
        else:
            query = "SELECT short FROM tasks WHERE ended = 1 ORDER BY newest_at DESC, task_id DESC LIMIT ?"
            rows = self._connection.execute(query, (limit,)).fetchall()
        return self._parsed(text for (text,) in rows)

    def ended_count(self) -> int:
        """The number of ended tasks. If `live` or `brief` is called next, every task is in exactly one of
        them."""
        return self._read_or_rebuild(self._ended_count)

    def _ended_count(self) -> int:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN")  # one snapshot for both, until `_current` writes
        (count,) = self._connection.execute("SELECT count(*) FROM tasks WHERE ended = 1").fetchone()
        return count

    def ended_ids(self) -> list[str]:
        """The ids of all ended tasks."""
        query = "SELECT task_id FROM tasks WHERE ended = 1"

        def read() -> list[str]:
            found = [task_id for (task_id,) in self._connection.execute(query)]
            if not all(ids.is_safe_name(task_id, 64) for task_id in found):
                raise ValueError("a row of no task")
            return found

        return self._read_or_rebuild(read)

    def to_look_at(self, since: str) -> list[dict[str, Any]]:
        """The tasks that ended since then and that a person should look at, in no order."""
        return self._read_or_rebuild(lambda: self._to_look_at(since))

    def _to_look_at(self, since: str) -> list[dict[str, Any]]:
        query = "SELECT short FROM tasks WHERE look_at >= ?"
        rows = self._connection.execute(query, (since,)).fetchall()
        return self._parsed(text for (text,) in rows)

    def overview(self) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """The tasks that have not ended, as in `live`, and the number of ended ones by state.

        Every task is in exactly one of them.
        """
        return self._read_or_rebuild(self._overview)

    def _overview(self) -> tuple[list[dict[str, Any]], dict[str, int]]:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN")  # one snapshot for both, until `_live` writes
        query = f"SELECT status, count(*) FROM tasks WHERE {_ALL_ENDED} GROUP BY status"
        counts = dict(self._connection.execute(query).fetchall())
        if not ENDS.issuperset(counts):
            raise ValueError("a row with no state")
        return self._live(), counts

    def position(self) -> tuple[str, int, int]:
        """The id of this index, which a rebuilt one does not share, the number of its last change, and the
        number from which on it knows what was removed."""
        return self._read_or_rebuild(self._position)

    def _position(self) -> tuple[str, int, int]:
        meta: dict[str, str] = dict(self._connection.execute("SELECT key, value FROM meta").fetchall())
        return meta["id"], int(meta["seq"]), int(meta["gone_from"])

    def changed_since(self, seq: int) -> list[tuple[int, str, dict[str, Any] | None]]:
        """What changed after a position, in order: the number of the change, the task, and its row (None for
        a task that is gone). Call `live` before."""
        return self._read_or_rebuild(lambda: self._changed_since(seq))

    def _changed_since(self, seq: int) -> list[tuple[int, str, dict[str, Any] | None]]:
        rows = self._connection.execute(
            "SELECT seq, task_id, short FROM tasks WHERE seq > ? "
            "UNION ALL SELECT seq, task_id, NULL FROM gone WHERE seq > ? ORDER BY seq",
            (seq, seq),
        )
        known = [(at, task_id, text) for at, task_id, text in rows if ids.is_safe_name(task_id, 64)]
        parsed = {row["task_id"]: row for row in self._parsed(text for _, _, text in known if text)}
        return [(at, task_id, parsed.get(task_id)) for at, task_id, _ in known]

    def numbers(self) -> dict[str, int]:
        """The number of the last change of each task."""
        return self._read_or_rebuild(
            lambda: dict(self._connection.execute("SELECT task_id, seq FROM tasks").fetchall())
        )

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def _open(self) -> sqlite3.Connection:
        try:
            return index_tables.connect(self.home.index)
        except sqlite3.OperationalError:
            return index_tables.connect(":memory:")  # a read-only home
        except sqlite3.DatabaseError:
            return self._rebuild()

    def _rebuild(self) -> sqlite3.Connection:
        """Replace a corrupt or outdated index."""
        try:
            for suffix in ("", "-wal", "-shm"):
                atomic.remove(self.home.index + suffix)
            return index_tables.connect(self.home.index)
        except (sqlite3.Error, HoldfastError):
            return index_tables.connect(":memory:")

    def _follow_directory(self) -> None:
        """Add tasks that are missing in the index, and delete those that are gone."""
        try:
            folder = os.stat(self.home.tasks)
        except FileNotFoundError:
            return
        known = self._connection.execute("SELECT value FROM meta WHERE key = 'tasks_mtime_ns'").fetchone()
        if known is not None and known[0] == str(folder.st_mtime_ns):
            return
        with os.scandir(self.home.tasks) as entries:
            on_disk = {
                entry.name: entry.inode()
                for entry in entries
                if entry.name[0] != "." and layout.is_packet(entry)
            }
        in_index = dict(self._connection.execute("SELECT task_id, inode FROM tasks").fetchall())
        is_history = not in_index
        for task_id, inode in sorted(on_disk.items()):  # SQLite writes sorted rows faster
            # A different directory under the same id is a different task.
            if in_index.get(task_id) != inode:
                found = read_row(self.home, task_id)
                if found is not None:
                    row, stamp = found
                    index_tables.put(self._connection, row, inode=inode, stamp=stamp, is_history=is_history)
        for task_id in in_index.keys() - on_disk.keys():
            index_tables.delete(self._connection, task_id)
        is_stable = clock.now() - folder.st_mtime > RACY_S
        value = str(folder.st_mtime_ns) if is_stable else ""
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('tasks_mtime_ns', ?)", (value,))
        self._connection.commit()


def _inode(home: Home, task_id: str) -> int:
    try:
        return os.stat(f"{home.tasks}/{task_id}").st_ino
    except OSError:
        return 0
