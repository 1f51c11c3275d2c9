"""The git directory that a call gets: made by us for one command or chore, with a configuration of ours.

git has no option to ignore the configuration of a repository. But it takes configuration, ignore rules,
attributes and hooks from GIT_COMMON_DIR. So that is a directory of ours, in which objects and refs are links
into the repository. HEAD, index and the state of a merge are in the repository's own git directory. The
configuration of the repository, which an agent can write, is not read (docs/decisions/0057-git.md).

The directory has a random name and exists only for one command or chore, so nothing can be planted in it
beforehand. That may take long, and agents of other tasks can write in the directory meanwhile. So before each
call it is compared with what we put there; one that was changed is not used again.
"""

from __future__ import annotations

import errno
import os
import stat
from _thread import allocate_lock

from holdfast.model.record import Record
from holdfast.store import atomic
from holdfast.store.directories import remove_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import ClassVar

    from holdfast.workspace.git.settings import Settings

    Entries = dict[str, str | bytes | None]

#: What all worktrees of a repository share, as links. The others are dropped: config, hooks, info, remotes.
_SHARED = ("HEAD", "refs", "packed-refs", "logs", "worktrees", "shallow", "reftable")
#: More than any of our files has.
_READ_BYTES = 16 << 20
#: These may be missing: git creates them through the link.
_CREATED = ("packed-refs",)
_CONFIG = """\
[core]
	hooksPath = /dev/null
	fsmonitor = false
	askPass = false
	sshCommand = false
	editor = false
	pager = cat
	excludesFile = /dev/null
	splitIndex = false
	untrackedCache = false
	checkStat = default
	trustctime = true
	ignoreStat = false
	quotePath = false
	commitGraph = false
	safecrlf = false
[gc]
	auto = 0
[maintenance]
	auto = false
[advice]
	addEmbeddedRepo = false
[protocol]
	allow = never
[submodule]
	recurse = false
[status]
	submoduleSummary = false
[fetch]
	recurseSubmodules = false
	writeCommitGraph = false
[commit]
	gpgSign = false
[rerere]
	enabled = false
"""


class Target(Record):
    """What a call works on."""

    #: The directory of objects.
    objects: str
    #: A repository of the user: its git directory and the one that its worktrees share. None: there are no
    #: refs, and the git directory is ours alone.
    git_dir: str | None = None
    common_dir: str | None = None
    #: More settings, in the syntax of git's configuration.
    config: str = ""


class SharedDirectories:
    """The directories that calls of git share: making one costs more than starting git.

    They exist inside a `with` statement, which is as long as one command or one chore, or a single call.
    These may be nested, also in several threads; the directories are removed at the end of the last.
    """

    _lock = allocate_lock()
    _depth = 0
    #: Each directory with what is in it.
    _made: ClassVar[dict[tuple[str | None, ...], tuple[str, Entries]]] = {}
    #: Those that somebody changed.
    _dropped: ClassVar[list[str]] = []

    def __enter__(self) -> SharedDirectories:
        with SharedDirectories._lock:
            SharedDirectories._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        with SharedDirectories._lock:
            SharedDirectories._depth -= 1
            while SharedDirectories._made and not SharedDirectories._depth:
                SharedDirectories._dropped.append(SharedDirectories._made.popitem()[1][0])
            while SharedDirectories._dropped and not SharedDirectories._depth:
                remove_tree(SharedDirectories._dropped.pop())

    def variables(self, target: Target, settings: Settings) -> dict[str, str]:
        """The variables that tell git about the directory for a target. Raises StorageError."""
        content = (
            _config(target, settings), settings.exclude, settings.attributes, settings.user_attributes
        )  # fmt: skip
        key = (target.objects, target.common_dir, *content)
        with SharedDirectories._lock:
            path, entries = SharedDirectories._made.get(key, ("", {}))
            if not path or _entries(path) != entries:
                SharedDirectories._dropped += [path] if path else []
                path = _filled(target, content)
                SharedDirectories._made[key] = path, _entries(path)
        if target.common_dir is None:
            return {"GIT_DIR": path}
        return {"GIT_DIR": target.git_dir or target.common_dir, "GIT_COMMON_DIR": path}


