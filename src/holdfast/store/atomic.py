"""Atomic writes: a file is complete or not there.

A durable write is: temporary file in the same directory, fsync, rename, fsync of the directory. Derived files
are renamed into place without the two syncs. SIGKILL leaves at most a temporary file; its name starts with a
dot, and it is never read.
"""

from __future__ import annotations

import errno
import os
import stat

from holdfast import files, ids, quick_json
from holdfast.errors import CorruptFile, DiskFull, NotFound, StorageError
from holdfast.failpoints import failpoint
from holdfast.store.layout import JOURNAL, PACKET_DIRECTORIES, packet_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, NoReturn

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
#: Links are followed: a home or a packet may be one. O_PATH, which only Linux has, needs no permission to
#: list it.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
#: Only a file that was not there: an agent may have planted a pipe, or a second name of a user's file.
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_OWN = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_COPIED_BYTES = 1 << 20
#: Between a home and a packet.
_TASKS = "/tasks/"
#: What open and `check_regular` say about what is no file.
_NO_FILE = frozenset({errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.EOPNOTSUPP, errno.EINVAL})


def write(path: str, data: bytes, *, durable: bool, mode: int = 0o600) -> None:
    """Replace the file at `path` with `data`, or leave it unchanged. Raises StorageError."""
    place, name = os.path.split(path)
    temporary = _temporary(name)
    folder = -1
    try:
        folder = open_own_folder(place)
        descriptor = os.open(temporary, _NEW_FILE, mode, dir_fd=folder)
        try:
            write_all(descriptor, data)
            if durable:
                failpoint("atomic.before_fsync")
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        failpoint("atomic.before_rename")
        try:
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except IsADirectoryError:
            put_aside(name, folder)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        if durable:
            failpoint("atomic.after_rename")
            sync_directory(".", folder)
    except OSError as error:
        if folder >= 0:
            forget(temporary, folder)
        storage_failed(error, f"cannot write {path}")
    finally:
        if folder >= 0:
            os.close(folder)


def _temporary(name: str) -> str:
    """A random name: no agent can prepare a file there. With the pid, so that it is removed after a kill."""
    return f".{name}.{os.getpid()}-{os.urandom(6).hex()}.tmp"


def open_own_folder(path: str, *, make: bool = False) -> int:
    """A descriptor of a directory in which we write or remove something. Raises OSError.

    In a packet, every step is taken without following a link: an agent can put one in the place of any
    directory, at any time. It is put aside. One of the directories that every packet has is made if it is
    missing; with `make`, any. The packet itself may be a link to where a user has moved it.
    """
    # The first: a task may be named so, and a directory in a packet.
    begin = path.find(_TASKS)
    while begin >= 0 and path[: begin + len(_TASKS) - 1] not in packet_folders:
        begin = path.find(_TASKS, begin + 1)
    if begin < 0:
        return os.open(path or ".", _FOLDER)
    begin += len(_TASKS) - 1
    at = path.find("/", begin + 1)
    folder = _open_packet(path if at < 0 else path[:at])
    below = "" if at < 0 else path[at + 1 :]
    for name in below.split("/") if below else ():
        try:
            inner = _enter(folder, name, make=make or below in PACKET_DIRECTORIES)
        finally:
            os.close(folder)
        folder = inner
    return folder


def read_own_folder(path: str) -> int:
    """As `open_own_folder`, but the directory can also be listed and locked."""
    folder = open_own_folder(path)
    try:
        return os.open(".", _DIRECTORY, dir_fd=folder)
    finally:
        os.close(folder)


