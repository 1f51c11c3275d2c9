"""Objects whose content has the name that they have. git itself does not compare the two when it reads them.

An agent without a sandbox can write in the store of its task, and in the user's repository: an object that
has the name of a test, and the content of another one. So what is in the store of a task is compared before
it is used, and what is checked out in a clean room as well, wherever it comes from.
"""

from __future__ import annotations

import os
import re
import zlib

from holdfast import files
from holdfast.errors import GitFailed
from holdfast.store import atomic
from holdfast.store.directories import keep_only, open_plain, remove_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Protocol

    class Digest(Protocol):
        """A digest that grows with its data."""

        def update(self, data: bytes | memoryview, /) -> None:
            """Add data."""
            ...

        def hexdigest(self) -> str:
            """The digest of the data so far."""
            ...

    #: Reads objects by their names: name, kind and content of each that exists.
    Read = Callable[[Iterable[str]], Iterable[tuple[str, bytes, memoryview]]]

_FOLDER, LOOSE = re.compile(r"[0-9a-f]{2}"), re.compile(r"[0-9a-f]{38}|[0-9a-f]{62}")
#: Other folders of a store, and what may be in them.
_KEPT = {"info": ("alternates",), "pack": ()}
#: git writes under such names first, and never reads them.
_TEMPORARY = "tmp_"
#: What is read at once, as far as the sizes are known.
_BATCH_BYTES, _BATCH = 16 << 20, 5000
_PIECE = 1 << 20

#: Loose objects that this process has compared: path → inode, size and times. No process can set st_ctime.
_compared: dict[str, tuple[int, ...]] = {}


def clean(objects: str) -> None:
    """Remove from a store of ours what we did not write. We write loose objects only, and no links."""
    try:
        store = atomic.read_own_folder(objects)
    except OSError:
        return  # it is not made yet
    clean_folders(store, _KEPT, lambda name, folder: _clean_folder(objects, name, folder))


def clean_folders(store: int, kept: Iterable[str], clean_folder: Callable[[str, int], None]) -> None:
    """Clean each folder of an open store of objects, and remove what is none. Closes the store.

    `kept` are folders that have no loose objects. By descriptors: an agent can put a link to a directory of
    the user in the place of a folder at any time.
    """
    try:
        for name in os.listdir(store):
            if name.startswith(_TEMPORARY):
                continue
            try:
                folder = open_plain(name, store) if name in kept or _FOLDER.fullmatch(name) else None
            except OSError:
                folder = None  # a link, or no directory, in which git finds nothing
            if folder is None:
                remove_tree(name, store)
                continue
            try:
                clean_folder(name, folder)
            finally:
                os.close(folder)
    finally:
        os.close(store)


def _clean_folder(objects: str, start: str, folder: int) -> None:
    if start in _KEPT:
        keep_only(folder, *_KEPT[start])
        return
    with os.scandir(folder) as entries:
        found = [entry for entry in entries if not entry.name.startswith(_TEMPORARY)]
    for entry in found:
        _clean_object(entry, os.path.join(objects, start, entry.name), folder)


def _clean_object(entry: os.DirEntry[str], path: str, folder: int) -> None:
    try:
        stats = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    seen = stats.st_ino, stats.st_size, stats.st_mtime_ns, stats.st_ctime_ns
    if _compared.get(path) == seen:
        return
    name = os.path.basename(os.path.dirname(path)) + entry.name
    if LOOSE.fullmatch(entry.name) and _has_name(path, name):
        _compared[path] = seen
    else:
        remove_tree(entry.name, folder)


def _has_name(path: str, name: str) -> bool:
    """Whether a loose object has the content that its name says."""
    digest, unpack = _digest(name), zlib.decompressobj()
    try:
        with files.stream(path) as file:
            while not unpack.eof and (packed := unpack.unconsumed_tail or file.read(_PIECE)):
                digest.update(unpack.decompress(packed, _PIECE))
    except (OSError, zlib.error):
        return False
    return unpack.eof and digest.hexdigest() == name


def _digest(name: str) -> Digest:
    """The kind of digest that a name is."""
    import hashlib  # slow to load, and few commands need it

    return (hashlib.sha1 if len(name) == 40 else hashlib.sha256)(usedforsecurity=False)


def check(read: Read, objects: Iterable[tuple[str, int, str]]) -> None:
    """Compare objects, given as name, size (0 if unknown) and what they are. Raises GitFailed."""
    batch: dict[str, str] = {}
    total = 0
    for name, size, what in objects:
        if batch and (total + size > _BATCH_BYTES or len(batch) == _BATCH):
            _check_batch(read, batch)
            batch, total = {}, 0
        batch[name] = what
        total += size
    if batch:
        _check_batch(read, batch)


def _check_batch(read: Read, batch: dict[str, str]) -> None:
    for name, kind, content in read(batch):  # what is missing cannot be checked out either
        digest = _digest(name)
        digest.update(b"%s %d\0" % (kind, len(content)))
        digest.update(content)
        if digest.hexdigest() != name:
            raise GitFailed(
                f"the object {name} ({batch[name]}) has other content than its name says",
                hint="an agent may have written it; 'git fsck' in the repository names such objects",
            )
