"""The inbox: one durable file per request, and a bell to wake the runner."""

from __future__ import annotations

import errno
import os
import stat

from holdfast import clock, ids
from holdfast.errors import CorruptFile, HoldfastError
from holdfast.failpoints import failpoint
from holdfast.model.request import Request
from holdfast.store import atomic
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: A request holds a few words, and with `retry` an environment.
MAX_BYTES = 1024 * 1024


def drop(packet: Packet, verb: str, args: dict[str, Any], *, by: str) -> Request:
    """Put a request into the inbox, durably. The caller then makes sure that a runner lives, and rings."""
    request = Request(id=ids.new_ulid(), verb=verb, args=args, by=by, at=clock.iso_now())
    atomic.write_json(path_of(packet, request.id), request.to_json(), durable=True)
    failpoint("inbox.dropped")
    return request


def ring(packet: Packet) -> bool:
    """Wake the runner; False when nobody listens."""
    return _ring(packet.bell)


def ring_keeper(home: Home) -> bool:
    """Wake the keeper of a home: something changed that it looks after. False when nobody listens."""
    return _ring(home.keeper_bell)


def _ring(bell: str) -> bool:
    try:
        descriptor = os.open(bell, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        # Nobody there, or no bell any more: an agent may have put a directory in its place.
        if error.errno in (errno.ENXIO, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP):
            return False
        raise
    try:
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return False  # somebody put another file in its place, and it is not ours to write to
        os.write(descriptor, b"!")
    except BlockingIOError:
        pass  # full of rings already: who listens will look
    finally:
        os.close(descriptor)
    return True


def path_of(packet: Packet, request_id: str) -> str:
    """The file of a request."""
    return os.path.join(packet.inbox, f"{request_id}.json")


def names(packet: Packet) -> list[str]:
    """File names of the requests that wait, oldest first. Plain files only: a pipe there would hang its reader."""
    try:
        with os.scandir(packet.inbox) as found:
            return sorted(
                entry.name
                for entry in found
                if entry.name.endswith(".json")
                and entry.name[0] != "."
                and entry.is_file(follow_symlinks=False)
            )
    except (FileNotFoundError, NotADirectoryError):
        return []


def read(packet: Packet, name: str) -> Request | HoldfastError:
    """The request in a file, or why it is none: anybody may have put anything there."""
    path = os.path.join(packet.inbox, name)
    try:
        if os.stat(path).st_size > MAX_BYTES:
            return CorruptFile(f"{path} is no request: it has more than {MAX_BYTES} bytes")
        data = atomic.read_json(path)
        if data is None:
            return CorruptFile(f"{path} went away")
        request = Request.from_json(data)
    except (HoldfastError, ValueError, OSError) as error:
        return CorruptFile(f"{path} is no request: {error}")
    texts: tuple[Any, ...] = (request.id, request.verb, request.by, request.at)
    if not all(isinstance(text, str) for text in texts) or type(request.args) is not dict:
        return CorruptFile(f"{path} is no request: id, verb, by and at are texts, args is an object")
    if request.id + ".json" != name:
        return CorruptFile(f"{path} is no request: its id is not its name")
    return request