def _open_packet(path: str) -> int:
    try:
        return os.open(path, _FOLDER | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
    folder = os.open(path, _FOLDER)
    if not _exists(JOURNAL, folder):
        os.close(folder)
        raise FileNotFoundError(errno.ENOENT, "a link that leads to no task", path)
    return folder


def _enter(folder: int, name: str, *, make: bool) -> int:
    while True:
        try:
            return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
        except FileNotFoundError:
            if not make:
                raise
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
        _make(folder, name)


def _make(folder: int, name: str) -> None:
    """Create a directory if it is missing. If something else has its name, that is renamed."""
    while True:
        try:
            if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
                return
            put_aside(name, folder)
        except FileNotFoundError:
            pass
        try:
            os.mkdir(name, 0o700, dir_fd=folder)
            return
        except FileExistsError:
            continue  # another process created it; runners share some directories


def write_json(path: str, data: Any, *, durable: bool) -> None:
    """Like `write`, for JSON."""
    write(path, encode_json(data), durable=durable)


def create(path: str, data: bytes) -> bool:
    """Create a file with `data`, durably. Returns False if there is one: of several writers, one wins.
    Raises StorageError."""
    place, name = os.path.split(path)
    temporary = os.path.join(place, _temporary(name))
    try:
        descriptor = os.open(temporary, _NEW_FILE, 0o600)
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        try:
            os.link(temporary, path, follow_symlinks=False)
        except FileExistsError:
            return False
        sync_directory(place)
        return True
    except OSError as error:
        storage_failed(error, f"cannot write {path}")
    finally:
        forget(temporary)


def encode_json(data: Any) -> bytes:
    """Encode a JSON file, with a newline at the end.

    A lone surrogate (half an emoji, or a byte that is not UTF-8) becomes its JSON escape, so that the file is
    valid and decodes to the same text.
    """
    return (quick_json.dumps(data, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def write_all(descriptor: int, data: bytes) -> None:
    """Call write(2) until everything is written. On a full disk, a short write comes before the error."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def read_json(path: str) -> dict[str, Any] | None:
    """The JSON object at `path`, or None if there is no file.

    Raises CorruptFile if it is not a JSON object, not a regular file, or may not be read.
    """
    try:
        raw = files.read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in files.UNUSABLE:
            raise unusable(error, path) from error
        raise StorageError(f"cannot read {path}: {error.strerror}", hint=_whose(error)) from error
    try:
        data = quick_json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(
            f"{path} is not JSON: {error}", hint="the file was not changed; inspect it"
        ) from error
    if not isinstance(data, dict):
        raise CorruptFile(f"{path} is not a JSON object", hint="the file was not changed; inspect it")
    return data  # pyright: ignore[reportUnknownVariableType]


def stream(path: str) -> BinaryIO:
    """Open a file to read it in pieces. Raises FileNotFoundError; CorruptFile if it is no file."""
    try:
        return files.stream(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in files.UNUSABLE:
            raise unusable(error, path) from error
        return storage_failed(error, f"cannot read {path}")


def unusable(error: OSError, path: str) -> CorruptFile:
    """The error for a file that cannot be read and never will, until a person does something."""
    from shlex import quote  # only needed for the error

    hint = _whose(error) or f"move it away: mv {quote(path)} {quote(path)}.bad"
    return CorruptFile(f"{path} cannot be read: {error.strerror}", hint=hint)


def open_own(
    path: str, flags: int, *, must_be_ours: bool = False, is_lock: bool = False, must_exist: bool = False
) -> int:
    """Open one of our files for writing, and create it if it is missing. Raises OSError.

    What is not a regular file is renamed: a pipe would block us, and a link may lead to a user's file. So is
    a file that may not be opened, unless it `must_be_ours`. A file that has a second name, which may be a
    user's, is replaced by a copy; not a lock, which others hold. With `must_exist`, nothing is created or
    renamed.
    """
    create = 0 if must_exist else os.O_CREAT
    place, name = os.path.split(path)
    folder = open_own_folder(place)
    try:
        for _ in range(3):
            try:
                descriptor = os.open(name, flags & ~os.O_TRUNC | create | _OWN, 0o600, dir_fd=folder)
                try:
                    opened = files.check_regular(descriptor, path)
                    if not is_lock and not _is_only_name(name, folder, opened):
                        os.close(descriptor)
                        continue
                    if flags & os.O_TRUNC:
                        os.ftruncate(descriptor, 0)
                    return descriptor
                except OSError:
                    os.close(descriptor)
                    raise
            except OSError as error:
                if error.errno not in _NO_FILE and (error.errno != errno.EACCES or must_be_ours):
                    raise
                if must_exist:
                    raise
                put_aside(name, folder)
    finally:
        os.close(folder)
    raise OSError(errno.EBUSY, "it is replaced again and again", path)


def _is_only_name(name: str, folder: int, opened: os.stat_result) -> bool:
    """Whether an open file has this name and no other. A file with several names is replaced by a copy.

    The name and the count come from one look: an agent could remove the name between two, and then that of
    a user's file would be the only one.
    """
    try:
        there = os.lstat(name, dir_fd=folder)
        if there.st_nlink > 1 and stat.S_ISREG(there.st_mode):
            _copy_in_place(name, folder)
            return False
    except FileNotFoundError:
        return False
    return os.path.samestat(there, opened)


def _copy_in_place(name: str, folder: int) -> None:
    """Replace a file by a copy of it."""
    temporary = _temporary(name)
    try:
        old = os.open(name, os.O_RDONLY | _OWN, dir_fd=folder)
        try:
            new = os.open(temporary, _NEW_FILE, 0o600, dir_fd=folder)
            try:
                while data := os.read(old, _COPIED_BYTES):
                    write_all(new, data)
                os.fsync(new)
            finally:
                os.close(new)
        finally:
            os.close(old)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        forget(temporary, folder)


def read_small(path: str, limit: int) -> bytes | None:
    """The first bytes of a regular file that an agent may have created, or None.

    Pipes and links are ignored: a pipe would block the reader, and a link could expose files of other users.
    """
    try:
        descriptor = files.open_regular(path)
    except OSError:
        return None
    try:
        return os.read(descriptor, limit)
    finally:
        os.close(descriptor)


def make_directory(path: str) -> None:
    """Create a directory with mode 0700 if it is missing. If something else has its name, that is renamed."""
    place, name = os.path.split(path)
    folder = open_own_folder(place)
    try:
        _make(folder, name)
    finally:
        os.close(folder)


def make_new_directory(path: str) -> None:
    """Create a directory with mode 0700. Raises FileExistsError."""
    place, name = os.path.split(path)
    folder = open_own_folder(place)
    try:
        os.mkdir(name, 0o700, dir_fd=folder)
    finally:
        os.close(folder)


def make_packet_directory(path: str) -> None:
    """As `make_directory`, for any directory of a packet, with those around it."""
    os.close(open_own_folder(path, make=True))


def move(path: str, to: str) -> None:
    """Rename a file or directory to another directory of ours, following no link. Raises OSError."""
    (place, name), (new_place, new_name) = os.path.split(path), os.path.split(to)
    folder = open_own_folder(place)
    try:
        target = open_own_folder(new_place)
        try:
            os.rename(name, new_name, src_dir_fd=folder, dst_dir_fd=target)
        finally:
            os.close(target)
    finally:
        os.close(folder)


def put_aside(path: str, folder: int | None = None) -> None:
    """Rename the file at `path`, which may be relative to an open folder, to a free name next to it."""
    if folder is None:
        move(path, aside_name(path))
    else:
        os.rename(path, aside_name(path, folder), src_dir_fd=folder, dst_dir_fd=folder)


def aside_name(path: str, folder: int | None = None) -> str:
    """The name that `put_aside` gives to a file."""
    number = 1
    while _exists(name := f"{path}.aside-{number}", folder):
        number += 1
    return name


def _exists(path: str, folder: int | None) -> bool:
    try:
        os.lstat(path, dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


def free_name(path: str) -> str:
    """`path-1`, or the next number that is free."""
    number = 1
    while os.path.lexists(name := f"{path}-{number}"):
        number += 1
    return name


def remove(path: str) -> None:
    """Unlink the file if it exists."""
    place, name = os.path.split(path)
    try:
        folder = open_own_folder(place)
        try:
            os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        storage_failed(error, f"cannot remove {path}")


def sync_directory(path: str, folder: int | None = None) -> None:
    """fsync a directory, so that a rename in it survives a power failure. The path may be relative to an open
    folder."""
    descriptor = os.open(path, _DIRECTORY, dir_fd=folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def storage_failed(error: OSError, what: str) -> NoReturn:
    """Raise a StorageError for an OSError."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise DiskFull(f"{what}: {error.strerror}") from error
    if error.errno == errno.ENOENT:
        raise NotFound(f"{what}: {error.strerror}", hint="was the task removed?") from error
    raise StorageError(f"{what}: {error.strerror}", hint=_whose(error)) from error


def _whose(error: OSError) -> str:
    """A hint for a file that may not be used; empty for other errors."""
    is_kept_out = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
    return "is it read-only, or does it belong to another user?" if is_kept_out else ""


def forget_temporaries(*directories: str, only_of_the_dead: bool = False) -> None:
    """Remove temporary files of killed writers.

    If others write here too, only those of dead processes (the pid is in the name).
    """
    for directory in directories:
        folder = read_own_folder(directory)
        try:
            for name in os.listdir(folder):
                if (
                    name[0] == "."
                    and name.endswith(".tmp")
                    and not (only_of_the_dead and _lives(name.split(".")[-2]))
                ):
                    forget(name, folder)
        finally:
            os.close(folder)


def _lives(writer: str) -> bool:
    """Whether the process in a temporary file's name (`PID-RANDOM`) may be alive."""
    pid = ids.number_in(writer.partition("-")[0])
    if pid is None:
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def forget(path: str, folder: int | None = None) -> None:
    """Unlink a file that is not needed, ignoring errors. The path may be relative to an open folder."""
    try:
        os.unlink(path, dir_fd=folder)
    except OSError:
        return
