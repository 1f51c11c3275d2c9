"""The tables of index.db: opening it, writing a row, deleting one. Every change gets a number."""

from __future__ import annotations

import os
import stat

from holdfast import files, quick_json
from holdfast.model.status import ENDS, needs_look, newest_at
from holdfast.quick_sqlite import sqlite3
from holdfast.store import atomic
from holdfast.store.index_rows import brief

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_VERSION = 19
#: A row that differs in one of these has changed, for those who ask what changed. (Tokens always change.)
_CHANGE_FIELDS = (
    "status", "status_reason", "status_updated_at", "agent", "stage", "attempt", "finished_at", "wake_at",
    "interrupt", "waiting_for", "stopping", "concerns", "denied", "labels", "stages", "applied",
)  # fmt: skip
#: Number of removed tasks remembered.
_GONE_KEPT = 1000
_BUSY_MS = 200
#: SQLite writes one byte in each piece of this size of a file that it maps into memory (-shm).
_MAPPED_BYTES = 4096
#: The end of a rollback journal that names a second journal, for transactions on several databases. SQLite
#: removes the file of that name, whatever it is.
_NAMES_ANOTHER = bytes.fromhex("d9d505f920a163d7")
#: What two databases need of a disk with smaller blocks.
_ROOM_BYTES = 256 * 1024


_TABLES = """
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS tasks (
    task_id TEXT PRIMARY KEY, status TEXT, ended INTEGER, newest_at TEXT, short TEXT,
    inode INTEGER, stamp TEXT, news TEXT, seq INTEGER, look_at TEXT
);
CREATE INDEX IF NOT EXISTS tasks_to_look_at ON tasks (look_at) WHERE look_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS tasks_by_change ON tasks (seq);
CREATE TABLE IF NOT EXISTS brief (task_id TEXT PRIMARY KEY, text TEXT, stamp TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS gone (task_id TEXT PRIMARY KEY, seq INTEGER);
CREATE INDEX IF NOT EXISTS tasks_by_time ON tasks (ended, newest_at, task_id);
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT);
"""


def schema_of(script: str) -> frozenset[str]:
    """The statements of a script that create tables and indexes, as SQLite keeps them."""
    statements = map(str.strip, script.split(";"))
    return frozenset(
        each.replace(" IF NOT EXISTS", "", 1) for each in statements if each.startswith("CREATE ")
    )


def refuse_others(connection: sqlite3.Connection, schema: frozenset[str], *, is_new: bool = False) -> None:
    """Raises sqlite3.DatabaseError if a database has other tables than ours: a view, a trigger, a constraint
    or a column may be a computation that never ends. One that is new may lack some."""
    # One more than ours is enough to tell.
    query = f"SELECT sql FROM sqlite_master WHERE sql IS NOT NULL LIMIT {len(schema) + 1}"
    found = frozenset(str(text) for (text,) in connection.execute(query))
    if not (found <= schema if is_new else found == schema):
        raise sqlite3.DatabaseError("its tables are not those of this holdfast")


def connect(path: str) -> sqlite3.Connection:
    """Open the database, and create its tables if it is new.

    Raises sqlite3.DatabaseError if it is corrupt or of another version, and its subclass OperationalError if
    it cannot be used now.
    """
    is_new = path != ":memory:" and not put_aside_others(path)
    if path != ":memory:" and not has_room(path):
        raise sqlite3.OperationalError("the disk is full")
    if is_new:
        create(path)
    connection = sqlite3.connect(path, timeout=_BUSY_MS / 1000)
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _VERSION):
            raise sqlite3.DatabaseError(f"version {version}")
        refuse_others(connection, schema_of(_TABLES), is_new=version == 0)
        # Derived: a power failure may lose rows, but no information.
        connection.execute("PRAGMA synchronous = OFF")
        if version == 0:
            connection.executescript(
                f"""
                {_TABLES}
                INSERT OR IGNORE INTO meta VALUES
                    ('id', '{os.urandom(6).hex()}'), ('seq', '0'), ('gone_from', '0');
                PRAGMA user_version = {_VERSION};
                """
            )
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def has_room(path: str) -> bool:
    """Whether a database can be opened without a risk to this process.

    If the blocks of a disk are smaller than the pieces that SQLite allocates, the rest of a piece is a hole.
    On a full disk, the kernel cannot fill it when SQLite writes there, and kills the process (SIGBUS).
    """
    try:
        disk = os.statvfs(os.path.dirname(path))
    except OSError:
        return True  # opening it tells why
    return disk.f_frsize >= _MAPPED_BYTES or disk.f_bavail * disk.f_frsize >= _ROOM_BYTES


def put_aside_others(path: str) -> bool:
    """Rename what is not a regular file of ours in place of a database: SQLite would wait for a pipe, write
    to a user's database that has a second name here, and remove a file that a journal names.

    Returns whether there is a database. Raises sqlite3.OperationalError if that cannot be done.
    """
    try:
        journal = f"{path}-journal"
        for each in (path, f"{path}-wal", f"{path}-shm", journal):
            try:
                found = os.lstat(each)
                is_ours = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
                if not is_ours or (each == journal and _names_another(each)):
                    atomic.put_aside(each)
            except FileNotFoundError:
                continue
        if os.path.exists(path) and not os.access(path, os.R_OK):
            atomic.put_aside(path)
        return os.path.exists(path)
    except OSError as error:
        raise sqlite3.OperationalError(f"{error.filename}: {error.strerror}") from error


def create(path: str) -> None:
    """Create an empty database that only its owner can read. SQLite would create it for others, too; a change
    of its mode would follow a link. Raises sqlite3.OperationalError."""
    try:
        os.close(atomic.open_own(path, os.O_RDWR))
    except OSError as error:
        raise sqlite3.OperationalError(f"{path}: {error.strerror}") from error


def _names_another(journal: str) -> bool:
    descriptor = files.open_regular(journal)
    try:
        size, length = os.fstat(descriptor).st_size, len(_NAMES_ANOTHER)
        return size >= length and os.pread(descriptor, length, size - length) == _NAMES_ANOTHER
    finally:
        os.close(descriptor)


def put(
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
        (row["task_id"], row["status"], ended, newest_at(row), text, inode, stamp, news, seq, look_at),
    )
    if not ended:
        listed = (row["task_id"], quick_json.dumps(brief(row), is_compact=True), stamp)
        connection.execute("INSERT OR REPLACE INTO brief VALUES (?, ?, ?)", listed)
    elif not is_history:
        connection.execute("DELETE FROM brief WHERE task_id = ?", (row["task_id"],))


def _next_seq(connection: sqlite3.Connection) -> int:
    # Writing comes first: it begins the transaction. Two writers that read first would get the same number,
    # and whoever knows one of the two changes would never be told of the other.
    connection.execute("UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'seq'")
    return int(connection.execute("SELECT value FROM meta WHERE key = 'seq'").fetchone()[0])


def delete(connection: sqlite3.Connection, task_id: str) -> None:
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