def _config(target: Target, settings: Settings) -> str:
    """The configuration, but for the path of the directory itself."""
    is_plain = not any(name.startswith("extensions.") for name in settings.values)
    lines = [
        _CONFIG,
        f"[core]\n\trepositoryFormatVersion = {0 if is_plain else 1}\n",
        f"\tbare = {'true' if target.common_dir is None else 'false'}\n",
    ]
    for name, value in settings.values.items():
        section, _, key = name.partition(".")
        lines.append(f"[{section}]\n\t{key} = {quoted(value)}\n")
    return "".join(lines) + target.config


def _filled(target: Target, content: tuple[str, str, str, str]) -> str:
    """A new directory for a target, with configuration, ignore rules and attributes."""
    path, (config, exclude, attributes, user_attributes) = "", content
    try:
        path = new_directory()
        os.mkdir(f"{path}/info", 0o700)
        # An empty file would be one more to write and to read.
        attributes_file = f"{path}/attributes" if user_attributes else os.devnull
        _put(f"{path}/config", f"{config}[core]\n\tattributesFile = {quoted(attributes_file)}\n")
        for name, text in (
            ("attributes", user_attributes), ("info/exclude", exclude), ("info/attributes", attributes)
        ):  # fmt: skip
            if text:
                _put(f"{path}/{name}", text)
        os.symlink(target.objects, f"{path}/objects")
        if target.common_dir is None:
            _put(f"{path}/HEAD", "ref: refs/heads/none\n")
            os.mkdir(f"{path}/refs", 0o700)
            return path
        for name in _SHARED:
            source = os.path.join(target.common_dir, name)
            if name in _CREATED or os.path.lexists(source):
                os.symlink(source, f"{path}/{name}")
    except OSError as error:
        if path:
            remove_tree(path)
        atomic.storage_failed(error, "cannot create a directory for git")
    return path


def _entries(path: str) -> Entries:
    """What is in a directory of ours: the targets of links, and the content of files."""
    found: Entries = {}
    for folder in ("", "info/"):
        try:
            names = os.listdir(f"{path}/{folder}")
        except OSError:
            continue  # somebody removed it
        for name in names:
            place = f"{path}/{folder}{name}"
            try:
                found[folder + name] = os.readlink(place)
            except OSError:
                # None: what is no file, or cannot be read.
                found[folder + name] = atomic.read_small(place, _READ_BYTES)
    # git makes it where the repository has no reflogs; they are lost, and git reads nothing of ours there.
    if found.get("logs", b"") is None:
        del found["logs"]
    return found


def quoted(value: str) -> str:
    """A value, or the name of a subsection without line ends, in the syntax of git's configuration."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _put(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        atomic.write_all(descriptor, text.encode("utf-8", "surrogateescape"))
    finally:
        os.close(descriptor)


def new_directory() -> str:
    """A new directory of ours, in memory if possible: on a disk it would take as long as a call of git."""
    for folder in _folders():
        try:
            path = os.path.join(_own_folder(folder), f"{os.getpid()}-{os.urandom(8).hex()}")
            os.mkdir(path, 0o700)
        except OSError:
            continue
        return path
    raise OSError(errno.EACCES, "no temporary directory can be written")


def _folders() -> Iterator[str]:
    """Behind no link of the system or the user (`/var/run`): git writes nowhere if one is on the way."""
    uid = os.geteuid()
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        yield f"{os.path.realpath(runtime)}/holdfast"
    for folder in ("/dev/shm", os.environ.get("TMPDIR") or "/tmp"):
        yield f"{os.path.realpath(folder)}/holdfast-{uid}"


def _own_folder(path: str) -> str:
    """Create a folder if it is missing. Raises OSError unless it is ours alone."""
    is_new = True
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        is_new = False
    found = os.lstat(path)
    # Before anything is removed there: it may be a link, or another user's.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise PermissionError(errno.EACCES, "it belongs to others", path)
    if not is_new:
        _remove_leftovers(path)
    return path


def _remove_leftovers(folder: str) -> None:
    """Remove the directories of processes that were killed."""
    for name in os.listdir(folder):
        pid = name.partition("-")[0]
        if pid.isdecimal() and not os.path.exists(f"/proc/{pid}"):
            remove_tree(os.path.join(folder, name))
