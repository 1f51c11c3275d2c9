"""Reading attachments: files of the packet or at given paths, without forbidden, special or endless files."""

from __future__ import annotations

import os
import stat

from holdfast.errors import ForbiddenInput, UnreadableFile
from holdfast.model.record import Record
from holdfast.pipeline.prompt import shorten
from holdfast.store.directories import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.pipeline.prompt.forbidden import Forbidden
    from holdfast.store.layout import Packet

#: Of a larger file, only the first and the last bytes are read: size of each part.
MAX_BYTES = 4 * 1024**2
_END_BYTES = 1024**2
#: Total after which only short ends of further files are read, to save the runner's time.
_ENOUGH_BYTES = 16 * 1024**2
_SHORT_END_BYTES = 32 * 1024
#: Further files are mentioned in one line.
MAX_FILES = 200
_SAMPLE_BYTES = 8192


class Attachment(Record):
    """A text that is attached to a prompt."""

    name: str
    #: None: a binary file, of which only the name is shown.
    text: str | None
    size_bytes: int = 0
    #: It is cut last: the output of an earlier stage, of which every line may matter.
    is_whole: bool = False


def read(packet: Packet, forbidden: Forbidden, *, named: Iterable[str] = ()) -> list[Attachment]:
    """The files in `inputs/attachments/`, sorted by name, then those at the paths `named`.

    Raises ForbiddenInput for a forbidden path or a link out of the packet, UnreadableFile.
    """
    attached: list[Attachment] = []
    read_bytes = 0
    for name, path in _walk(packet.attachments):
        real = _inside(packet, path, f"the attachment {name}")
        _refuse(forbidden, f"the attachment {name}", name, real if os.path.islink(path) else name)
        if len(attached) == MAX_FILES:
            attached.append(
                Attachment(name=f"(more than {MAX_FILES} files; the rest is left out)", text=None)
            )
            break
        attached.append(_read(name, real, is_short=read_bytes > _ENOUGH_BYTES))
        read_bytes += len(attached[-1].text or "")
    for path in named:
        _refuse(forbidden, f"the attachment {path}", path, os.path.realpath(path))
        attached.append(_read(os.path.basename(path), path, is_short=read_bytes > _ENOUGH_BYTES))
        read_bytes += len(attached[-1].text or "")
    return attached


def read_input(packet: Packet, path: str) -> str | None:
    """The text of an input of the packet; None if it does not exist.

    Raises ForbiddenInput for a link out of it.
    """
    if not os.path.lexists(path):
        return None
    text = _read(os.path.basename(path), _inside(packet, path, f"the input {path}")).text
    if text is None:
        raise UnreadableFile(f"the input {path} is not a text file")
    return text


def read_file(path: str) -> Attachment:
    """A file that holdfast wrote; of a large one only the two ends. Raises UnreadableFile."""
    return _read(os.path.basename(path), path)


def shown(attachment: Attachment, *, lines: int | None) -> tuple[str, str]:
    """The text with at most `lines` lines of each end (None: all), and a note for the compose log."""
    if attachment.text is None:
        return f"[binary file: {attachment.size_bytes} bytes, not included]", "binary, only named"
    size = attachment.size_bytes or len(attachment.text.encode("utf-8", "replace"))
    if lines == 0:
        return f"[{size} bytes, left out: no room]", f"{size} bytes, left out: no room"
    limit = len(attachment.text) + 1 if lines is None else lines
    trimmed = shorten.middle(attachment.text, limit, limit)
    note = f"{size} bytes"
    if trimmed.cut_lines:
        note += f", {trimmed.cut_lines} lines ({trimmed.cut_bytes} bytes) cut"
    if trimmed.long_lines:
        note += f", {trimmed.long_lines} long lines cut"
    return trimmed.text, note


def _walk(folder: str) -> Iterator[tuple[str, str]]:
    for below, folders, files in walk(folder):
        folders.sort()
        # walk does not follow links to directories; they are checked like files.
        links = [name for name in folders if os.path.islink(os.path.join(below, name))]
        for name in sorted([*files, *links]):
            path = os.path.join(below, name)
            yield os.path.relpath(path, folder), path


def _inside(packet: Packet, path: str, what: str) -> str:
    real = os.path.realpath(path)
    if not real.startswith(os.path.realpath(packet.path) + os.sep):
        raise ForbiddenInput(f"{what} is a link out of the packet", hint="copy the file instead")
    return real


def _refuse(forbidden: Forbidden, what: str, *candidates: str) -> None:
    if any(forbidden.matches(path) for path in candidates):
        raise ForbiddenInput(
            f"{what} is a forbidden path", hint="remove it, or change security.forbidden_paths"
        )


def _read(name: str, path: str, *, is_short: bool = False) -> Attachment:
    end = _SHORT_END_BYTES if is_short else _END_BYTES
    limit = 2 * end if is_short else MAX_BYTES
    try:
        # Non-blocking: opening a named pipe would hang.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            stats = os.fstat(descriptor)
            if not stat.S_ISREG(stats.st_mode):
                raise UnreadableFile(f"cannot read {path}: it is not a regular file")
            size = stats.st_size
            if size <= limit:
                data, rest = file.read(limit), b""
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
        # Drop the partial lines at the cut: they could contain half a secret.
        head, tail = text.rpartition("\n")[0], rest.decode("utf-8", "replace").partition("\n")[2]
        cut_bytes = size - len(head.encode("utf-8", "replace")) - len(tail.encode("utf-8", "replace"))
        text = f"{head}\n[… about {cut_bytes} bytes cut here: the file has {size} …]\n{tail}"
    return Attachment(name=name, text=text, size_bytes=size)


def _is_binary(data: bytes) -> bool:
    sample = data[:_SAMPLE_BYTES]
    # A log may contain a few invalid bytes; an image has many.
    return b"\0" in sample or sample.decode("utf-8", "replace").count("\ufffd") > max(len(sample) // 10, 3)
