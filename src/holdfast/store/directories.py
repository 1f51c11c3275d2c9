"""Going through and removing directories that an agent filled.

They may be nested deeper than Python recurses and than a path can be long, and have any mode. `os.walk`
(before Python 3.12) and `shutil.rmtree` recurse.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: At most this many of our own files in a packet are restored, at most this deep.
_MAX_RESTORED, _MAX_RESTORED_DEPTH = 5000, 2
#: At most this many directories are looked at for one that cannot be read.
_MAX_LISTED = 20_000
#: Names a file without opening it; only Linux has it.
_NAME_ONLY = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC


def walk(top: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """As `os.walk`, but at any depth that a path can name: a caller may remove names of directories."""
    todo = [top]
    while todo:
        folder = todo.pop()
        folders: list[str] = []
        names: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    (folders if _is_folder(entry) else names).append(entry.name)
        except OSError:
            continue
        yield folder, folders, names
        paths = [os.path.join(folder, name) for name in folders]
        todo += [path for path in reversed(paths) if not os.path.islink(path)]


def unreadable(top: str) -> tuple[str, ...]:
    """Directories below `top`, of a bounded number, that this user cannot list. git leaves them out."""
    found: list[str] = []
    folders, left = [top], _MAX_LISTED
    while folders and left > 0:
        folder = folders.pop()
        left -= 1
        try:
            with os.scandir(folder) as entries:
                folders += [
                    entry.path
                    for entry in entries
                    if entry.name != ".git" and entry.is_dir(follow_symlinks=False)
                ]
        except PermissionError:
            found.append(folder)
        except OSError:
            continue  # removed meanwhile
    return tuple(sorted(found))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def remove_tree(path: str, folder: int | None = None) -> bool:
    """Remove a directory tree or a file, as far as possible. Symbolic links are removed, never followed.

    Returns whether nothing is left. The path may be relative to an open folder: where a living agent writes,
    it must be, and a plain name, because what is around it can become a link at any time.
    """
    try:
        root = _opened(path, folder)
    except OSError:
        return _quietly_unlink(path, folder)
    try:
        _empty(root)
    finally:
        os.close(root)
    try:
        os.rmdir(path, dir_fd=folder)
    except OSError as error:
        return isinstance(error, FileNotFoundError)
    return True


def open_plain(path: str, folder: int | None = None) -> int:
    """A descriptor of a directory that is no link. Raises OSError."""
    return os.open(path, _FOLDER, dir_fd=folder)


def keep_only(folder: int, *kept: str) -> None:
    """Remove everything in an open directory but these names, and links with these names."""
    for name in os.listdir(folder):
        if name not in kept or _is_link(name, folder):
            remove_tree(name, folder)


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode)
    except OSError:
        return False  # removed meanwhile


def restore_modes(packet: str) -> bool:
    """Let us read and write a packet again, after its agent has changed modes in it.

    Returns whether anything was changed. Links are not followed. Not for every start: it looks at all files.
    """
    changed = _restore(packet)
    folders, left = [(packet, 0)], _MAX_RESTORED
    while folders and left > 0:
        folder, depth = folders.pop()
        try:
            with os.scandir(folder) as entries:
                inside = [entry for entry in entries if not entry.is_symlink()]
        except OSError:
            continue
        for entry in inside[:left]:
            changed = _restore(entry.path) or changed
            if (
                depth < _MAX_RESTORED_DEPTH
                and entry.is_dir(follow_symlinks=False)
                and entry.name != "scratch"
            ):
                folders.append((entry.path, depth + 1))
        left -= len(inside)
    return changed


def _restore(path: str) -> bool:
    try:
        handle = os.open(path, _NAME_ONLY)
    except OSError:
        return False
    try:
        stats = os.fstat(handle)
        mode = stats.st_mode
        # A file with a second name may be a user's.
        is_file = stat.S_ISREG(mode) and stats.st_nlink == 1
        wanted = 0o700 if stat.S_ISDIR(mode) else 0o600 if is_file else 0
        if mode & wanted == wanted:
            return False
        os.chmod(f"/proc/self/fd/{handle}", stat.S_IMODE(mode) | wanted)
    except OSError:
        return False  # of another user, or on a read-only file system
    finally:
        os.close(handle)
    return True


def _empty(root: int) -> None:
    """Remove everything in a directory. Directories in directories are moved up, so depth does not matter."""
    mark, number = os.urandom(8).hex(), 0
    stuck: set[str] = set()
    while names := [name for name in os.listdir(root) if name not in stuck]:
        for name in names:
            if _quietly_unlink(name, root):
                continue
            try:
                folder = _opened(name, root)
            except OSError:
                stuck.add(name)
                continue
            try:
                for inner in os.listdir(folder):
                    if not _quietly_unlink(inner, folder):
                        number += 1
                        _move(inner, folder, f"{mark}-{number}", root)
            finally:
                os.close(folder)
            try:
                os.rmdir(name, dir_fd=root)
            except OSError:
                stuck.add(name)


def _move(name: str, folder: int, to: str, root: int) -> None:
    try:
        _open_up(name, folder)  # its entry ".." changes, so it must be writable
        os.rename(name, to, src_dir_fd=folder, dst_dir_fd=root)
    except OSError:
        return


def _quietly_unlink(name: str, folder: int | None) -> bool:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError as error:
        return isinstance(error, FileNotFoundError)
    return True


def _opened(name: str, folder: int | None) -> int:
    """A descriptor of a directory, made writable for removal. Raises OSError if it is not a directory."""
    _open_up(name, folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def _open_up(name: str, folder: int | None) -> None:
    """Make a directory writable for us: tools leave read-only ones. A link is not followed."""
    handle = os.open(name, _NAME_ONLY, dir_fd=folder)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{handle}", 0o700)
    finally:
        os.close(handle)
