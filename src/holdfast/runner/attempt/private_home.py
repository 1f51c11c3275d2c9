"""Private config homes: a program stores its sessions and settings in the task, not in the user's home."""

from __future__ import annotations

import os

from holdfast import files
from holdfast.agents.base import PrivateHome
from holdfast.store import atomic


def prepare(home: PrivateHome, env: dict[str, str]) -> dict[str, str]:
    """Create the directory if it is missing. Returns the environment variable that selects it."""
    # An agent may have put a link in its place, or of a folder around it: nothing is made or removed there.
    atomic.make_packet_directory(home.path)
    users = _users(home, env)
    for name, source in linked(home, env).items():
        target = os.path.join(home.path, name)
        if os.path.islink(target) and os.readlink(target) != os.path.realpath(source):
            os.unlink(target)  # an agent made it
        if not os.path.lexists(target):
            os.symlink(os.path.realpath(source), target)
    for name in home.copies:
        source, target = os.path.join(users, name), os.path.join(home.path, name)
        if os.path.isfile(source) and not os.path.lexists(target):
            # A kill leaves no incomplete file, and nothing is written through a link of an agent.
            atomic.write(target, files.read(source, follow=True), durable=False)
    return {home.variable: home.path}


def linked(home: PrivateHome, env: dict[str, str]) -> dict[str, str]:
    """The user's files to which links lead, by name: an agent can replace the links, but not these."""
    sources = {name: os.path.join(_users(home, env), name) for name in home.links}
    return {name: source for name, source in sources.items() if os.path.exists(source)}


def _users(home: PrivateHome, env: dict[str, str]) -> str:
    """The user's own config home."""
    return env.get(home.variable) or os.path.join(env.get("HOME", os.path.expanduser("~")), home.default)
