"""Look at the file system for a sandbox: which paths exist, where links lead, what git needs to commit."""

from __future__ import annotations

import os
import re
import stat
import sys

from holdfast import paths
from holdfast.errors import UsageError
from holdfast.sandbox import hidden, machine
from holdfast.sandbox.mounts import (
    ENCLOSE,
    ENTRY,
    HIDE_FILE,
    HIDE_FOLDER,
    LINK,
    PRIVATE,
    READ,
    REPLACE,
    WRITE,
    Mount,
    Sandbox,
    ordered,
)
from holdfast.store import atomic
from holdfast.store.no_links import plain_path
from holdfast.workspace import room_places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holdfast.workspace.git import Repository

LINK_HINT = "use --worktree, or put a file with the line 'gitdir: PATH' in the place of the link"
#: In the git directory of a worktree: what redirects git, or configures it.
_KEPT_OF_WORKTREE = ("commondir", "gitdir", "config.worktree")
#: Where the branches of tasks are.
_BRANCHES = "refs/heads/holdfast"
#: A path in the value of a variable: `unix:///run/docker.sock`, `unix:path=/run/bus,guid=1`, `/tmp/x,12,0`.
_PATH = re.compile(r"/[^,;:=\0]*")


class SandboxBuilder:
    """Collects the mounts of one sandbox."""

    def __init__(self, *, env: Mapping[str, str]) -> None:
        self.env = env
        self.mounts: list[Mount] = []
        #: As they were named, and where they really are.
        self._hidden: set[str] = set()
        #: What the command may not rename, nor put something else in its place.
        self._kept: set[str] = set()
        #: Folders of the user that contain hidden names.
        self._with_hidden: set[str] = set()
        #: The private git data of a worktree.
        self._store = ""
        self._hide_defaults()

    def sandbox(
        self,
        *,
        bwrap: str,
        cwd: str,
        network: bool,
        hosts: tuple[str, ...] = (),
        after: tuple[str, ...] = (),
    ) -> Sandbox:
        """The sandbox that was described. `after` is a command that is run outside when it has ended."""
        self._keep_own_program()
        self._pin_kept()
        mounts = (*self.mounts, *self._enclosures())
        _remove_links_to(mounts)
        return Sandbox(
            bwrap=bwrap,
            python=sys.executable,
            mounts=mounts,
            cwd=os.path.realpath(cwd),
            network=network,
            hosts=hosts,
            has_userns=not machine.can_forbid_nesting(bwrap),
            after=after if self._store else (),
            held=self._store,
            drop_env=tuple(name for name in hidden.VARIABLES if name in self.env),
        )

    def write(self, *paths: str) -> None:
        """These may be written, as far as they exist."""
        self._show(WRITE, paths)

    def read(self, *paths: str) -> None:
        """These are seen, as far as they exist, but not written, whatever is around them."""
        self._show(READ, paths)

    def hide(self, *paths: str) -> None:
        """These are empty and cannot be written, as far as they exist, nor replaced by others."""
        self._kept.update(map(os.path.realpath, paths))
        self.forbid(*paths)

    def forbid(self, *paths: str) -> None:
        """These are empty and cannot be written, as far as they exist. A folder around may be renamed."""
        for path in paths:
            real = os.path.realpath(path)
            self._hidden |= {os.path.abspath(path), real}
            if os.path.isdir(real):
                self.mounts.append(Mount(kind=HIDE_FOLDER, path=real))
            elif os.path.exists(real):
                self.mounts.append(Mount(kind=HIDE_FILE, path=real))

    def _enclosures(self) -> list[Mount]:
        """Mounts that show a folder without its hidden names, now and later.

        A mount on a hidden file is not enough: it vanishes when a program outside replaces the file, and what
        is created later has none. Where the command may write, there is no other way.
        """
        kinds = {mount.path: mount.kind for mount in ordered(tuple(self.mounts))}
        mounts: list[Mount] = []
        for folder in self._with_hidden:
            around = next((kinds[path] for path in _upwards(folder) if path in kinds), READ)
            if os.path.isdir(folder) and around not in (WRITE, REPLACE, HIDE_FOLDER):
                mounts.append(Mount(kind=ENCLOSE, path=folder))
                mounts += self._entries(folder)
        return mounts

    def _entries(self, folder: str) -> list[Mount]:
        try:
            with os.scandir(folder) as entries:
                found = [entry for entry in entries if not self._is_hidden(entry.path)]
        except OSError:
            return []
        links = [entry for entry in found if entry.is_symlink()]
        others = [entry for entry in found if not entry.is_symlink()]
        return [
            *(Mount(kind=LINK, path=entry.path, source=os.readlink(entry.path)) for entry in links),
            *(Mount(kind=ENTRY, path=entry.path) for entry in others),
        ]

    def put(self, source: str, path: str) -> None:
        """Show the folder `source` in the place of the folder `path`, writable."""
        self.mounts.append(Mount(kind=REPLACE, path=os.path.realpath(path), source=os.path.realpath(source)))

    def lend(self, source: str, path: str, *, around: str, own: str = "") -> None:
        """Show `source`, which a repository or an agent can choose, at another path, only to read.

        If a link leads out of the folder `around`, it stays one: what is behind it is seen as the sandbox
        shows it. A mount would show what is hidden, or, of /proc, the processes outside. Only what is hidden
        with `own`, the home, is shown again, by its own path.
        """
        real, named = os.path.realpath(source), os.path.abspath(source)
        is_own = bool(own) and real == named and real.startswith(os.path.realpath(own) + "/")
        is_plain = real == named or real.startswith(around + "/")
        kind = READ if is_own or (is_plain and not self.has_hidden(real)) else LINK
        self.mounts.append(Mount(kind=kind, path=path, source=real))

    def workspace(
        self,
        directory: str,
        repository: Repository | None,
        *,
        store: str | None,
        submodules: tuple[str, ...] = (),
    ) -> None:
        """The directory where the command works.

        `store` is for a worktree: there the command commits (`workspace.sandbox_commits`). In the user's
        own working tree, git data can only be read, because a program that is named in it would run outside.
        """
        if repository is None or self._is_elsewhere(directory, repository):
            self.write(directory)
            return
        link = os.path.join(repository.top, ".git")
        if store is None and os.path.realpath(directory) == repository.top and os.path.islink(link):
            # Nothing can be mounted on it: the command could put settings of git in its place.
            raise UsageError(f"a sandbox cannot protect {link}, which is a symbolic link", hint=LINK_HINT)
        self._kept |= {repository.git_dir, repository.common_dir}
        self.read(repository.common_dir)
        if store is None:
            if os.path.realpath(directory) != repository.top:
                self.read(repository.top)
            self.write(directory)
            self.read(repository.git_dir)
            for path in submodules:
                self._submodule(os.path.realpath(directory), path)
        else:
            self.write(repository.top)
            self._commit_to(repository, store)
        if not os.path.isdir(link):
            self.read(link)  # it names the git directory

    def read_workspace(self, directory: str, repository: Repository | None) -> None:
        """The directory where the command works and may write nothing, with its git data."""
        if repository is not None and not self._is_elsewhere(directory, repository):
            self.read(repository.common_dir, repository.top, repository.git_dir)
        self.read(directory)

    def _keep_own_program(self) -> None:
        """holdfast may be installed where the command writes (the `.venv` of a project). It runs outside, so
        it is only read there. So is one in a directory that is private."""
        writable = {mount.path for mount in self.mounts if mount.kind == WRITE}
        for path in sorted(own_program()):
            if path.startswith(tuple(f"{folder}/" for folder in hidden.TEMPORARY)):
                self.read(path)
            around = [top for top in writable if path.startswith(top + "/")]
            if not around or any(top == path or top.startswith(path + "/") for top in writable):
                continue
            self._pin(max(around, key=len), os.path.dirname(path))
            self.read(path)

    def _pin_kept(self) -> None:
        """A mount moves with the folder around it, which the command could rename, and make another one with
        a home of holdfast, or a git directory, of its own: these are believed outside."""
        writable = [mount.path for mount in self.mounts if mount.kind == WRITE]
        for path in sorted(self._kept):
            around = [top for top in writable if path.startswith(top + "/")]
            if around and os.path.exists(path):
                self._pin(max(around, key=len), os.path.dirname(path))

    def _pin(self, directory: str, path: str) -> None:
        """As mounts, none of the folders from one to another can be renamed, and another put in its place."""
        below = path[len(directory) + 1 :].split("/") if path != directory else []
        self.write(*(os.path.join(directory, *below[: count + 1]) for count in range(len(below))))

    def _submodule(self, directory: str, path: str) -> None:
        """A submodule in place: the user's git in the project reads the settings that its `.git` leads to."""
        if not path.startswith(directory + "/") or os.path.realpath(path) != path:
            return
        self._pin(directory, path)
        link = os.path.join(path, ".git")
        # One that is not checked out has no `.git`, and may get none.
        self.read(link if os.path.exists(link) and not os.path.islink(link) else path)

    def _commit_to(self, repository: Repository, store: str) -> None:
        """What git writes for a commit in a worktree, but nothing that configures git.

        New objects and the branch go to `store`; of the user's repository, everything is only read.
        """
        git_dir, common = repository.git_dir, repository.common_dir
        config = os.path.join(git_dir, _KEPT_OF_WORKTREE[-1])
        if not os.path.lexists(config):
            # Its own configuration, if the repository allows that: it must not be the command's.
            os.close(os.open(config, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o644))
        objects = os.path.join(common, "objects")
        self._store = store
        self.mounts.append(Mount(kind=READ, path=f"{store}/lent", source=objects))
        for name, path in (("objects", "objects"), ("refs", _BRANCHES), ("logs", f"logs/{_BRANCHES}")):
            # A link would replace what it leads to.
            plain_path(common, os.path.join(common, path))
            self.put(os.path.join(store, name), os.path.join(common, path))
        self.write(git_dir)
        self.read(*(os.path.join(git_dir, name) for name in _KEPT_OF_WORKTREE))

    def _is_elsewhere(self, directory: str, repository: Repository) -> bool:
        """Whether a `.git` leads to something that is hidden: an agent may have written it."""
        found = any(self._is_hidden(path) for path in (repository.git_dir, repository.common_dir))
        return found and not self._is_hidden(os.path.realpath(directory))

    def _show(self, kind: str, paths: Iterable[str]) -> None:
        """Add mounts. What is hidden is shown again only by its own path, never through a link elsewhere."""
        for path in paths:
            real = os.path.realpath(path)
            if self._is_hidden(real) and not self._is_hidden(os.path.abspath(path)):
                continue
            if os.path.exists(real):
                self.mounts.append(Mount(kind=kind, path=real))

    def has_hidden(self, path: str) -> bool:
        """Whether a folder is hidden, or something in it is."""
        return self._is_hidden(path) or any(each.startswith(path + "/") for each in self._hidden)

    def _is_hidden(self, path: str) -> bool:
        return any(each in self._hidden for each in _upwards(path))

    def _sockets(self) -> list[str]:
        """The sockets that variables name, wherever they are: a read-only file system does not close them."""
        # Also those of this process: a task's environment has only some of the user's variables.
        values = {*self.env.values(), *os.environ.values()}
        named = {path for value in values if "/" in value for path in _PATH.findall(value)}
        return [path for path in named if _is_socket(path)]

    def _enclose(self, base: str, names: Iterable[str]) -> None:
        """Hide these names below a folder of the user, also those that do not exist yet."""
        for name in names:
            path = os.path.join(base, name)
            self.hide(path)
            self._hidden.add(os.path.join(os.path.realpath(base), name))
            self._with_hidden.add(os.path.realpath(os.path.dirname(path)))

    def _hide_defaults(self) -> None:
        home = self.env.get("HOME") or os.path.expanduser("~")
        config = self.env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
        if os.path.realpath(home) != "/":
            self.read(home)  # it may be in a folder that is private
        data = self.env.get("XDG_DATA_HOME") or os.path.join(home, ".local/share")
        self._enclose(home, hidden.IN_HOME)
        for base, prefix in ((config, ".config/"), (data, ".local/share/")):
            self._enclose(
                base, [name.removeprefix(prefix) for name in hidden.IN_HOME if name.startswith(prefix)]
            )
        # As this process finds them: the task's HOME may be another one.
        self.hide(paths.config_dir(), paths.trust_dir(), *room_places.folders())
        self.hide(*hidden.FOLDERS, *hidden.FILES, *self._sockets())
        runtime = os.path.realpath(self.env.get("XDG_RUNTIME_DIR") or "/run")
        if not (os.path.realpath(home) + "/").startswith(runtime.rstrip("/") + "/"):
            self.hide(runtime)
        state = self.env.get("XDG_STATE_HOME") or os.path.join(home, ".local/state")
        self.hide(*_homes(state, os.path.join(home, ".local/state")))
        again = (os.path.realpath(path) for path in hidden.SHOWN_AGAIN if os.path.exists(path))
        self.mounts += [Mount(kind=READ, path=path) for path in again]
        self.read(*hidden.KERNEL)
        for path in hidden.TEMPORARY:
            if os.path.isdir(path) and not os.path.islink(path):
                self.mounts.append(Mount(kind=PRIVATE, path=path))


