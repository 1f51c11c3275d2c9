"""Private config homes: a program stores its sessions and settings in the task, not in the user's home.

An agent can write there, and programs run what their settings name: hooks, servers, notifiers. So before each
attempt, settings are made again from the user's, and all that is not known to be data is removed. If another
attempt of the agent is alive in the task (parallel stages, candidates), it uses the directory: then only what
is missing is added. That one could plant settings after a removal just as well.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase

from holdfast import files
from holdfast.agents.base import PrivateHome
from holdfast.errors import HoldfastError
from holdfast.store import atomic
from holdfast.store.directories import remove_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.model import events as ev
    from holdfast.model.task import Task


def is_in_use(task: Task, opened: ev.AttemptOpened) -> bool:
    """Whether another attempt of the agent is open, which has the same config home."""
    return any(
        each.is_open and each.agent == opened.agent and each.number != opened.attempt for each in task.current
    )


def prepare(home: PrivateHome, env: dict[str, str], *, is_used: bool) -> dict[str, str]:
    """Create the directory if it is missing. Returns the environment variable that selects it.

    `is_used`: a living agent has it, so nothing is replaced or removed.
    """
    # An agent may have put a link in its place, or of a folder around it: nothing is made or removed there.
    atomic.make_packet_directory(home.path)
    users, links = _users(home, env), linked(home, env)
    if not is_used:
        clear(home.path, (*home.keeps, *links, *home.copies))
    for name, source in links.items():
        target = os.path.join(home.path, name)
        if os.path.islink(target) and os.readlink(target) == os.path.realpath(source):
            continue
        # A program that renewed its login may have replaced the link; anything else was made by an agent.
        if not is_used and (os.path.islink(target) or name not in home.logins):
            _remove(target)
        if not os.path.lexists(target):
            folder = atomic.open_own_folder(home.path)
            try:
                os.symlink(os.path.realpath(source), name, dir_fd=folder)
            finally:
                os.close(folder)
    for name in home.copies:
        target = os.path.join(home.path, name)
        if not (is_used and os.path.lexists(target)):
            copy(os.path.join(users, name), target)
    return {home.variable: home.path}


def clear(folder: str, keeps: Iterable[str]) -> None:
    """Remove everything from a config home but the names that match one of these patterns."""
    patterns = tuple(keeps)
    # By descriptor: a living agent could put a link in place of the folder.
    opened = atomic.read_own_folder(folder)
    try:
        for name in os.listdir(opened):
            if not any(fnmatchcase(name, pattern) for pattern in patterns):
                remove_tree(name, opened)
    finally:
        os.close(opened)


def _remove(path: str) -> None:
    folder = atomic.open_own_folder(os.path.dirname(path))
    try:
        remove_tree(os.path.basename(path), folder)
    finally:
        os.close(folder)


def copy(source: str, target: str) -> None:
    """Make a file of a config home as the user's; without one, there is none.

    A kill leaves no incomplete file, and nothing is written through a link of an agent.
    """
    if not os.path.isfile(source):
        _remove(target)
        return
    data = files.read(source, follow=True)
    if not _is_same(target, data):
        if os.path.isdir(target):
            _remove(target)
        atomic.write(target, data, durable=False)


def _is_same(path: str, data: bytes) -> bool:
    try:
        return files.read(path) == data
    except (OSError, HoldfastError):
        return False


def linked(home: PrivateHome, env: dict[str, str]) -> dict[str, str]:
    """The user's files to which links lead, by name: an agent can replace the links, but not these."""
    sources = {name: os.path.join(_users(home, env), name) for name in home.links}
    return {name: source for name, source in sources.items() if os.path.exists(source)}


def _users(home: PrivateHome, env: dict[str, str]) -> str:
    """The user's own config home."""
    return env.get(home.variable) or os.path.join(env.get("HOME", os.path.expanduser("~")), home.default)
