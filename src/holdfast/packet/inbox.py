"""The inbox: one durable file per request, and a bell to wake the runner."""

from __future__ import annotations

import errno
import os
import stat

from holdfast import clock, ids
from holdfast.errors import CorruptFile, HoldfastError, StorageError
from holdfast.failpoints import failpoint
from holdfast.model.request import Request
from holdfast.store import admitted, atomic
from holdfast.store.directories import restore_modes
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: A request is short; a `retry` contains an environment.
MAX_BYTES = 1024 * 1024
#: Requests of which a file in the inbox alone is not believed: one brings an environment, and with it
#: programs; the others come from the keeper, which knows whose turn it is, and from `queue done`.
RECORDED = frozenset({"retry", "start", "done"})


def drop(
    packet: Packet,
    verb: str,
    args: dict[str, Any],
    *,
    by: str,
    asker: str = "holdfast",
    request_id: str = "",
) -> Request:
    """Put a request into the inbox, durably.

    The caller then makes sure that there is a runner, and rings the bell. With `request_id`, it may be called
    again after a kill: a runner applies each id once.
    """
    name = request_id or ids.new_ulid()
    request = Request(id=name, verb=verb, args=args, by=by, asker=asker, at=clock.iso_now())
    if verb in RECORDED:
        admitted.note(packet, admitted.Kind.REQUEST, request.id, _asked_for(request))
    if not os.path.isdir(packet.inbox) and os.path.isdir(packet.path):
        atomic.make_directory(packet.inbox)  # an agent removed it
    try:
        _write(packet, request)
    except StorageError:
        if not restore_modes(packet.path):  # an agent made it read-only
            raise
        _write(packet, request)
    failpoint("inbox.dropped")
    return request


def is_admitted(packet: Packet, request: Request) -> bool:
    """Whether `drop` wrote it, if that matters: an agent can write files into the inbox."""
    return request.verb not in RECORDED or (
        admitted.is_noted(packet, admitted.Kind.REQUEST, request.id, _asked_for(request))
        and not admitted.is_noted(packet, admitted.Kind.VANISHED, request.id)
    )


def revoke(packet: Packet, request_id: str) -> None:
    """A request vanished: it is not applied later, when nobody expects it. Raises StorageError."""
    admitted.note(packet, admitted.Kind.VANISHED, request_id)


def _asked_for(request: Request) -> list[Any]:
    """With the id, which is applied once, and the verb: a copy, or another verb, is another request."""
    return [request.verb, request.args]


def _write(packet: Packet, request: Request) -> None:
    atomic.write_json(packet.request(request.id), request.to_json(), durable=True)


def ring(packet: Packet) -> bool:
    """Wake the runner. Returns False if no runner listens."""
    return _ring(packet.bell)


def ring_keeper(home: Home) -> bool:
    """Wake the keeper of a home. Returns False if no keeper listens."""
    return _ring(home.keeper_bell)


def announce_runner(packet: Packet, pid: int = 0) -> bool:
    """Tell the keeper that this task has a runner: it looks at this task alone, which is cheaper than a ring.

    With a pid, the runner was just started, and may not have its lock yet. Returns False if no keeper
    listens.
    """
    process = b" %d" % pid if pid > 0 else b""
    return _ring(packet.home.keeper_bell, b"+" + packet.task_id.encode() + process + b"\n")


def read_keeper_bell(data: bytes) -> tuple[bool, dict[str, int]]:
    """What was written to the keeper's bell: whether it was rung, and the tasks whose runners were announced,
    each with the last pid (or 0).

    Anything that is not an announcement is a ring.
    """
    was_rung, announced = False, dict[str, int]()
    for line in data.splitlines():
        text = line.lstrip(b"!")
        name, _, pid = text[1:].decode("ascii", "replace").partition(" ")
        number = ids.number_in(pid)
        if text[:1] == b"+" and ids.is_safe_name(name, 64) and (number is not None or not pid):
            announced[name] = number if number is not None else announced.get(name, 0)
        else:
            was_rung = True
        was_rung = was_rung or text != line
    return was_rung, announced


def open_bell(bell: str) -> int:
    """Listen to a bell; anything else in its place is renamed. Returns its descriptor. Raises OSError."""
    while True:
        make_bell(bell)
        # Open for writing too: otherwise poll reports end of file for ever after the last writer closes.
        descriptor = os.open(bell, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)


def make_bell(bell: str) -> None:
    """Create a bell if it is missing; anything else in its place is renamed."""
    try:
        if stat.S_ISFIFO(os.lstat(bell).st_mode):
            return
        atomic.put_aside(bell)
    except FileNotFoundError:
        pass
    try:
        os.mkfifo(bell, 0o600)
    except FileExistsError:
        pass  # another process created it


def _ring(bell: str, message: bytes = b"!") -> bool:
    try:
        descriptor = os.open(bell, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        # No listener, or no bell: an agent may have replaced it with a directory.
        if error.errno in (errno.ENXIO, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EACCES):
            return False
        raise
    try:
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return False  # another file has replaced the bell; do not write to it
        os.write(descriptor, message)
    except BlockingIOError:
        pass  # the pipe is full of rings, so the listener will wake up
    except BrokenPipeError:
        return False  # the listener left just now
    finally:
        os.close(descriptor)
    return True


def names(packet: Packet) -> list[str]:
    """File names of the pending requests, oldest first. Regular files only: a pipe would block the reader."""
    try:
        with os.scandir(packet.inbox) as entries:
            return sorted(
                entry.name
                for entry in entries
                if entry.name.endswith(".json")
                and entry.name[0] != "."
                and entry.is_file(follow_symlinks=False)
            )
    except (FileNotFoundError, NotADirectoryError):
        return []


def read(packet: Packet, name: str) -> Request | HoldfastError:
    """The request in a file, or the reason why it is not valid: any process may put files there."""
    path = os.path.join(packet.inbox, name)
    try:
        if os.stat(path).st_size > MAX_BYTES:
            return CorruptFile(f"{path} is not a request: it has more than {MAX_BYTES} bytes")
        data = atomic.read_json(path)
        if data is None:
            return CorruptFile(f"{path} disappeared")
        request = Request.from_json(data)
    except (HoldfastError, ValueError, OSError) as error:
        return CorruptFile(f"{path} is not a request: {error}")
    texts: tuple[Any, ...] = (request.id, request.verb, request.by, request.at)
    if not all(isinstance(text, str) for text in texts) or type(request.args) is not dict:
        return CorruptFile(f"{path} is not a request: id, verb, by and at must be strings, args an object")
    if request.id + ".json" != name:
        return CorruptFile(f"{path} is not a request: its id differs from its name")
    return request
