"""Where things are outside a packet: the home, the user's configuration."""

from __future__ import annotations

import errno
import os
import stat

from holdfast.errors import DiskFull, NoSuchDirectory, StorageError, UnsafeHome, UsageError


def home() -> str:
    """The directory of all tasks, as an absolute path without links; it need not exist yet. (The kernel names open files by
    their real paths, and we compare with those.) Raises UsageError where a file is in its place, StorageError where it is not
    ours to look at: "there is nothing" would be a guess."""
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
            f"the home {path} cannot be one: {file} is a file",
            hint="set HOLDFAST_HOME to a directory, or to one that can be made",
        )
    if not os.access(path, os.R_OK | os.X_OK):
        raise _unreadable(path, "Permission denied")
    return path


def _unreadable(path: str, why: str | None) -> StorageError:
    return StorageError(
        f"cannot read the home {path}: {why}",
        hint="set HOLDFAST_HOME to a directory of your own, or ask its owner to let you read it",
    )


def chosen_home() -> str:
    """The same, unchecked: for whoever says what is wrong with it."""
    chosen = os.environ.get("HOLDFAST_HOME")
    try:
        return os.path.realpath(os.path.expanduser(chosen)) if chosen else default_home()
    except FileNotFoundError as error:
        raise NoSuchDirectory(
            f"the home {chosen} is meant from the current directory, which does not exist any more",
            hint="set HOLDFAST_HOME to an absolute path",
        ) from error


def pin_home() -> None:
    """From here on the chosen home is an absolute path: agents, and all else that we start, work in other directories."""
    chosen = os.environ.get("HOLDFAST_HOME")
    if chosen and not os.path.isabs(chosen):
        os.environ["HOLDFAST_HOME"] = chosen_home()


def default_home() -> str:
    """The home of whoever has not chosen one."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.realpath(os.path.join(state, "holdfast"))


def project(chosen: str | None) -> str:
    """The directory of the work: the chosen one, or the present one. Raises NoSuchDirectory when that was removed."""
    try:
        return os.path.abspath(chosen or os.getcwd())
    except FileNotFoundError as error:
        raise NoSuchDirectory("the current directory does not exist any more") from error


#: What the environment says to the keeper, beside its files.
KEEPER_VARIABLES = ("MAX_ITERATIONS", "ITERATION_DELAY", "MAX_CONSECUTIVE_FAILURES", "HOLDFAST_KEEPER_IDLE")


def has_keeper_variables() -> bool:
    """Whether any of them is set: whoever sets none loads nothing to check them."""
    return any(os.environ.get(name) for name in KEEPER_VARIABLES)


def config_dir() -> str:
    """The user's own settings."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "holdfast")


def user_settings() -> str:
    """The file of the user's settings; it need not exist."""
    return os.path.join(config_dir(), "config.toml")


def project_config_dir(project: str) -> str:
    """The directory of a project's settings, pipelines and prompts; it need not exist."""
    return os.path.join(project, ".holdfast")


def project_settings(project: str) -> str:
    """The file of a project's settings; it need not exist."""
    return os.path.join(project_config_dir(project), "config.toml")


def settings_files(project: str) -> dict[str, str]:
    """The settings that exist, weakest first: `user`, then `project`."""
    files = {"user": user_settings(), "project": project_settings(project)}
    return {source: path for source, path in files.items() if os.path.exists(path)}


def ensure_home(path: str) -> str:
    """Make the home where it is missing, and refuse one into which other users can write."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        os.makedirs(os.path.join(path, "tasks"), mode=0o700, exist_ok=True)
        found = os.stat(path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"cannot make the home {path}: {error.strerror}") from error
        raise StorageError(
            f"cannot make the home {path}: {error.strerror}",
            hint="set HOLDFAST_HOME to a directory that you can write",
        ) from error
    if found.st_uid != os.geteuid():
        raise UnsafeHome(
            f"the home {path} belongs to another user (uid {found.st_uid})",
            hint="set HOLDFAST_HOME to a directory of your own",
        )
    for folder in (path, os.path.join(path, "tasks")):
        mode = os.stat(folder).st_mode
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            from shlex import quote  # for a refusal only

            raise UnsafeHome(
                f"other users can write into the home {folder} (mode {stat.S_IMODE(mode):04o})",
                hint=f"chmod go-w {quote(folder)}",
            )
    return path
