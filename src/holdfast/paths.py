"""Paths outside a packet: the home and the configuration."""

from __future__ import annotations

import errno
import os
import stat

from holdfast.errors import DiskFull, NoSuchDirectory, StorageError, UnsafeHome, UsageError


def home() -> str:
    """The home: the directory of all tasks, as an absolute path without links; it need not exist.

    The kernel names open files by their real paths, and we compare with those. Raises UsageError if a file
    has its name, StorageError if it may not be read (its content is unknown then).
    """
    path = chosen_home()
    try:
        is_in_the_way = not stat.S_ISDIR(os.stat(path).st_mode)
    except NotADirectoryError:
        is_in_the_way = True
    except FileNotFoundError:
        return path
    except OSError as error:
        raise _unreadable(path, error.strerror) from error
    if is_in_the_way:
        file = path
        while not os.path.lexists(file):
            file = os.path.dirname(file)
        raise UsageError(
            f"the home {path} cannot be used: {file} is a file",
            hint="set HOLDFAST_HOME to a directory; it need not exist",
        )
    if not os.access(path, os.R_OK | os.X_OK):
        raise _unreadable(path, "Permission denied")
    _refuse_linked_tasks(path)
    return path


def _refuse_linked_tasks(home: str) -> None:
    """Raises StorageError if the directory of the packets is a link: what is in its target would count as
    tasks, and `rm` and the keeper remove some."""
    tasks = os.path.join(home, "tasks")
    if os.path.islink(tasks):
        raise StorageError(
            f"{tasks} is a symbolic link, which is not followed",
            hint="an agent may have made it: remove the link, and give the directory of the tasks its name "
            "again; to keep tasks elsewhere, set HOLDFAST_HOME",
        )


def _unreadable(path: str, why: str | None) -> StorageError:
    return StorageError(
        f"cannot read the home {path}: {why}",
        hint="set HOLDFAST_HOME to one of your directories, or ask its owner for read permission",
    )


def chosen_home() -> str:
    """Like `home`, but unchecked: for diagnostics."""
    chosen = os.environ.get("HOLDFAST_HOME")
    try:
        return os.path.realpath(os.path.expanduser(chosen)) if chosen else default_home()
    except FileNotFoundError as error:
        raise NoSuchDirectory(
            f"the home {chosen} is relative to the current directory, which no longer exists",
            hint="set HOLDFAST_HOME to an absolute path",
        ) from error


def pin_home() -> None:
    """Make HOLDFAST_HOME absolute, because agents and other child processes run in other directories."""
    chosen = os.environ.get("HOLDFAST_HOME")
    if chosen and not os.path.isabs(chosen):
        os.environ["HOLDFAST_HOME"] = chosen_home()


def default_home() -> str:
    """The home if none is set."""
    return os.path.realpath(os.path.join(_of_user("XDG_STATE_HOME", ".local", "state"), "holdfast"))


def _of_user(variable: str, *default: str) -> str:
    """A directory of the user. A relative path in the variable is ignored, as the standard says: the current
    directory, which may be a clone, would decide what it means."""
    chosen = os.environ.get(variable, "")
    return chosen if os.path.isabs(chosen) else os.path.join(user_home(), *default)


def user_home() -> str:
    """The user's home directory, absolute. Without HOME and without an account (in a container), `~` stays as
    it is, and a clone may have a directory of this name."""
    path = os.path.expanduser("~")
    return path if os.path.isabs(path) else "/"


def project(chosen: str | None) -> str:
    """The project directory: the chosen one or the current one. Raises NoSuchDirectory if it was removed."""
    try:
        return os.path.abspath(chosen or os.getcwd())
    except FileNotFoundError as error:
        raise NoSuchDirectory("the current directory no longer exists") from error


#: Environment variables of the keeper.
KEEPER_VARIABLES = ("MAX_ITERATIONS", "ITERATION_DELAY", "MAX_CONSECUTIVE_FAILURES", "HOLDFAST_KEEPER_IDLE")


def has_keeper_variables() -> bool:
    """Whether any of them is set; otherwise the code that checks them need not be loaded."""
    return any(os.environ.get(name) for name in KEEPER_VARIABLES)


#: Set by a runner for what it starts.
TRUST_DIR = "HOLDFAST_TRUST_DIR"


def chosen_config() -> str:
    """XDG_CONFIG_HOME, if it is set and counts: for processes that do not inherit it."""
    chosen = os.environ.get("XDG_CONFIG_HOME", "")
    return chosen if os.path.isabs(chosen) else ""


def config_base() -> str:
    """The directory of the configuration of all programs of the user."""
    return _of_user("XDG_CONFIG_HOME", ".config")


def cache_base() -> str:
    """The directory of what all programs of the user can make again."""
    return _of_user("XDG_CACHE_HOME", ".cache")


def config_dir() -> str:
    """The directory of the user's configuration."""
    return os.path.join(config_base(), "holdfast")


def user_settings() -> str:
    """The user's settings file; it need not exist."""
    return os.path.join(config_dir(), "config.toml")


def trust_dir() -> str:
    """The directory of what the user trusts: beside the user's settings, which no agent may write either.

    In a task, its runner names the one that it uses: the environment of a task may have another HOME or
    XDG_CONFIG_HOME, and chores and conductors must find the same records.
    """
    told = os.environ.get(TRUST_DIR, "")
    return told if os.path.isabs(told) else os.path.join(config_dir(), "trust")


def is_trust_dir(path: object) -> bool:
    """Whether a path, perhaps through other links, is this process's `trust_dir`."""
    own = trust_dir()
    return path == own or (isinstance(path, str) and os.path.realpath(path) == os.path.realpath(own))


def project_config_dir(project: str) -> str:
    """The directory of a project's settings, pipelines and prompts; it need not exist."""
    return os.path.join(project, ".holdfast")


def project_settings(project: str) -> str:
    """A project's settings file; it need not exist."""
    return os.path.join(project_config_dir(project), "config.toml")


def settings_files(project: str) -> dict[str, str]:
    """The existing settings files, in increasing precedence: `user`, `project`."""
    files = {"user": user_settings(), "project": project_settings(project)}
    return {source: path for source, path in files.items() if os.path.exists(path)}


def ensure_home(path: str) -> str:
    """Create the home if it is missing. Raises UnsafeHome if other users can write to it."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        _refuse_linked_tasks(path)
        os.makedirs(os.path.join(path, "tasks"), mode=0o700, exist_ok=True)
        found = os.stat(path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"cannot create the home {path}: {error.strerror}") from error
        raise StorageError(
            f"cannot create the home {path}: {error.strerror}",
            hint="set HOLDFAST_HOME to a writable directory",
        ) from error
    if found.st_uid != os.geteuid():
        raise UnsafeHome(
            f"the home {path} belongs to another user (uid {found.st_uid})",
            hint="set HOLDFAST_HOME to one of your directories",
        )
    for folder in (path, os.path.join(path, "tasks")):
        mode = os.stat(folder).st_mode
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            from shlex import quote  # only needed for the error

            raise UnsafeHome(
                f"other users can write to the home {folder} (mode {stat.S_IMODE(mode):04o})",
                hint=f"chmod go-w {quote(folder)}",
            )
    return path
