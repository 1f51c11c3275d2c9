"""Read an attempt's directory and classify it with the attempt table, whichever runner started it."""

from __future__ import annotations

import os

from holdfast import clock, files, recorder
from holdfast.errors import CorruptFile
from holdfast.failpoints import failpoint
from holdfast.model.attempt_table import Reading, read_table
from holdfast.model.events import AttemptStarted
from holdfast.model.process import Exit, ProcessIdentity
from holdfast.model.record import Record
from holdfast.store import atomic, process
from holdfast.store import lock as locks
from holdfast.store.layout import AttemptDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    import resource
    from collections.abc import Callable
    from typing import Any


class AttemptRecords(Record):
    """The state of an attempt's directory."""

    reading: Reading
    identity: ProcessIdentity | None
    #: The content of identity.json, which also has the start time.
    born: dict[str, Any] | None
    exit: Exit | None
    #: Its process lives, but belongs to the home from which this one was copied.
    is_foreign: bool = False


def read_records(directory: AttemptDir, started: AttemptStarted | None) -> AttemptRecords:
    """Read lock, identity and exit record. The lock first: once it is free, the files do not change.

    The start in the journal (`started`) takes precedence over identity.json.
    """
    held = locks.is_held(directory.lock)
    # In reverse order of writing: a quick agent can start and exit between two reads, and an exit record
    # without identity would mean that nothing ran.
    ended = _json(directory.exit, _ENDED)
    failpoint("adopt.between_reads")
    born = _json(directory.identity, _BORN)
    known = started.to_json() if started is not None else born
    identity = ProcessIdentity.from_json(known) if known is not None else None
    exit_record = Exit.from_json(ended) if ended is not None else None
    reading = read_table(lock_held=held, has_identity=identity is not None, has_exit=exit_record is not None)
    return AttemptRecords(reading=reading, identity=identity, born=born, exit=exit_record)


def find_end(
    directory: AttemptDir, started: AttemptStarted | None, ask_kernel: Callable[[], bool] | None = None
) -> AttemptRecords:
    """Read the directory. If the recorder is dead and we can learn how the agent ended, write the exit record
    first. `ask_kernel` writes it for an agent that is not our child; returns whether it could."""
    found = read_records(directory, started)
    if found.reading is Reading.NEVER_STARTED and restore(directory):
        found = read_records(directory, started)
    if found.reading is not Reading.ORPHANED:
        return found
    assert found.identity is not None
    is_written = _reap(directory, found.identity) or (ask_kernel is not None and ask_kernel())
    return read_records(directory, started) if is_written else found


def _reap(directory: AttemptDir, agent: ProcessIdentity) -> bool:
    """If the agent was re-parented to us, reap it and write its exit record."""
    try:
        pid, status, usage = os.wait4(agent.pid, os.WNOHANG)
    except ChildProcessError:
        return False
    if pid == 0:
        return False
    return write_exit(directory, by="runner", status=status, usage=usage)


def write_exit(
    directory: AttemptDir, *, by: str, status: int, usage: resource.struct_rusage | None = None
) -> bool:
    """Write the exit record that a dead recorder could not write. Returns whether it could."""
    path, name = os.path.split(directory.path)
    try:
        packet = files.open_folder(os.path.dirname(path))
    except OSError:
        return False
    attempt = recorder.AttemptPlace(packet, name)
    try:
        return recorder.write_exit(attempt, by=by, status=status, usage=usage, exec_errno=None)
    finally:
        os.close(packet)
        if attempt.folder >= 0:
            os.close(attempt.folder)


def restore(directory: AttemptDir) -> bool:
    """Write identity.json again if the agent lives and removed its directory. Returns whether it did.

    It is found by its marker; it called setsid before it was executed. Slow: reads all environments.
    """
    if os.path.isdir(directory.path) or not process.HAS_PROC:
        return False
    found = [
        identity
        for pid in process.all_pids()
        if process.variable(pid, "HOLDFAST_ATTEMPT") == directory.path
        and _leads_session(pid)
        and (identity := process.identify(pid)) is not None
    ]
    if not found:
        return False
    agent = min(found, key=lambda identity: identity.start_time)
    born = {"schema": "holdfast.identity/1", **agent.to_json()}
    born |= {"started_at": clock.iso_now(), "mono_s": clock.mono()}
    atomic.make_directory(os.path.dirname(directory.path))
    atomic.make_directory(directory.path)
    atomic.write_json(directory.identity, born, durable=True)
    return True


def _leads_session(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except OSError:
        return False


_NUMBER_OR_NULL = (int, type(None))
_BORN = {"boot_id": str, "pid": int, "start_time": int, "mono_s": (int, float), "started_at": str}
_ENDED = {
    "by": str,
    "wait_status": _NUMBER_OR_NULL,
    "exit_code": _NUMBER_OR_NULL,
    "exit_signal": _NUMBER_OR_NULL,
    "exec_errno": _NUMBER_OR_NULL,
    "at": str,
    "boot_id": str,
    "mono_s": (int, float),
}


def _json(path: str, kinds: dict[str, Any]) -> dict[str, Any] | None:
    """A JSON record; None if it is missing or torn by a power cut.

    SIGKILL cannot tear it, because it was renamed in.
    """
    try:
        data = atomic.read_json(path)
    except CorruptFile:
        return None
    fits = data is not None and all(isinstance(data.get(name, ...), kind) for name, kind in kinds.items())
    return data if fits else None
