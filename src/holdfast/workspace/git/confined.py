"""Starting git so that the kernel (Landlock) lets it write only where a call may write.

We check that no link is on the way to what git writes. An agent of another task can still put one there
afterwards, while git runs: git would follow it. So directories are opened before git starts, without
following a link, and git can create, change and remove files only beneath these very directories, whatever is
at their paths later. It reads everywhere.

The kernel confines a thread and what that starts. So a thread of its own confines itself, starts git, and
ends: 0.3 ms. `preexec_fn` would make Python copy itself (5 ms).
"""

from __future__ import annotations

import errno
import os
import sys
from functools import cache
from threading import Thread

from holdfast.errors import GitFailed
from holdfast.store import linked_objects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from subprocess import Popen

#: Numbers of system calls, on every architecture.
_OPENAT2, _CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 437, 444, 445, 446
_AT_FDCWD = -100
_RESOLVE_NO_SYMLINKS = 0x04
_PR_SET_NO_NEW_PRIVS = 38
_VERSION = 1  # a flag: tell what the kernel can
_PATH_BENEATH = 1
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
#: Removing and creating whatever there is, and moving it between directories.
_CHANGE = _WRITE_FILE | sum(1 << bit for bit in range(4, 14))
#: With the second version, files can be moved between directories (Linux 5.19), which git does with objects.
_NEEDED, _KNOWS_TRUNCATE = 2, 3

#: What each command writes. A command that is not here writes nothing.
_WRITES: dict[str, tuple[str, ...]] = {
    "apply": ("tree",),
    "checkout-index": ("tree", "index"),
    "commit-tree": ("objects",),
    "hash-object": ("objects",),
    "index-pack": ("objects",),
    "merge": ("tree", "index", "objects", "refs"),
    "merge-tree": ("objects",),
    "mktree": ("objects",),
    "read-tree": ("tree", "index"),
    "reset": ("index",),
    "symbolic-ref": ("refs",),
    "unpack-objects": ("objects",),
    "update-index": ("index", "objects"),
    "update-ref": ("refs",),
    "write-tree": ("index", "objects"),
}


@cache
def is_possible() -> bool:
    """Whether the kernel can do it."""
    return _version() >= _NEEDED


def writable(command: str, env: Mapping[str, str], *, objects: str, common_dir: str | None) -> list[str]:
    """The directories that a call with these variables may write; the others are as in `private.Target`."""
    git_dir = env["GIT_DIR"]
    index = env.get("GIT_INDEX_FILE")
    places = {
        "tree": [env.get("GIT_WORK_TREE")],
        "index": [os.path.dirname(index) if index is not None else git_dir],
        "objects": [objects],
        "refs": [git_dir, common_dir],
    }
    kinds = _WRITES.get(command, ())
    found = [place for kind in kinds for place in places[kind] if place]
    # git makes `logs` in the directory of ours if the repository has none.
    return [*found, env.get("GIT_COMMON_DIR", git_dir)] if found else []


def start(launch: Callable[[], Popen[bytes]], writable: Iterable[str] | None) -> Popen[bytes]:
    """Start a program that writes only in these directories (None: everywhere). Raises OSError, GitFailed."""
    if writable is None or not is_possible():
        return launch()
    ruleset = _ruleset(writable)
    started: list[Popen[bytes]] = []
    failed: list[BaseException] = []

    def confine_and_start() -> None:
        try:
            # Without it, only root may confine itself: a set-user-ID program would be surprised.
            _done(_call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
            _done(_syscall(_RESTRICT_SELF, ruleset, 0))
            started.append(launch())
        except BaseException as error:
            failed.append(error)

    thread = Thread(target=confine_and_start)
    try:
        thread.start()
        try:
            thread.join()
        except BaseException:  # Ctrl-C
            thread.join()
            for process in started:
                process.kill()
            raise
    except RuntimeError as error:  # no thread can be started
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
    finally:
        os.close(ruleset)
    if failed:
        raise failed[0]
    return started[0]


def _ruleset(writable: Iterable[str]) -> int:
    """A descriptor of rules: nothing can be changed but beneath these directories."""
    may = _CHANGE | (_TRUNCATE if _version() >= _KNOWS_TRUNCATE else 0)
    ruleset = _done(_syscall(_CREATE_RULESET, _number(may), 8, 0))
    try:
        _allow(ruleset, os.devnull, may & (_WRITE_FILE | _TRUNCATE), 0)
        for path in dict.fromkeys(writable):
            _allow(ruleset, path, may, os.O_DIRECTORY)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def _allow(ruleset: int, path: str, what: int, flags: int) -> None:
    how = b"".join(map(_number, (os.O_PATH | os.O_CLOEXEC | flags, 0, _RESOLVE_NO_SYMLINKS)))
    descriptor = _syscall(_OPENAT2, _AT_FDCWD, os.fsencode(path), how, len(how))
    if descriptor < 0:
        if os.path.realpath(path) != path:
            raise GitFailed(
                f"a symbolic link is in the place of {path}, or on the way to it",
                hint=linked_objects.hint(path),
            )
        return  # what is missing is git's to report
    try:
        rule = _number(what) + descriptor.to_bytes(4, sys.byteorder)
        _done(_syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
    finally:
        os.close(descriptor)


@cache
def _version() -> int:
    return _syscall(_CREATE_RULESET, None, 0, _VERSION) if sys.platform == "linux" else -1


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    return _call("syscall", number, *arguments)


def _call(name: str, *arguments: int | bytes | None) -> int:
    import _ctypes  # the C half: see recorder.py

    function = _ctypes.dlsym(_ctypes.dlopen(None, 0), name)  # pyright: ignore[reportArgumentType]
    return _ctypes.call_function(function, arguments)


def _number(value: int) -> bytes:
    return value.to_bytes(8, sys.byteorder)


def _done(result: int) -> int:
    if result < 0:
        raise OSError(errno.EPERM, "the kernel does not confine it (Landlock)")
    return result
