"""What goes with a request: files of the packet, or named ones, read so that nothing harmful or endless comes along."""

from __future__ import annotations

import os
import stat

from holdfast.errors import ForbiddenInput, UnreadableFile
from holdfast.model.record import Record
from holdfast.pipeline.prompt import shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.pipeline.prompt.forbidden import Forbidden
    from holdfast.store.layout import Packet

#: A larger file is read at its two ends only, so many bytes of each.
LARGEST_BYTES = 4 * 1024**2
_END_BYTES = 1024**2
#: Once so much has been read, the runner has better to do: of later files only the ends are read, and less of them.
_ENOUGH_BYTES = 16 * 1024**2
_SHORT_END_BYTES = 32 * 1024
#: More files than this are no attachments but a tree; the rest is named in one line.
MOST_FILES = 200
_SAMPLE_BYTES = 8192


class Attachment(Record):
    """A text that is shown with a prompt."""

    name: str
    #: None: a binary file, which is only named.
    text: str | None
    size_bytes: int = 0
    #: It is cut only where nothing else helps: earlier outputs, of which every line may matter.
    is_whole: bool = False


def read(packet: Packet, forbidden: Forbidden, *, named: Iterable[str] = ()) -> list[Attachment]:
    """The files below `inputs/attachments/`, by name, then those at the named paths.

    Raises ForbiddenInput for a forbidden path and for a link that leads out of the packet, UnreadableFile for what cannot
    be read.
    """
    found: list[Attachment] = []
    read_bytes = 0
    for name, path in _walk(packet.attachments):
        real = _inside(packet, path, f"the attachment {name}")
        _refuse(forbidden, f"the attachment {name}", name, real if os.path.islink(path) else name)
        if len(found) == MOST_FILES:
            found.append(Attachment(name=f"(more than {MOST_FILES} files; the rest is left out)", text=None))
            break
        found.append(_read(name, real, is_short=read_bytes > _ENOUGH_BYTES))
        read_bytes += len(found[-1].text or "")
    for path in named:
        _refuse(forbidden, f"the attachment {path}", path, os.path.realpath(path))
        found.append(_read(os.path.basename(path), path, is_short=read_bytes > _ENOUGH_BYTES))
        read_bytes += len(found[-1].text or "")
    return found


def read_input(packet: Packet, path: str) -> str | None:
    """The text of an input of the packet; None when there is none. Raises ForbiddenInput for a link that leads out."""
    if not os.path.lexists(path):
        return None
    text = _read(os.path.basename(path), _inside(packet, path, f"the input {path}")).text
    if text is None:
        raise UnreadableFile(f"the input {path} is not a text")
    return text


def shown(attachment: Attachment, *, lines: int | None) -> tuple[str, str]:
    """The text to show, with at most `lines` lines from each end (None: all of them), and a sentence about what was done."""
    if attachment.text is None:
        return f"[not a text: {attachment.size_bytes} bytes, not included]", "not a text, only named"
    size = attachment.size_bytes or len(attachment.text.encode("utf-8", "replace"))
    if lines == 0:
        return f"[{size} bytes, left out: there is no room]", f"{size} bytes, left out: there is no room"
    most = len(attachment.text) + 1 if lines is None else lines
    trimmed = shorten.middle(attachment.text, most, most)
    said = f"{size} bytes"
    if trimmed.cut_lines:
        said += f", {trimmed.cut_lines} lines ({trimmed.cut_bytes} bytes) cut"
    if trimmed.long_lines:
        said += f", {trimmed.long_lines} long lines cut"
    return trimmed.text, said


def _walk(folder: str) -> Iterator[tuple[str, str]]:
    for below, folders, files in os.walk(folder):
        folders.sort()
        # os.walk does not follow a link to a directory; it is looked at like a file, and refused or passed over.
        links = [name for name in folders if os.path.islink(os.path.join(below, name))]
        for name in sorted([*files, *links]):
            path = os.path.join(below, name)
            yield os.path.relpath(path, folder), path


def _inside(packet: Packet, path: str, what: str) -> str:
    real = os.path.realpath(path)
    if not real.startswith(os.path.realpath(packet.path) + os.sep):
        raise ForbiddenInput(f"{what} is a link that leads out of the packet", hint="copy the file instead")
    return real


def _refuse(forbidden: Forbidden, what: str, *candidates: str) -> None:
    if any(forbidden.matches(path) for path in candidates):
        raise ForbiddenInput(
            f"{what} is a forbidden path", hint="remove it, or take it out of security.forbidden_paths"
        )


def _read(name: str, path: str, *, is_short: bool = False) -> Attachment:
    end = _SHORT_END_BYTES if is_short else _END_BYTES
    largest = 2 * end if is_short else LARGEST_BYTES
    try:
        # Not blocking: a pipe would hang us.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise UnreadableFile(f"cannot read {path}: it is not a plain file")
            size = found.st_size
            if size <= largest:
                data, rest = file.read(largest), b""
            else:
                data = file.read(end)
                file.seek(-end, os.SEEK_END)
                rest = file.read(end)
    except OSError as error:
        raise UnreadableFile(f"cannot read {path}: {error.strerror}") from error
    if _is_binary(data):
        return Attachment(name=name, text=None, size_bytes=size)
    text = data.decode("utf-8", "replace")
    if rest:
        # Half a line at the cut says nothing, and could be half a secret.
        head, tail = text.rpartition("\n")[0], rest.decode("utf-8", "replace").partition("\n")[2]
        gone = size - len(head.encode("utf-8", "replace")) - len(tail.encode("utf-8", "replace"))
        text = f"{head}\n[… about {gone} bytes cut here: the file has {size} …]\n{tail}"
    return Attachment(name=name, text=text, size_bytes=size)


def _is_binary(data: bytes) -> bool:
    sample = data[:_SAMPLE_BYTES]
    # A log may hold a few stray bytes; a picture holds little else.
    return b"\0" in sample or sample.decode("utf-8", "replace").count("\ufffd") > max(len(sample) // 10, 3)
