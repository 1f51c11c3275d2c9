"""Reading an attempt's directory: what the table says about it, whoever started it."""

from __future__ import annotations

from holdfast.errors import CorruptFile
from holdfast.model.attempt import Reading, read_table
from holdfast.model.process import Exit, ProcessIdentity
from holdfast.model.record import Record
from holdfast.store import atomic
from holdfast.store import lock as locks
from holdfast.store.layout import AttemptDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Found(Record):
    """What is there."""

    reading: Reading
    identity: ProcessIdentity | None
    #: identity.json as it is: it also holds the time of the start.
    born: dict[str, Any] | None
    exit: Exit | None


def look(directory: AttemptDir) -> Found:
    """Read lock, identity and exit record. The lock comes first: once it is free, the files do not change any more."""
    held = locks.is_held(directory.lock)
    born = _json(directory.identity)
    ended = _json(directory.exit)
    identity = ProcessIdentity.from_json(born) if born is not None else None
    exit_record = Exit.from_json(ended) if ended is not None else None
    reading = read_table(lock_held=held, has_identity=identity is not None, has_exit=exit_record is not None)
    return Found(reading=reading, identity=identity, born=born, exit=exit_record)


def _json(path: str) -> dict[str, Any] | None:
    """A record that a power cut tore is as good as none; it was renamed in, so SIGKILL cannot tear it."""
    try:
        return atomic.read_json(path)
    except CorruptFile:
        return None
