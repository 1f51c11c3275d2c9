"""index.db: a derived list of all tasks, so that `ls` need not open ten thousand manifests.

The keeper writes a row when a task becomes live or ends, and skips it when the database is busy. A reader
looks at the manifest of each task that has not ended, and reads those that changed, and the names in `tasks/`
when that directory changed. A missing, corrupt or outdated index is rebuilt from the packets. Runners do not
use it: SQLite would take more memory than everything else in a runner (docs/contracts/files.md).
"""

from __future__ import annotations

import os
import stat

from holdfast import clock, files, quick_json
from holdfast.errors import HoldfastError
from holdfast.model.status import ENDS, needs_look
from holdfast.quick_sqlite import sqlite3
from holdfast.store import atomic, layout
from holdfast.store.index_rows import RACY_S, brief, read_row, short, stamp_of
from holdfast.store.layout import Home, manifest_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")

_VERSION = 17
#: A row that differs in one of these has changed, for those who ask what changed. (Tokens always change.)
_CHANGE_FIELDS = (
    "status", "status_reason", "status_updated_at", "agent", "stage", "attempt", "finished_at", "wake_at",
    "interrupt", "waiting_for", "stopping", "concerns", "denied", "labels", "stages", "applied",
)  # fmt: skip
#: Number of removed tasks remembered.
_GONE_KEPT = 1000
_BUSY_MS = 200
#: Rows that changed in nothing that was asked for are written if there are more than this.
_FEW = 20
#: The plus disables the SQL index: a full scan is faster when all rows are wanted.
_ALL_ENDED = "+ended = 1"


def update(home: Home, manifest: dict[str, Any]) -> None:
    """Write one row, unless the database is busy: the index may be behind."""
    try:
        connection = _connect(home.index)
    except sqlite3.Error:
        return
    try:
        _put(connection, short(manifest), inode=_inode(home, manifest["task_id"]))
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


def forget(home: Home, task_id: str) -> None:
    """Delete the row of a removed task."""
    if not os.path.exists(home.index):
        return
    try:
        connection = _connect(home.index)
    except sqlite3.Error:
        return
    try:
        _delete(connection, task_id)
        connection.commit()
    except sqlite3.Error:
        return
    finally:
        connection.close()


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
        except (sqlite3.DatabaseError, ValueError, TypeError) as error:
            self._connection.close()
            # Another process writes for too long, or the file is read-only: use an index in memory. Otherwise
            # it is corrupt.
            is_ours = not isinstance(error, sqlite3.OperationalError) or "no such" in str(error)
            self._connection = self._rebuild() if is_ours else _connect(":memory:")
            self._follow_directory()
            return read()

    def live(self) -> list[dict[str, Any]]:
        """The tasks that have not ended, newest first, from their manifests.

        A packet that cannot be read is among them, with the state UNREADABLE and the reason.
        """
        return self._read_or_rebuild(self._live)

    def _live(self) -> list[dict[str, Any]]:
        return self._current(
            "SELECT task_id, short, stamp FROM tasks WHERE ended = 0 ORDER BY started_at DESC, task_id DESC",
            lambda row: row,
        )

    def brief(self) -> list[dict[str, Any]]:
        """The tasks of `live`, in no order, with only what a table shows (`index_rows.brief`)."""
        return self._read_or_rebuild(
            lambda: self._current("SELECT task_id, text, stamp FROM brief", brief),
        )

    def _current(self, query: str, shape: Callable[[dict[str, Any]], dict[str, Any]]) -> list[dict[str, Any]]:
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
            self._keep(changed)
        # Parsed as one text: parsing ten thousand small ones takes twice as long.
        return quick_json.loads(f"[{','.join(texts)}]")

    def _keep(self, rows: list[tuple[dict[str, Any], str]]) -> None:
        try:
            for row, stamp in rows:
                _put(self._connection, row, inode=_inode(self.home, row["task_id"]), stamp=stamp)
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
            query = "SELECT short FROM tasks WHERE ended = 1 ORDER BY started_at DESC, task_id DESC LIMIT ?"
            rows = self._connection.execute(query, (limit,)).fetchall()
        return quick_json.loads(f"[{','.join(text for (text,) in rows)}]")

    def to_look_at(self, since: str) -> list[dict[str, Any]]:
        """The tasks that ended since then and that a person should look at, in no order."""
        return self._read_or_rebuild(lambda: self._to_look_at(since))

    def _to_look_at(self, since: str) -> list[dict[str, Any]]:
        query = "SELECT short FROM tasks WHERE look_at >= ?"
        rows = self._connection.execute(query, (since,)).fetchall()
        return quick_json.loads(f"[{','.join(text for (text,) in rows)}]")

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
        return [(at, task_id, quick_json.loads(text) if text else None) for at, task_id, text in rows]

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
            return _connect(self.home.index)
        except sqlite3.OperationalError:
            return _connect(":memory:")  # a read-only home
        except sqlite3.DatabaseError:
            return self._rebuild()

    def _rebuild(self) -> sqlite3.Connection:
        """Replace a corrupt or outdated index."""
        try:
            for suffix in ("", "-wal", "-shm"):
                atomic.remove(self.home.index + suffix)
            return _connect(self.home.index)
        except (sqlite3.Error, HoldfastError):
            return _connect(":memory:")

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
                    _put(self._connection, row, inode=inode, stamp=stamp, is_history=is_history)
        for task_id in in_index.keys() - on_disk.keys():
            _delete(self._connection, task_id)
        is_stable = clock.now() - folder.st_mtime > RACY_S
        value = str(folder.st_mtime_ns) if is_stable else ""
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('tasks_mtime_ns', ?)", (value,))
        self._connection.commit()


