"""Which packets, schedules and retries commands of this home have made: no others are run.

`admitted/<id>` has the digests of the first journal lines of a packet: that line is what the task is about.
It also has digests of notes: of retries, which bring an environment and with it programs, of places to which
a person moved the project, and others (`Kind`). An agent that can write files only could otherwise leave a
packet in `tasks/`, and the keeper would run its command. Digests are added, never replaced: of two commands
that create the same id at once, the one that wins finds its own. Nothing here is secret (docs/security.md).
`Home.admitted` says where the directory is.
"""

from __future__ import annotations

import os

from holdfast import files
from holdfast.errors import HoldfastError
from holdfast.failpoints import failpoint
from holdfast.store import atomic, layout, no_links
from holdfast.store.digest import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Home, Packet

#: Fields of a schedule that do not say what is run.
_TIMES = ("created_at", "last_at")
_RECORD_BYTES = 1024 * 1024


def admit(packet: Packet, first_line: bytes) -> None:
    """Note a packet, durably, before it is there. Raises OSError."""
    _make(packet.home)
    _add(packet.admission, first_line)
    failpoint("admitted.added")


def adopt(packet: Packet) -> None:
    """Note a packet that is there. Raises OSError."""
    _make(packet.home)
    _add(packet.admission, _first_line(packet))


def is_admitted(packet: Packet) -> bool:
    """Whether a command made the packet, or a person has adopted it, for a process that only looks.

    The journal may be another one a moment later: who runs what it says asks `has_first_line`.
    """
    try:
        return has_first_line(packet, _first_line(packet))
    except OSError:
        return True  # no journal: nothing can be run; this is reported elsewhere


def has_first_line(packet: Packet, first_line: bytes) -> bool:
    """Whether a command made a packet that begins with this line, or a person has adopted it."""
    return _has(packet.home, packet.admission, first_line)


def objection(packet: Packet) -> str:
    """Why a packet that is not admitted is not run, where that was looked up, and what to do: the same
    sentence for all."""
    from holdfast.store import home_records  # rarely needed

    task_id, place = packet.task_id, home_records.shown(layout.records_of(packet.home.path))
    return (
        f"{task_id} was not created by a command as it is now, as far as {place} tells, so it is not run: "
        "another program or a backup brought it, or its XDG_CONFIG_HOME (or HOME) was another one; "
        f"'holdfast resume --adopt {task_id}' adopts it"
    )


class Kind:
    """What a note about a task is for. A note of one kind never counts for another."""

    REQUEST = "request"
    #: The id of a request that vanished before a runner read it: it is not applied if it comes back.
    VANISHED = "vanished"
    SANDBOX_START = "sandbox-start"
    DEPENDENCY_MET = "dependency-met"
    #: The worktree of a candidate, which we have made.
    CANDIDATE = "candidate"
    #: Where the project is now, if a person accepted that.
    PROJECT = "project"


def note(packet: Packet, kind: str, name: str, data: Any = None) -> None:
    """Note something that changes what a task runs, or whether, before it is there. Raises StorageError."""
    try:
        _make(packet.home)
        _add(packet.admission, _of_note(kind, name, data))
    except OSError as error:
        atomic.storage_failed(error, f"cannot write {packet.admission}")


def is_noted(packet: Packet, kind: str, name: str, data: Any = None) -> bool:
    """Whether one of our processes has noted just this."""
    return _has(packet.home, packet.admission, _of_note(kind, name, data))


def _of_note(kind: str, name: str, data: Any) -> bytes:
    return atomic.encode_json([kind, name, data])


def admit_schedule(home: Home, name: str, data: dict[str, Any]) -> None:
    """Note a schedule, before it is there. Raises OSError."""
    _make(home)
    _add(home.schedule_admission(name), _of_schedule(data))
    failpoint("admitted.schedule")


def is_schedule_admitted(home: Home, name: str, data: dict[str, Any]) -> bool:
    """Whether a command made the schedule."""
    return _has(home, home.schedule_admission(name), _of_schedule(data))


def _of_schedule(data: dict[str, Any]) -> bytes:
    """What is run. The times of runs may be changed by hand."""
    return atomic.encode_json(sorted((name, value) for name, value in data.items() if name not in _TIMES))


def _has(home: Home, path: str, data: bytes) -> bool:
    """Without the directory nothing is admitted: an agent that plants a packet could remove it first."""
    noted = atomic.read_small(path, _RECORD_BYTES) if no_links.is_directory(home.admitted) else None
    return noted is not None and sha256(data).encode() in noted.split()


def _make(home: Home) -> None:
    layout.make_records(home.path, is_kept=lambda: _is_kept(home))
    atomic.make_directory(home.admitted)


def _is_kept(home: Home) -> bool:
    from holdfast.store import lock as locks  # only for a home that was renamed

    try:
        return locks.is_held(home.keeper_lock)
    except HoldfastError:
        return True  # unknown


def _add(path: str, data: bytes) -> None:
    descriptor = atomic.open_own(path, os.O_WRONLY | os.O_APPEND)
    try:
        atomic.write_all(descriptor, sha256(data).encode() + b"\n")
        # The entry of a new file is synced with it on the file systems that we know.
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _first_line(packet: Packet) -> bytes:
    with files.stream(packet.journal) as file:
        return next(iter(files.lines(file)), b"")
