"""index.db: a derived list of all tasks, so that `ls` does not open ten thousand manifests.

The keeper puts a row when a task comes to life or has ended, or skips it when the database is busy. A reader looks again at
the manifests of the tasks that have not ended, and at the names in `tasks/` whenever that directory changed. What is
missing, corrupt or of another version is built anew from the packets. Runners stay out of it: SQLite would cost each of
them more memory than everything else they do (docs/contracts/files.md).
"""

from __future__ import annotations

import json
import os
import sqlite3

from holdfast import clock
from holdfast.model.status import ENDS
from holdfast.store import atomic, layout
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_VERSION = 5
#: What a row holds of a manifest: enough for `ls`.
FIELDS = (
    "schema", "task_id", "task_name", "goal", "status", "status_reason", "agent", "model", "stage", "attempt",
    "retry_count", "total_retries", "started_at", "begun_at", "finished_at", "wake_at", "usage", "project_dir", "pid", "exit_code",
    "active_s", "interrupt", "last_progress_at", "progress", "verdict",
)  # fmt: skip
_BUSY_MS = 200
#: The plus keeps SQLite from its index: where all are wanted, page after page is faster than row after row.
_ALL_ENDED = "+ended = 1"
#: A directory that changed within this time may change again without a newer time stamp.
_RACY_S = 0.1


def short(manifest: dict[str, Any]) -> dict[str, Any]:
    """The short manifest."""
    return {**{field: manifest.get(field) for field in FIELDS}, "schema": "holdfast.short-manifest/1"}


def update(home: Home, manifest: dict[str, Any]) -> None:
    """Put one row, unless somebody else is writing: the index is allowed to be behind."""
    try:
        connection = _connect(home.index)
    except sqlite3.Error:
        return
    try:
        _put(connection, manifest, _inode(home, manifest["task_id"]))
        connection.commit()
    except sqlite3.Error:
        return
    finally:
        connection.close()


