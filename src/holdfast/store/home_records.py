"""Where the records of a home are: what vouches for its tasks (`admitted.py`, `seals.py`).

They are beside the user's settings, where agents do not write: `trust/homes/<digest of its path>-<inode>/`
with `admitted/`, `seals/` and a note of the home. So a copy of a home has none, whatever its path, and no
command in it reaches those of the original. Those of a home that was renamed, or that a container shows at
another path, are found by the note.

If that directory can be neither made nor found (read-only settings of a container), they are in the home.
Nothing that is written below the home decides this. `find` is for all, `make` for those that write.
"""

from __future__ import annotations

import errno
import os

from holdfast import files, paths, quick_json
from holdfast.failpoints import failpoint
from holdfast.store import trust_dir
from holdfast.store.digest import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

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
    stays true while it exists; else 0."""
    folder = _folder()
    try:
        found = os.stat(home)
    except OSError:
        return f"{folder}/none", 0
    place = _own_place(home, found)
    try:
        there = place if _exists(place) else _elsewhere(home, found)
        if there:
            if not all(map(trust_dir.is_own_folder, (paths.trust_dir(), folder, there))):
                return there + _UNSAFE, 0
            return there, found.st_ino
        # Either it was made in the home, because it can be nowhere else, or an agent created it. Only
        # an attempt can tell.
        if found.st_uid == os.geteuid() and os.path.isdir(f"{home}/{_FOLDERS[0]}"):
            _make(place, home, found)
    except OSError as error:
        return (home, found.st_ino) if error.errno in _KEPT_OUT else (place, 0)
    return place, 0


def make(home: str, place: str, is_kept: Callable[[], bool] | None = None) -> None:
    """Make the directory of the records of a home (`layout.records_of`), durably, if it is missing. If the
    home has another path than before, its records follow, unless it `is_kept`: by a keeper, which may know it
    by the other path. Raises OSError."""
    if problem := write_problem(place):
        raise PermissionError(errno.EPERM, problem)
    if place == home:
        return
    if os.path.isdir(place):
        _follow(home, place, is_kept)
        return
    try:
        _make(place, home, os.stat(home))
    except OSError as error:
        if error.errno not in _KEPT_OUT or os.path.isdir(place):
            raise
        # From now on, `find` tries to make it, fails as we did, and says the same.
        os.makedirs(f"{home}/{_FOLDERS[0]}", mode=0o700, exist_ok=True)


def write_problem(place: str) -> str:
    """Why nothing can be written to these records (`layout.records_of`); empty if it can, or if they can
    be made."""
    around = (paths.trust_dir(), _folder())
    try:
        is_safe = all(trust_dir.is_own_folder(path) for path in around if _exists(path))
    except OSError as error:
        return f"{paths.trust_dir()}: {error.strerror}"
    if place.endswith(_UNSAFE) or not is_safe:
        return (
            f"{shown(place)}, or a directory around it, belongs to another user, is a link, or other users "
            "can write to it"
        )
    if os.path.isdir(place) and not os.access(place, os.W_OK | os.X_OK):
        return f"the records of this home, {place}, can be read here, but not written: a read-only mount?"
    return ""


def shown(place: str) -> str:
    """The path of these records, for messages."""
    return place.removesuffix(_UNSAFE)


def _follow(home: str, there: str, is_kept: Callable[[], bool] | None) -> None:
    """Give the records of a home the name and the note of its path, as well as possible: they are found
    without that. Of two processes, one renames them."""
    try:
        found = os.stat(home)
        place = _own_place(home, found)
        if place != there:
            if is_kept is None or _is_at_noted_path(there, found) or is_kept():
                return  # it has two paths, here or for other processes
            os.rename(there, place)
            _sync(_folder())
        if _note(place) != _new_note(home, found):
            _write_note(place, home, found)  # a kill before this leaves the old path or device
    except (OSError, ValueError):
        return


def _folder() -> str:
    return f"{paths.trust_dir()}/homes"


def _own_place(home: str, found: os.stat_result) -> str:
    return f"{_folder()}/{_name(os.path.realpath(home), found.st_ino)}"


def _name(path: str, inode: int) -> str:
    return f"{sha256(os.fsencode(path))[:32]}-{inode:x}"


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


def _elsewhere(home: str, found: os.stat_result) -> str:
    """The records of a home that had another path, or has another one for other processes; empty if there
    are none."""
    folder = _folder()
    try:
        names = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return ""
    fitting = (f"{folder}/{name}" for name in names if name[0] != "." and name.endswith(f"-{found.st_ino:x}"))
    return next((each for each in fitting if _are_of(each, found)), "")


def _are_of(records: str, found: os.stat_result) -> bool:
    """Whether these are the records of this directory, which has another path than their name says."""
    note = _note(records)
    if (note.get("device"), note.get("inode")) != (found.st_dev, found.st_ino):
        return False
    # A home at the noted path may have them by their name: it had this device before a reboot.
    there = _stat(note)
    return there is None or there.st_ino != found.st_ino or there.st_dev == found.st_dev


def _is_at_noted_path(records: str, found: os.stat_result) -> bool:
    """Whether their name and their note are about a path that this directory still has."""
    note, there = _note(records), None
    if os.path.basename(records) == _name(str(note.get("path")), found.st_ino):
        there = _stat(note)
    return there is not None and (there.st_dev, there.st_ino) == (found.st_dev, found.st_ino)


def _stat(note: dict[str, Any]) -> os.stat_result | None:
    """What is at the noted path."""
    try:
        return os.stat(str(note.get("path")))
    except (OSError, ValueError):
        return None


def _note(records: str) -> dict[str, Any]:
    """The note; empty if it cannot be read."""
    try:
        note: dict[str, Any] = quick_json.loads(files.read(f"{records}/{_NOTE}"))
        return {**note}
    except (OSError, ValueError, TypeError):
        return {}


def _new_note(home: str, found: os.stat_result) -> dict[str, Any]:
    where = {"device": found.st_dev, "inode": found.st_ino}
    return {"schema": "holdfast.home/1", "path": os.path.realpath(home), **where}


def _write_note(records: str, home: str, found: os.stat_result) -> None:
    temporary = f"{records}/.{_NOTE}.{os.getpid()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, (quick_json.dumps(_new_note(home, found), ensure_ascii=True) + "\n").encode())
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