def _remove_links_to(mounts: tuple[Mount, ...]) -> None:
    """Remove links on the way to mounts in a folder that is in the place of another. Raises StorageError.

    An agent wrote in that folder before. bwrap follows links, and makes the file or folder that is missing
    behind them, also outside: at that time, the whole file system is below /oldroot.
    """
    by_path = {mount.path: mount for mount in ordered(mounts)}
    for path in by_path:
        around = next((each for each in _upwards(os.path.dirname(path)) if each in by_path), "")
        if not around or by_path[around].kind != REPLACE:
            continue
        place = by_path[around].source
        for name in path[len(around) + 1 :].split("/"):
            place = os.path.join(place, name)
            if os.path.islink(place):
                try:
                    os.unlink(place)
                except OSError as error:
                    atomic.storage_failed(error, f"cannot remove the link {place}")


def _upwards(path: str) -> list[str]:
    """A path and the folders around it, the nearest first."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), 1, -1)]


def own_program() -> set[str]:
    """Where this program is: its interpreter, its environment, its modules."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    named = (sys.prefix, sys.exec_prefix, package, os.path.dirname(sys.executable), *sys.path)
    return {os.path.realpath(path) for path in named if path and os.path.exists(path)} - {"/"}


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _homes(*folders: str) -> list[str]:
    """The homes of holdfast in these folders, by their look: a task may see no home, also not another one."""
    found: list[str] = []
    for folder in dict.fromkeys(folders):
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        paths = (os.path.join(folder, name) for name in names)
        found += [path for path in paths if _is_home(path)]
    return found


def _is_home(path: str) -> bool:
    own = ("projects", "keeper.lock", "settings.json", "audit.jsonl")
    has_tasks = os.path.isdir(os.path.join(path, "tasks"))
    return has_tasks and any(os.path.lexists(os.path.join(path, name)) for name in own)
