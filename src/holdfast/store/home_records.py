"""Where the records of a home are: what vouches for its tasks (`admitted.py`, `seals.py`).

They are beside the user's settings, where agents do not write: `trust/homes/<digest of its path>-<inode>/`
with `admitted/`, `seals/` and a note of the home. So a copy of a home has none, whatever its path, and no
command in it reaches those of the original. A home that was renamed takes its records along.

If that directory can be neither made nor written (read-only settings of a container), they are in the home.
Nothing that is written below the home decides this. (Below `layout`, so it cannot use `atomic`.)
"""

from __future__ import annotations

import errno
import os

from holdfast import files, paths, quick_json
from holdfast.failpoints import failpoint
from holdfast.store import trust_dir
from holdfast.store.digest import sha256

_NOTE = "home.json"
_FOLDERS = ("admitted", "seals")
#: The settings are not ours to write, or their directory cannot be there. A full disk is another matter.
_KEPT_OUT = frozenset(
    {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.ELOOP}
)
#: Path suffix used when the directory is not safe to use.
_UNSAFE = ".unsafe"


def find(home: str) -> tuple[str, int]:
    """The directory of the records of a home, which need not exist, and the inode of the home for which that
    is final; else 0."""
    folder = _folder()
    try:
        found = os.stat(home)
    except OSError:
        return f"{folder}/none", 0
    place = f"{folder}/{sha256(os.fsencode(os.path.realpath(home)))[:32]}-{found.st_ino:x}"
    try:
        if _exists(place) or _take_along(place, home, found):
            if not all(map(trust_dir.is_own_folder, (paths.trust_dir(), folder, place))):
                return place + _UNSAFE, 0
            return place if os.access(place, os.W_OK | os.X_OK) else home, found.st_ino
        # Either it was made in the home, because it can be nowhere else, or an agent created it.
        if found.st_uid == os.geteuid() and os.path.isdir(f"{home}/{_FOLDERS[0]}"):
            _make(place, home, found)
    except OSError as error:
        return (home, found.st_ino) if error.errno in _KEPT_OUT else (place, 0)
    return place, 0


def make(home: str, place: str) -> None:
    """Make the directory of the records of a home (`layout.records_of`), durably, if it is missing. Raises
    OSError."""
    around = (paths.trust_dir(), _folder())
    if place.endswith(_UNSAFE) or not all(trust_dir.is_own_folder(path) for path in around if _exists(path)):
        reason = (
            f"{place.removesuffix(_UNSAFE)}, or a directory around it, belongs to another user, is a link, "
            "or other users can write to it"
        )
        raise PermissionError(errno.EPERM, reason)
    if place == home or os.path.isdir(place):
        return
    try:
        _make(place, home, os.stat(home))
    except OSError as error:
        if error.errno not in _KEPT_OUT or os.path.isdir(place):
            raise
        # From now on, `find` tries to make it, fails as we did, and says the same.
        os.makedirs(f"{home}/{_FOLDERS[0]}", mode=0o700, exist_ok=True)


def _folder() -> str:
    return f"{paths.trust_dir()}/homes"


def _exists(path: str) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _make(place: str, home: str, found: os.stat_result) -> None:
    """Complete or not at all. Of two processes that make it, one wins."""
    folder, name = os.path.split(place)
    trust_dir.make()
    if not os.path.isdir(folder):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        _sync(paths.trust_dir())
    new = f"{folder}/.{name}.{os.getpid()}-{os.urandom(6).hex()}"
    os.mkdir(new, 0o700)
    try:
        for each in _FOLDERS:
            os.mkdir(f"{new}/{each}", 0o700)
        _write_note(new, home, found)
        failpoint("home_records.made")
        os.rename(new, place)
    except OSError:
        _discard(new)
        if not os.path.isdir(place):
            raise
    _sync(folder)


def _discard(new: str) -> None:
    try:
        for each in os.listdir(new):
            (os.rmdir if each in _FOLDERS else os.unlink)(f"{new}/{each}")
        os.rmdir(new)
    except OSError:
        return  # a few empty files


def _take_along(place: str, home: str, found: os.stat_result) -> bool:
    """Whether the home was renamed, and its records are here now. Of two processes, one renames them."""
    folder = os.path.dirname(place)
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return False
    for name in names:
        if name[0] == "." or not name.endswith(f"-{found.st_ino:x}"):
            continue
        old = f"{folder}/{name}"
        try:
            if _was_moved(old, found):
                os.rename(old, place)
                # A kill before this leaves the old path in it, which is not this directory either.
                _write_note(place, home, found)
                _sync(folder)
        except (OSError, ValueError, TypeError, KeyError):
            continue  # another process was faster, or nobody can tell
    return os.path.isdir(place)


def _was_moved(records: str, found: os.stat_result) -> bool:
    """Whether these are the records of this directory, which had another path, and does not have it still."""
    note = quick_json.loads(files.read(f"{records}/{_NOTE}"))
    home = found.st_dev, found.st_ino
    if (note["device"], note["inode"]) != home:
        return False
    try:
        there = os.stat(note["path"])
    except (FileNotFoundError, NotADirectoryError):
        return True
    return (there.st_dev, there.st_ino) != home


def _write_note(records: str, home: str, found: os.stat_result) -> None:
    data = {"schema": "holdfast.home/1", "path": os.path.realpath(home)}
    data |= {"device": found.st_dev, "inode": found.st_ino}
    temporary = f"{records}/.{_NOTE}.{os.getpid()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, (quick_json.dumps(data, ensure_ascii=True) + "\n").encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(temporary, f"{records}/{_NOTE}")
    _sync(records)


def _sync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
