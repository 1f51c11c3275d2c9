"""The inbox: one durable file per request, and a bell to wake the runner."""

from __future__ import annotations

import errno
import os

from holdfast import clock, ids
from holdfast.errors import CorruptFile, HoldfastError
from holdfast.failpoints import failpoint
from holdfast.model.request import Request
from holdfast.store import atomic
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def drop(packet: Packet, verb: str, args: dict[str, Any], *, by: str) -> Request:
    """Put a request into the inbox, durably. The caller then makes sure that a runner lives, and rings."""
    request = Request(id=ids.new_ulid(), verb=verb, args=args, by=by, at=clock.iso_now())
    atomic.write_json(path_of(packet, request.id), request.to_json(), durable=True)
    failpoint("inbox.dropped")
    return request


def ring(packet: Packet) -> bool:
    """Wake the runner; False when nobody listens."""
    try:
        descriptor = os.open(packet.bell, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT):
            return False
        raise
    try:
        os.write(descriptor, b"!")
    except BlockingIOError:
        pass  # full of rings already: the runner will look
    finally:
        os.close(descriptor)
    return True


def path_of(packet: Packet, request_id: str) -> str:
    """The file of a request."""
    return os.path.join(packet.inbox, f"{request_id}.json")


def names(packet: Packet) -> list[str]:
    """File names of the requests that wait, oldest first."""
    try:
        return sorted(name for name in os.listdir(packet.inbox) if name.endswith(".json") and name[0] != ".")
    except FileNotFoundError:
        return []


def read(packet: Packet, name: str) -> Request | HoldfastError:
    """The request in a file, or why it is none: anybody may have put anything there."""
    path = os.path.join(packet.inbox, name)
    try:
        data = atomic.read_json(path)
        if data is None:
            return CorruptFile(f"{path} went away")
        request = Request.from_json(data)
    except (HoldfastError, ValueError) as error:
        return CorruptFile(f"{path} is no request: {error}")
    if request.id + ".json" != name or type(request.args) is not dict:
        return CorruptFile(f"{path} is no request: its id is not its name, or args is no object")
    return request
