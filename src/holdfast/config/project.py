"""Reading a project's `.holdfast/`, which is untrusted.

Links are refused, at every level: the content must be the project's own, not a file of the user's. A FIFO
does not block, and a large file is refused. A file is read once: what is judged is what is used.
"""

from __future__ import annotations

import errno
import os
import stat

from holdfast import paths
from holdfast.errors import UnreadableFile

#: Of one file.
MAX_BYTES = 1024 * 1024
#: Of a folder; the names beyond are refused.
MAX_FILES = 1000
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW


def read(project: str, *names: str) -> bytes | None:
    """The content of `.holdfast/<names>`; None if there is no such file. Raises UnreadableFile."""
    path = os.path.join(paths.project_config_dir(project), *names)
    try:
        folder = _open_folder(project, names[:-1])
        try:
            descriptor = os.open(names[-1], _OPEN, dir_fd=folder)
        finally:
            os.close(folder)
        return _content(descriptor, path)
    except OSError as error:
        if _is_missing(error, project, names):
            return None
        raise UnreadableFile(f"cannot read {path}: {_reason(error)}", hint=_hint(error)) from error


def listing(project: str, *names: str) -> list[str]:
    """The names in the folder `.holdfast/<names>`, sorted; empty if there is none. Raises UnreadableFile."""
    path = os.path.join(paths.project_config_dir(project), *names)
    try:
        folder = _open_folder(project, names)
        try:
            found = os.listdir(folder)
        finally:
            os.close(folder)
    except OSError as error:
        if _is_missing(error, project, names):
            return []
        raise UnreadableFile(f"cannot read {path}: {_reason(error)}", hint=_hint(error)) from error
    if len(found) > MAX_FILES:
        raise UnreadableFile(f"{path} has more than {MAX_FILES} files")
    return sorted(found)


def named_file(path: str) -> bytes | None:
    """The content of a file that a setting names; None if it is not a regular file. Raises UnreadableFile.

    Links are followed here: a user may keep the file elsewhere. Trust covers the content.
    """
    try:
        return _content(os.open(os.path.realpath(path), _OPEN), path)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"cannot read {path}: {_reason(error)}", hint=_hint(error)) from error


def _open_folder(project: str, names: tuple[str, ...]) -> int:
    """The open folder `.holdfast/<names>`."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY
    descriptor = os.open(project, flags)
    for name in (os.path.basename(paths.project_config_dir(project)), *names):
        try:
            inner = os.open(name, flags | os.O_NOFOLLOW, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def _is_missing(error: OSError, project: str, names: tuple[str, ...]) -> bool:
    """Whether there is no such file. A link to a directory gives the same error as a file in its place."""
    if isinstance(error, FileNotFoundError):
        return True
    folder = paths.project_config_dir(project)
    ways = [os.path.join(folder, *names[:count]) for count in range(len(names) + 1)]
    return isinstance(error, NotADirectoryError) and not any(os.path.islink(way) for way in ways)


def _content(descriptor: int, path: str) -> bytes:
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        data, left = b"", MAX_BYTES + 1
        while left > 0 and (piece := os.read(descriptor, left)):
            data, left = data + piece, left - len(piece)
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise OSError(errno.EFBIG, f"larger than {MAX_BYTES // 1024} KiB", path)
    return data


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "it is a link"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _hint(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "replace the link with the files"
    return "check its type, size and permissions"
