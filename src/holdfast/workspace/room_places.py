"""Where clean rooms are: outside the home and all projects, where agents of other tasks write no files.

    $XDG_CACHE_HOME/holdfast/rooms/<owner>-<random>/    or ~/.cache, or, if that cannot be used,
    /tmp/holdfast-rooms-<uid>/<owner>-<random>/

The owner is a digest of the packet's path and inode, by which its rooms are found after a kill. A copy of a
home does not own the rooms of the original.
"""

from __future__ import annotations

import os
import re
import stat

from holdfast import paths, program_search
from holdfast.errors import StorageError
from holdfast.store.digest import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Packet

_NAME = re.compile(r"[0-9a-f]{16}-[0-9a-f]{12}")


def folders() -> tuple[str, ...]:
    """The folders in which rooms may be, by their real paths; the first that can be used is used."""
    caches = dict.fromkeys((paths.cache_base(), os.path.join(paths.user_home(), ".cache")))
    found = [os.path.join(cache, "holdfast", "rooms") for cache in caches]
    return tuple(map(os.path.realpath, (*found, f"/tmp/holdfast-rooms-{os.geteuid()}")))


def new_room(packet: Packet) -> str:
    """Make a folder for a room. Raises StorageError."""
    why = ""
    for folder in folders():
        # The environment of a task may lead anywhere.
        if program_search.is_of_project(folder):
            continue
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            found = os.lstat(folder)
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
                why = "others can write there"
                continue
            room = os.path.join(folder, f"{_owner(packet)}-{os.urandom(6).hex()}")
            os.mkdir(room, mode=0o700)
        except OSError as error:
            why = error.strerror or ""
            continue
        return room
    raise StorageError(
        f"cannot create a clean room in {folders()[0]}: {why or 'it is in a project'}",
        hint="set XDG_CACHE_HOME to a directory of yours",
    )


def rooms_of(packet: Packet) -> list[str]:
    """The rooms of a packet: of a gate that runs, or that was killed."""
    try:
        owner = _owner(packet)
    except OSError:
        return []  # the packet is gone
    found: list[str] = []
    for folder in folders():
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        mine = (name for name in names if name.startswith(owner) and _NAME.fullmatch(name))
        found += [os.path.join(folder, name) for name in mine]
    return found


def _owner(packet: Packet) -> str:
    place = f"{os.path.realpath(packet.path)}/{os.stat(packet.path).st_ino}"
    return sha256(place.encode("utf-8", "surrogateescape"))[:16]
