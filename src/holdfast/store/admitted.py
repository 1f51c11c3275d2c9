"""Which packets and schedules commands of this home have made: the keeper runs no others.

`<home>/admitted/<id>` has the digests of the first journal lines of a packet: that line is what the task is
about. An agent that can write files only could otherwise leave a packet in `tasks/`, and the keeper would run
its command. Digests are added, never replaced: of two commands that create the same id at once, the one that
wins finds its own. Nothing here is secret (docs/security.md).
"""

from __future__ import annotations

import os

from holdfast import files
from holdfast.errors import HoldfastError
from holdfast.failpoints import failpoint
from holdfast.store import atomic, layout
from holdfast.store.digest import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Home, Packet

#: Fields of a schedule that do not say what is run.
_TIMES = ("created_at", "last_at")
_RECORD_BYTES = 64 * 1024


def admit(packet: Packet, first_line: bytes) -> None:
    """Note a packet, durably, before it is there. Raises OSError."""
    _prepare(packet.home)
    _add(packet.admission, first_line)
    failpoint("admitted.added")


def adopt(packet: Packet) -> None:
    """Note a packet that is there. Raises OSError."""
    _prepare(packet.home)
    _add(packet.admission, _first_line(packet))


def is_admitted(packet: Packet) -> bool:
    """Whether a command made the packet, or a person has adopted it."""
    try:
        return _has(packet.home, packet.admission, _first_line(packet))
    except OSError:
        return True  # no journal: there is nothing to run, and others say so


def admit_schedule(home: Home, name: str, data: dict[str, Any]) -> None:
    """Note a schedule, before it is there. Raises OSError."""
    _prepare(home)
    _add(home.schedule_admission(name), _of_schedule(data))
    failpoint("admitted.schedule")


def is_schedule_admitted(home: Home, name: str, data: dict[str, Any]) -> bool:
    """Whether a command made the schedule."""
    return _has(home, home.schedule_admission(name), _of_schedule(data))


def _of_schedule(data: dict[str, Any]) -> bytes:
    """What is run. The times of runs may be changed by hand."""
    return atomic.encode_json(sorted((name, value) for name, value in data.items() if name not in _TIMES))


def _has(home: Home, path: str, data: bytes) -> bool:
    noted = atomic.read_small(path, _RECORD_BYTES)
    if noted is None:
        return not os.path.lexists(home.admitted)  # a home of an older version, or of a backup without it
    return sha256(data).encode() in noted.split()


def _prepare(home: Home) -> None:
    """Make the directory. What is in a home without it was made by an older version: it is noted, too."""
    if os.path.isdir(home.admitted):
        return
    from holdfast import ids

    staged = f"{home.admitted}.{ids.new_ulid()}.tmp"
    os.mkdir(staged, 0o700)
    try:
        with os.scandir(home.tasks) as entries:
            names = [entry.name for entry in entries if entry.name[0] != "." and layout.is_packet(entry)]
    except FileNotFoundError:
        names = []
    for name in names:
        packet = home.packet(name)
        try:
            _add(os.path.join(staged, name), _first_line(packet))
        except OSError:
            continue  # unreadable
    for name in _schedules(home):
        try:
            data = atomic.read_json(home.schedule(name)) or {}
        except HoldfastError:
            continue  # unreadable
        _add(os.path.join(staged, os.path.basename(home.schedule_admission(name))), _of_schedule(data))
    try:
        os.rename(staged, home.admitted)
    except OSError:
        from holdfast.store.directories import remove_tree

        remove_tree(staged)
        atomic.make_directory(home.admitted)  # another command was faster; or something has its name


def _schedules(home: Home) -> list[str]:
    try:
        return [name.removesuffix(".json") for name in os.listdir(home.schedules) if name.endswith(".json")]
    except OSError:
        return []


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
