"""Private config homes: a program stores its sessions and settings in the task, not in the user's home."""

from __future__ import annotations

import os
import shutil

from holdfast.agents.base import PrivateHome


def prepare(home: PrivateHome, env: dict[str, str]) -> dict[str, str]:
    """Create the directory if it is missing. Returns the environment variable that selects it."""
    os.makedirs(home.path, mode=0o700, exist_ok=True)
    users = env.get(home.variable) or os.path.join(env.get("HOME", os.path.expanduser("~")), home.default)
    for name in home.links:
        source, target = os.path.join(users, name), os.path.join(home.path, name)
        if os.path.exists(source) and not os.path.lexists(target):
            os.symlink(os.path.realpath(source), target)
    for name in home.copies:
        source, target = os.path.join(users, name), os.path.join(home.path, name)
        if os.path.isfile(source) and not os.path.lexists(target):
            # Copied under a temporary name: a kill must not leave an incomplete file.
            shutil.copyfile(source, target + ".tmp")
            os.rename(target + ".tmp", target)
    return {home.variable: home.path}
