"""The tables of queue.db, and opening it. A corrupt or outdated database is renamed, never deleted."""

from __future__ import annotations

import os
import sqlite3
import stat

from holdfast import clock
from holdfast.store import atomic, index_tables
from holdfast.store import lock as locks

VERSION = 1
#: Eight writers in a tight loop can starve one of them for two seconds.
BUSY_S = 10.0

_TABLES = f"""
PRAGMA journal_mode = WAL;
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS items (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id TEXT NOT NULL UNIQUE,
    priority INTEGER NOT NULL,
    pool TEXT NOT NULL,
    agent TEXT NOT NULL,
    after TEXT NOT NULL,
    not_before TEXT,
    not_before_s REAL NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    front INTEGER NOT NULL,
    claimed_by TEXT,
    claimed_at TEXT,
    attempts INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    added_at TEXT NOT NULL,
    memory_mb INTEGER NOT NULL,
    waits INTEGER NOT NULL,
    -- 1: claimed, 0: may be claimed, null: neither. A claim moves its index entry only a few places.
    line INTEGER AS (
        CASE WHEN state = 'claimed' THEN 1 WHEN state = 'queued' AND waits = 0 THEN 0 END
    ) VIRTUAL
);
CREATE INDEX IF NOT EXISTS lines ON items (line DESC, front DESC, priority DESC, seq) WHERE line IS NOT NULL;
CREATE TABLE IF NOT EXISTS waits (
    task_id TEXT NOT NULL, on_id TEXT NOT NULL, has_failed INTEGER NOT NULL, PRIMARY KEY (task_id, on_id)
);
CREATE INDEX IF NOT EXISTS waited_for ON waits (on_id);
CREATE TABLE IF NOT EXISTS paused (pool TEXT PRIMARY KEY);
PRAGMA user_version = {VERSION};
COMMIT;
"""
#: All that the database has; SQLite makes the last one, for AUTOINCREMENT.
_SCHEMA = index_tables.schema_of(_TABLES) | {"CREATE TABLE sqlite_sequence(name,seq)"}


class UnusableFile(Exception):
    """The file is corrupt or of another version."""


def connect(path: str) -> tuple[sqlite3.Connection, bool]:
    """Open the database. Returns the connection and whether it is new and must be filled.

    Raises UnusableFile, sqlite3.OperationalError.
    """
    is_there = index_tables.put_aside_others(path)
    if not index_tables.has_room(path):
        raise sqlite3.OperationalError("the disk is full")
    if not is_there:
        index_tables.create(path)
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, VERSION):
            raise UnusableFile(f"its version is {version}, but this holdfast uses {VERSION}")
        index_tables.refuse_others(connection, _SCHEMA, is_new=version == 0)
        if version == 0:
            connection.executescript(_TABLES)
        # Packets are the source of truth: a power failure may lose the newest claims, and `sync` restores
        # them.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("SELECT count(*) FROM paused").fetchone()
        return connection, version == 0
    except sqlite3.OperationalError as error:
        connection.close()
        # A file without read permission is useless: it is rebuilt.
        if "no such" in str(error) or (_is_file(path) and not os.access(path, os.R_OK)):
            raise UnusableFile(str(error)) from error
        raise
    except sqlite3.DatabaseError as error:
        connection.close()
        raise UnusableFile(str(error)) from error
    except UnusableFile:
        connection.close()
        raise


def copied(path: str) -> sqlite3.Connection:
    """A copy in memory, for a read-only home: changes are not saved.

    Raises UnusableFile, sqlite3.OperationalError.
    """
    memory = sqlite3.connect(":memory:", isolation_level=None)
    try:
        if not _is_file(path):
            memory.executescript(_TABLES)
            return memory
        source = _readable(path)
        try:
            source.backup(memory)
        finally:
            source.close()
        version = memory.execute("PRAGMA user_version").fetchone()[0]
        if version != VERSION:
            raise UnusableFile(f"its version is {version}, but this holdfast uses {VERSION}")
    except BaseException:
        memory.close()
        raise
    return memory


def refuse_others(connection: sqlite3.Connection) -> None:
    """Raises sqlite3.DatabaseError if a database that is not new has other tables than ours."""
    index_tables.refuse_others(connection, _SCHEMA)


def _is_file(path: str) -> bool:
    """Whether there is a database that SQLite can open without waiting."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def _readable(path: str) -> sqlite3.Connection:
    """Open the database read-only.

    With a writer, SQLite's shared files exist; without one, or on a full disk, the file is immutable.
    """
    from urllib.parse import quote

    alone = "mode=ro&immutable=1"
    for options in ("mode=ro", alone) if index_tables.has_room(path) else (alone,):
        connection = sqlite3.connect(f"file:{quote(path)}?{options}", timeout=BUSY_S, uri=True)
        try:
            refuse_others(connection)
            return connection
        except sqlite3.OperationalError as error:
            connection.close()
            if options == alone:
                raise
            if "no such" in str(error):
                raise UnusableFile(str(error)) from error
        except sqlite3.DatabaseError as error:
            connection.close()
            raise UnusableFile(str(error)) from error
    raise AssertionError("unreachable")


def put_aside(path: str) -> None:
    """Rename an unusable database, unless another process has already replaced it."""
    lock = locks.acquire(f"{path}.lock", role="queue", within_s=BUSY_S)
    try:
        try:
            connection, _ = connect(path)
            try:
                is_sound = connection.execute("PRAGMA quick_check").fetchone()[0] == "ok"
                for table in ("items", "waits", "paused"):
                    connection.execute(f"SELECT * FROM {table}").fetchall()  # raises if a text is not UTF-8
                if is_sound:
                    return
            finally:
                connection.close()
        except (UnusableFile, sqlite3.DatabaseError):
            pass
        name = f"{path}.broken-{clock.iso_now()}"
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(path + suffix):
                os.rename(path + suffix, name + suffix)
        atomic.sync_directory(os.path.dirname(path))
    finally:
        lock.release()
