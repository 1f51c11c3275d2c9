"""Files that are whole or not there.

A durable write is: temporary file in the same directory, fsync, rename, fsync of the directory. What is derived from
durable files is renamed into place without the two syncs. SIGKILL leaves at most a temporary file, whose name starts
with a dot and which nobody reads.
"""

from __future__ import annotations

import errno
import json
import os
import stat

from holdfast.errors import CorruptFile, DiskFull, NotFound, StorageError
from holdfast.failpoints import failpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
#: Longer ones are read in several goes.
_WHOLE_BYTES = 128 * 1024
_counter = 0


def write(path: str, data: bytes, *, durable: bool, mode: int = 0o600) -> None:
    """Replace the file at `path` by `data`, or leave it as it was. Raises StorageError."""
    global _counter
    _counter += 1
    folder, name = os.path.split(path)
    # Unique per process and call: two writers never share a temporary file.
    temporary = os.path.join(folder, f".{name}.{os.getpid()}-{_counter}.tmp")
    try:
        descriptor = os.open(temporary, _NEW_FILE, mode)
        try:
            write_all(descriptor, data)
            if durable:
                failpoint("atomic.before_fsync")
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        failpoint("atomic.before_rename")
        os.rename(temporary, path)
        if durable:
            failpoint("atomic.after_rename")
            sync_directory(folder)
    except OSError as error:
        forget(temporary)
        storage_failed(error, f"cannot write {path}")


def write_json(path: str, data: Any, *, durable: bool) -> None:
    """`write` for JSON."""
    write(path, encode_json(data), durable=durable)


def encode_json(data: Any) -> bytes:
    """The text of a JSON file, with a newline at its end. A lone surrogate (half an emoji, or a byte that is no UTF-8) becomes
    its JSON escape, so that the file is valid and gives the same text back."""
    return (json.dumps(data, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def write_all(descriptor: int, data: bytes) -> None:
    """write(2) until everything is written. A full disk shows up as a short write first."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def read_json(path: str) -> dict[str, Any] | None:
    """The JSON object at `path`; None when there is no file. Raises CorruptFile when it is not a JSON object."""
    try:
        raw = read_all(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}", hint=_whose(error)) from error
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(
            f"{path} is not JSON: {error}", hint="it is kept as it is; look at it by hand"
        ) from error
    if not isinstance(data, dict):
        raise CorruptFile(f"{path} is not a JSON object", hint="it is kept as it is; look at it by hand")
    return data  # pyright: ignore[reportUnknownVariableType]


def read_all(path: str) -> bytes:
    """All of a file. Not `open`, which asks six questions more of it: a launch reads some ten of them. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(descriptor, _WHOLE_BYTES)
        while part := os.read(descriptor, _WHOLE_BYTES):
            data += part
        return data
    finally:
        os.close(descriptor)


def read_small(path: str, limit: int) -> bytes | None:
    """The first bytes of a plain file that an agent may have put there; None when there is none. A pipe would hang its reader,
    and a link could show what is not the agent's to show."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        return os.read(descriptor, limit) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    finally:
        os.close(descriptor)


def make_directory(path: str) -> None:
    """A directory, mode 0700, if there is none. What is in its way is put aside: an agent may have put anything there."""
    while True:
        try:
            # Nearly always it is there.
            if stat.S_ISDIR(os.lstat(path).st_mode):
                return
            put_aside(path)
        except FileNotFoundError:
            pass
        try:
            os.mkdir(path, 0o700)
            return
        except FileExistsError:
            continue  # somebody was quicker: runners share some of them


def put_aside(path: str) -> None:
    """Give what is at `path` another name beside it."""
    number = 1
    while os.path.lexists(aside := f"{path}.aside-{number}"):
        number += 1
    os.rename(path, aside)


def remove(path: str) -> None:
    """Unlink, if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        storage_failed(error, f"cannot remove {path}")


def sync_directory(path: str) -> None:
    """fsync a directory, so that a rename in it survives a power cut."""
    descriptor = os.open(path, _DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def storage_failed(error: OSError, what: str) -> NoReturn:
    """Translate an OSError of a write into ours."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise DiskFull(f"{what}: {error.strerror}") from error
    if error.errno == errno.ENOENT:
        raise NotFound(f"{what}: {error.strerror}", hint="was the task removed?") from error
    raise StorageError(f"{what}: {error.strerror}", hint=_whose(error)) from error


def _whose(error: OSError) -> str:
    """What to look at where a file is not ours to use; nothing where that is not the reason."""
    is_kept_out = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
    return "is it read-only, or does it belong to another user?" if is_kept_out else ""


def forget_temporaries(*directories: str, only_of_the_dead: bool = False) -> None:
    """Remove what killed writers left. Where others write too, only what a process left that is gone: its pid is in the name."""
    for directory in directories:
        for name in os.listdir(directory):
            if (
                name[0] == "."
                and name.endswith(".tmp")
                and not (only_of_the_dead and _lives(name.split(".")[-2]))
            ):
                forget(os.path.join(directory, name))


def _lives(writer: str) -> bool:
    """Whether the process of a temporary file's name (`PID-N`) may be alive."""
    pid = writer.partition("-")[0]
    if not pid.isdigit():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def forget(path: str) -> None:
    """Unlink what nobody needs, if it can be done."""
    try:
        os.unlink(path)
    except OSError:
        return
