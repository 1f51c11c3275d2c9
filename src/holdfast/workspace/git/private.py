"""The git directory that a call gets: made by us for this one call, with a configuration that we write.

git has no option to ignore the configuration of a repository. But it takes configuration, ignore rules,
attributes and hooks from GIT_COMMON_DIR. So that is a directory of ours, in which objects and refs are links
into the repository. HEAD, index and the state of a merge are in the repository's own git directory. The
configuration of the repository, which an agent can write, is not read (docs/decisions/0053-git.md).

The directory has a random name and exists while git runs, so nothing can be planted in it beforehand.
"""

from __future__ import annotations

import os

from holdfast import paths
from holdfast.errors import StorageError
from holdfast.model.record import Record
from holdfast.store import atomic
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.workspace.git.settings import Settings

#: What all worktrees of a repository share, as links. The others are dropped: config, hooks, info, remotes.
_SHARED = ("HEAD", "refs", "packed-refs", "logs", "worktrees", "shallow", "reftable")
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


class Directory:
    """The git directory of one call; `env` tells git about it. To be used in a `with` statement."""

    def __init__(self, target: Target, settings: Settings) -> None:
        self._target = target
        self._settings = settings
        self._path = ""

    def __enter__(self) -> dict[str, str]:
        target = self._target
        try:
            self._path = path = _make()
            os.mkdir(f"{path}/info", 0o700)
            _put(f"{path}/config", self._config())
            _put(f"{path}/attributes", self._settings.user_attributes)
            _put(f"{path}/info/exclude", self._settings.exclude)
            _put(f"{path}/info/attributes", self._settings.attributes)
            os.symlink(target.objects, f"{path}/objects")
            if target.common_dir is None:
                _put(f"{path}/HEAD", "ref: refs/heads/none\n")
                os.mkdir(f"{path}/refs", 0o700)
                return {"GIT_DIR": path}
            for name in _SHARED:
                source = os.path.join(target.common_dir, name)
                if name in _CREATED or os.path.lexists(source):
                    os.symlink(source, f"{path}/{name}")
        except OSError as error:
            self.__exit__()
            atomic.storage_failed(error, "cannot create a directory for git")
        return {"GIT_DIR": target.git_dir or target.common_dir, "GIT_COMMON_DIR": path}

    def __exit__(self, *_: object) -> None:
        if self._path:
            _remove(self._path)

    def _config(self) -> str:
        values = dict(self._settings.values)
        is_plain = not any(name.startswith("extensions.") for name in values)
        lines = [
            _CONFIG,
            f"[core]\n\trepositoryFormatVersion = {0 if is_plain else 1}\n",
            f"\tbare = {'true' if self._target.common_dir is None else 'false'}\n",
            f"\tattributesFile = {_quoted(self._path + '/attributes')}\n",
        ]
        for name, value in values.items():
            section, _, key = name.partition(".")
            lines.append(f"[{section}]\n\t{key} = {_quoted(value)}\n")
        return "".join(lines) + self._target.config


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _put(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        atomic.write_all(descriptor, text.encode("utf-8", "surrogateescape"))
    finally:
        os.close(descriptor)


def _make() -> str:
    """A new directory in the home, where agents do not write; without a home, in the temporary directory."""
    name = f"{os.getpid()}-{os.urandom(8).hex()}"
    try:
        folder = Home(paths.chosen_home()).git
        if not os.path.isdir(os.path.dirname(folder)):
            raise FileNotFoundError
        atomic.make_directory(folder)
        _remove_leftovers(folder)
        path = os.path.join(folder, name)
        os.mkdir(path, 0o700)
    except (OSError, StorageError):
        path = os.path.join(os.environ.get("TMPDIR") or "/tmp", f"holdfast-git-{name}")
        os.mkdir(path, 0o700)
    return path


def _remove_leftovers(folder: str) -> None:
    """Remove the directories of processes that were killed."""
    for name in os.listdir(folder):
        pid = name.partition("-")[0]
        if pid.isdecimal() and not os.path.exists(f"/proc/{pid}"):
            _remove(os.path.join(folder, name))


def _remove(path: str) -> None:
    """Remove what `Directory` made. Nothing below a link is touched."""
    for folder, directories, files in os.walk(path, topdown=False):
        for name in (*files, *directories):
            inner = os.path.join(folder, name)
            try:
                os.unlink(inner) if os.path.islink(inner) or name in files else os.rmdir(inner)
            except OSError:
                continue
    try:
        os.rmdir(path)
    except OSError:
        return
