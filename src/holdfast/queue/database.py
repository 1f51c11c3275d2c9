"""The open database of a queue: transactions, and what happens when the file is unusable."""

from __future__ import annotations

import os
import sqlite3

from holdfast.errors import CorruptFile, StorageError
from holdfast.queue import tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    T = TypeVar("T")


class Database:
    """queue.db. With `in_memory`, a copy in memory whose changes are not saved.

    Raises StorageError if the file is unusable for now, CorruptFile if it was corrupt and has been renamed.
    """

    def __init__(self, path: str, *, in_memory: bool) -> None:
        self.path = path
        self.is_copy = in_memory
        #: Whether the database was just created and must be filled.
        self.is_new = False
        self._inode = 0
        #: The number of its last change of tables that was looked at.
        self._schema = -1
        try:
            if in_memory:
                self._connection = tables.copied(path)
                return
            try:
                self._connection, self.is_new = tables.connect(path)
            except tables.UnusableFile:
                tables.put_aside(path)
                self._connection, self.is_new = tables.connect(path)
        except (tables.UnusableFile, sqlite3.DatabaseError) as error:
            raise self._unusable(error) from error
        self._inode = os.stat(path).st_ino

    @property
    def is_current(self) -> bool:
        """Whether the file is still the one that was opened (an unusable one is renamed)."""
        try:
            return os.stat(self.path).st_ino == self._inode
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def execute(self, query: str, *values: Any) -> sqlite3.Cursor:
        """Run one statement; inside `read` or `write`."""
        return self._connection.execute(query, values)

    def execute_many(self, query: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run one statement for each row; inside `write`."""
        self._connection.executemany(query, rows)

    def read(self, act: Callable[[], T]) -> T:
        """Run `act` in a read transaction."""
        return self._transaction("BEGIN", act)

    def write(self, act: Callable[[], T]) -> T:
        """Run `act` in a write transaction.

        IMMEDIATE, because two transactions that read and then write would block each other.
        """
        return self._transaction("BEGIN IMMEDIATE", act)

    def _transaction(self, begin: str, act: Callable[[], T]) -> T:
        execute = self._connection.execute
        try:
            execute(begin)
            try:
                self._refuse_new_tables()
                result = act()
                execute("COMMIT")
                return result
            except BaseException:
                if self._connection.in_transaction:
                    execute("ROLLBACK")
                raise
        except sqlite3.DatabaseError as error:
            # A text that is not UTF-8 is an OperationalError, too, but it stays.
            if isinstance(error, sqlite3.OperationalError) and "decode" not in str(error):
                raise self._unusable(error) from error
            self.close()
            if self.is_copy:
                raise self._unusable(error) from error
            tables.put_aside(self.path)
            raise CorruptFile(
                f"the queue {self.path} was corrupt and has been renamed: {error}",
                hint="try again: it is rebuilt from the packets",
            ) from error

    def _refuse_new_tables(self) -> None:
        """Raises sqlite3.DatabaseError. The file stays open for days, and an agent can change its tables."""
        (number,) = self._connection.execute("PRAGMA schema_version").fetchone()
        if number != self._schema:
            tables.refuse_others(self._connection)
            self._schema = number

    def _unusable(self, error: Exception) -> StorageError:
        hint = "try again; 'holdfast doctor' checks the disk"
        if os.path.exists(self.path) and not os.access(self.path, os.R_OK | os.W_OK):
            hint = "is it read-only, or does it belong to another user?"
        return StorageError(f"cannot use the queue {self.path}: {error}", hint=hint)
