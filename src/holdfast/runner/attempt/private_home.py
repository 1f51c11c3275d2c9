"""Private config homes: made before the start, so that a program writes its sessions and settings into the task, not into
the user's own home."""

from __future__ import annotations

import os
import shutil

from holdfast.agents.base import PrivateHome


def prepare(home: PrivateHome, env: dict[str, str]) -> dict[str, str]:
    """Make it where it is missing. Returns the variable that tells the program of it."""
    os.makedirs(home.path, mode=0o700, exist_ok=True)
    users = env.get(home.variable) or os.path.join(env.get("HOME", os.path.expanduser("~")), home.default)
    for name in home.links:
        source, target = os.path.join(users, name), os.path.join(home.path, name)
        if os.path.exists(source) and not os.path.lexists(target):
            os.symlink(os.path.realpath(source), target)
    for name in home.copies:
        source, target = os.path.join(users, name), os.path.join(home.path, name)
        if os.path.isfile(source) and not os.path.lexists(target):
            # Through a name of its own: a copy that was cut off by a kill must not look like one.
            shutil.copyfile(source, target + ".tmp")
            os.rename(target + ".tmp", target)
    return {home.variable: home.path}
