"""The files of a packet that a view may show: requests, prompts, reports, gate results, patches, summaries.

Never the captured environment, and no raw log: these have what redaction removes elsewhere.
"""

from __future__ import annotations

import os
import stat

from holdfast import clock, files
from holdfast.errors import NotFound
from holdfast.model.record import Record
from holdfast.packet import load
from holdfast.store import no_links
from holdfast.store.layout import InterruptDir, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: Files that are listed at most, and read of one file.
MAX_FILES, MAX_BYTES = 1000, 1024 * 1024


class PacketFile(Record):
    """A file of a packet."""

    #: Relative to the packet.
    path: str
    #: input, prompt, output, attempt or interrupt.
    kind: str
    bytes: int
    changed_at: str


def listing(packet: Packet) -> tuple[tuple[PacketFile, ...], int]:
    """The files, and how many were left out. Links, and what is not a regular file, are not listed."""
    found: list[PacketFile] = []
    left_out = 0
    for kind, path in _paths(packet):
        try:
            state = os.lstat(os.path.join(packet.path, path))
        except OSError:
            continue
        if not stat.S_ISREG(state.st_mode):
            continue
        if len(found) == MAX_FILES:
            left_out += 1
            continue
        found.append(
            PacketFile(path=path, kind=kind, bytes=state.st_size, changed_at=clock.iso(state.st_mtime))
        )
    return tuple(found), left_out


def read(packet: Packet, path: str, *, limit: int = MAX_BYTES) -> tuple[str, int]:
    """The text of a listed file, and the number of its bytes that were left out. Raises NotFound."""
    if all(each != path for _, each in _paths(packet)):
        raise NotFound(f"{packet.task_id} has no file {path!r} to show")
    try:
        with files.stream(os.path.join(packet.path, path)) as file:
            data = file.read(limit)
            size = file.seek(0, os.SEEK_END)
    except OSError as error:
        raise NotFound(f"{packet.task_id} has no file {path!r} to show: {error.strerror}") from error
    return data.decode("utf-8", "replace"), max(0, size - len(data))


def _paths(packet: Packet) -> Iterator[tuple[str, str]]:
    """Kind and path of every file that may be shown. Directories are not followed if they are links."""
    for kind, path in _found(packet):
        yield kind, os.path.relpath(path, packet.path)


def _found(packet: Packet) -> Iterator[tuple[str, str]]:
    for folder, kind in (
        (packet.inputs, "input"),
        (packet.attachments, "input"),
        (packet.prompts, "prompt"),
        (packet.outputs, "output"),
    ):
        for name in _names(packet, folder):
            yield kind, os.path.join(folder, name)
    for name in load.attempt_names(packet):
        attempt = packet.attempt(name)
        if _is_directory(packet, attempt.path):
            yield "attempt", attempt.prompt
            yield "attempt", attempt.system_prompt
            yield "attempt", attempt.artifact
            yield "attempt", attempt.changes
            yield "attempt", attempt.reverted_patch
    for name in _names(packet, packet.interrupts):
        saved = InterruptDir(os.path.join(packet.interrupts, name))
        if _is_directory(packet, saved.path):
            yield "interrupt", saved.summary
            yield "interrupt", saved.context


def _names(packet: Packet, folder: str) -> list[str]:
    if not _is_directory(packet, folder):
        return []
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _is_directory(packet: Packet, folder: str) -> bool:
    """Whether it is a directory, and so is every directory above it in the packet; none of them a link."""
    path = packet.path
    for name in os.path.relpath(folder, path).split("/"):
        path = f"{path}/{name}"
        if not no_links.is_directory(path):
            return False
    return True