def forget(home: Home, task_id: str) -> None:
    """Drop the row of a task that was removed."""
    if not os.path.exists(home.index):
        return
    try:
        connection = _connect(home.index)
    except sqlite3.Error:
        return
    try:
        connection.execute("DELETE FROM tasks WHERE task_id = ?", (task_id,))
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
        try:
            self._follow_directory()
        except sqlite3.DatabaseError as error:
            self._connection.close()
            # Somebody else writes for too long, or we may not: an index of our own, for this once. Otherwise it is corrupt.
            is_ours = not isinstance(error, sqlite3.OperationalError)
            self._connection = self._rebuild() if is_ours else _connect(":memory:")
            self._follow_directory()

    def live(self) -> list[dict[str, Any]]:
        """The tasks that have not ended, newest first, as their manifests say now."""
        found: list[dict[str, Any]] = []
        changed: list[dict[str, Any]] = []
        for task_id, text in self._rows("ended = 0"):
            manifest = _manifest(self.home, task_id)
            row = short(manifest) if manifest is not None else json.loads(text)
            if manifest is not None and json.dumps(row) != text:
                changed.append(manifest)
            found.append(row)
        self._keep(changed)
        return found

    def _keep(self, manifests: list[dict[str, Any]]) -> None:
        try:
            for manifest in manifests:
                _put(self._connection, manifest, _inode(self.home, manifest["task_id"]))
            self._connection.commit()
        except sqlite3.OperationalError:
            self._connection.rollback()  # busy: the next reader does it

    def ended(self, limit: int | None) -> list[dict[str, Any]]:
        """The last tasks that have ended, newest first; with None all of them, in no order."""
        if limit is None:
            rows = self._connection.execute(f"SELECT short FROM tasks WHERE {_ALL_ENDED}").fetchall()
        else:
            rows = [(text,) for _, text in self._rows("ended = 1", limit)]
        # As one text: ten thousand small ones take twice as long.
        return json.loads(f"[{','.join(text for (text,) in rows)}]")

    def overview(self) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """The tasks that have not ended, as `live` has them, and how many have, by state. No task is in both or in neither."""
        self._connection.execute("BEGIN")  # one snapshot for both; `live` ends it
        query = f"SELECT status, count(*) FROM tasks WHERE {_ALL_ENDED} GROUP BY status"
        counts = dict(self._connection.execute(query).fetchall())
        return self.live(), counts

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def _rows(self, where: str, limit: int = -1) -> list[tuple[str, str]]:
        query = (
            f"SELECT task_id, short FROM tasks WHERE {where} ORDER BY started_at DESC, task_id DESC LIMIT ?"
        )
        return self._connection.execute(query, (limit,)).fetchall()

    def _open(self) -> sqlite3.Connection:
        try:
            return _connect(self.home.index)
        except sqlite3.OperationalError:
            return _connect(":memory:")  # a home that we may only read
        except sqlite3.DatabaseError:
            return self._rebuild()

    def _rebuild(self) -> sqlite3.Connection:
        """Corrupt, or of another version: it holds nothing that the packets do not."""
        for suffix in ("", "-wal", "-shm"):
            atomic.remove(self.home.index + suffix)
        return _connect(self.home.index)

    def _follow_directory(self) -> None:
        """Add the tasks that are on disk and not in the index, drop those that are gone."""
        try:
            found = os.stat(self.home.tasks)
        except FileNotFoundError:
            return
        known = self._connection.execute("SELECT value FROM meta WHERE key = 'tasks_mtime_ns'").fetchone()
        if known is not None and known[0] == str(found.st_mtime_ns):
            return
        with os.scandir(self.home.tasks) as entries:
            on_disk = {
                entry.name: entry.inode()
                for entry in entries
                if entry.name[0] != "." and layout.is_packet(entry)
            }
        in_index = dict(self._connection.execute("SELECT task_id, inode FROM tasks").fetchall())
        for task_id, inode in on_disk.items():
            # Another directory under an old id is another task.
            if in_index.get(task_id) != inode:
                manifest = _manifest(self.home, task_id)
                if manifest is not None:
                    _put(self._connection, manifest, inode)
        for task_id in in_index.keys() - on_disk.keys():
            self._connection.execute("DELETE FROM tasks WHERE task_id = ?", (task_id,))
        is_settled = clock.now() - found.st_mtime > _RACY_S
        value = str(found.st_mtime_ns) if is_settled else ""
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('tasks_mtime_ns', ?)", (value,))
        self._connection.commit()


def _connect(path: str) -> sqlite3.Connection:
    is_new = path != ":memory:" and not os.path.exists(path)
    connection = sqlite3.connect(path, timeout=_BUSY_MS / 1000)
    try:
        if is_new:
            os.chmod(path, 0o600)
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _VERSION):
            raise sqlite3.DatabaseError(f"version {version}")
        # Derived: a power cut may cost rows, never facts.
        connection.execute("PRAGMA synchronous = OFF")
        if version == 0:
            connection.executescript(
                f"""
                PRAGMA journal_mode = WAL;
                CREATE TABLE IF NOT EXISTS tasks (
                    task_id TEXT PRIMARY KEY, status TEXT, ended INTEGER, started_at TEXT, short TEXT, inode INTEGER
                );
                CREATE INDEX IF NOT EXISTS tasks_by_start ON tasks (ended, started_at, task_id);
                CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT);
                PRAGMA user_version = {_VERSION};
                """
            )
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _put(connection: sqlite3.Connection, manifest: dict[str, Any], inode: int) -> None:
    row = short(manifest)
    ended = int(row["status"] in ENDS)
    connection.execute(
        "INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, ?, ?, ?)",
        (row["task_id"], row["status"], ended, row["started_at"], json.dumps(row), inode),
    )


def _inode(home: Home, task_id: str) -> int:
    try:
        return os.stat(home.packet(task_id).path).st_ino
    except OSError:
        return 0


def _manifest(home: Home, task_id: str) -> dict[str, Any] | None:
    try:
        return atomic.read_json(home.packet(task_id).manifest)
    except atomic.CorruptFile:
        return None