def _connect(path: str) -> sqlite3.Connection:
    is_new = path != ":memory:" and not put_aside_non_files(path)
    connection = sqlite3.connect(path, timeout=_BUSY_MS / 1000)
    try:
        if is_new:
            os.chmod(path, 0o600)
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _VERSION):
            raise sqlite3.DatabaseError(f"version {version}")
        # Derived: a power failure may lose rows, but no information.
        connection.execute("PRAGMA synchronous = OFF")
        if version == 0:
            connection.executescript(
                f"""
                PRAGMA journal_mode = WAL;
                CREATE TABLE IF NOT EXISTS tasks (
                    task_id TEXT PRIMARY KEY, status TEXT, ended INTEGER, started_at TEXT, short TEXT,
                    inode INTEGER, stamp TEXT, news TEXT, seq INTEGER, look_at TEXT
                );
                CREATE INDEX IF NOT EXISTS tasks_to_look_at ON tasks (look_at) WHERE look_at IS NOT NULL;
                CREATE INDEX IF NOT EXISTS tasks_by_change ON tasks (seq);
                CREATE TABLE IF NOT EXISTS brief (task_id TEXT PRIMARY KEY, text TEXT, stamp TEXT)
                    WITHOUT ROWID;
                CREATE TABLE IF NOT EXISTS gone (task_id TEXT PRIMARY KEY, seq INTEGER);
                CREATE INDEX IF NOT EXISTS tasks_by_start ON tasks (ended, started_at, task_id);
                CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT);
                INSERT OR IGNORE INTO meta VALUES
                    ('id', '{os.urandom(6).hex()}'), ('seq', '0'), ('gone_from', '0');
                PRAGMA user_version = {_VERSION};
                """
            )
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def put_aside_non_files(path: str) -> bool:
    """Rename what is not a regular file in place of a database: SQLite would wait for a pipe.

    Returns whether there is a database. Raises sqlite3.OperationalError if that cannot be done.
    """
    try:
        for each in (path, f"{path}-wal", f"{path}-shm"):
            try:
                if not stat.S_ISREG(os.lstat(each).st_mode):
                    atomic.put_aside(each)
            except FileNotFoundError:
                continue
        if os.path.exists(path) and not os.access(path, os.R_OK):
            atomic.put_aside(path)
        return os.path.exists(path)
    except OSError as error:
        raise sqlite3.OperationalError(f"{error.filename}: {error.strerror}") from error


def _put(
    connection: sqlite3.Connection,
    row: dict[str, Any],
    *,
    inode: int,
    stamp: str = "",
    is_history: bool = False,
) -> None:
    """Write a row. Without a stamp, the next reader reads the manifest again.

    With `is_history`, the index is being built: it has no row of the task.
    """
    ended, text = int(row["status"] in ENDS), quick_json.dumps(row, is_compact=True)
    # When it ended, if a person should look at it.
    look_at = row.get("finished_at") if ended and needs_look(row) else None
    news = repr([row.get(name) for name in _CHANGE_FIELDS])
    if is_history and ended:
        seq = 0  # it ended before anybody asked
    else:
        query = "SELECT news, seq FROM tasks WHERE task_id = ?"
        old = connection.execute(query, (row["task_id"],)).fetchone()
        seq = old[1] if old is not None and old[0] == news else _next_seq(connection)
    connection.execute(
        "INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (row["task_id"], row["status"], ended, row["started_at"], text, inode, stamp, news, seq, look_at),
    )
    if not ended:
        listed = (row["task_id"], quick_json.dumps(brief(row), is_compact=True), stamp)
        connection.execute("INSERT OR REPLACE INTO brief VALUES (?, ?, ?)", listed)
    elif not is_history:
        connection.execute("DELETE FROM brief WHERE task_id = ?", (row["task_id"],))


def _next_seq(connection: sqlite3.Connection) -> int:
    seq = int(connection.execute("SELECT value FROM meta WHERE key = 'seq'").fetchone()[0]) + 1
    connection.execute("UPDATE meta SET value = ? WHERE key = 'seq'", (str(seq),))
    return seq


def _delete(connection: sqlite3.Connection, task_id: str) -> None:
    """Delete the row of a task that is gone, and remember that for those who ask what changed."""
    connection.execute("DELETE FROM brief WHERE task_id = ?", (task_id,))
    if connection.execute("DELETE FROM tasks WHERE task_id = ?", (task_id,)).rowcount == 0:
        return
    seq = _next_seq(connection)
    connection.execute("INSERT OR REPLACE INTO gone VALUES (?, ?)", (task_id, seq))
    oldest = connection.execute("SELECT seq FROM gone ORDER BY seq DESC LIMIT 1 OFFSET ?", (_GONE_KEPT,))
    if (found := oldest.fetchone()) is not None:
        connection.execute("DELETE FROM gone WHERE seq <= ?", found)
        connection.execute("UPDATE meta SET value = ? WHERE key = 'gone_from'", (str(found[0]),))


def _inode(home: Home, task_id: str) -> int:
    try:
        return os.stat(f"{home.tasks}/{task_id}").st_ino
    except OSError:
        return 0
