"""Find an agent's program: in the task's PATH, and the native binary behind an npm wrapper.

A wrapper does not forward signals, or outlives the program; so the native binary is run if there is one.
"""

from __future__ import annotations

import os

from holdfast.agents.base import Capabilities


def find(able: Capabilities, path: str) -> str | None:
    """The file to execute, or None if it is not installed. `path` is the PATH of the task's environment."""
    wrapper = which(able.program, path)
    if wrapper is None:
        return None
    folder = os.path.dirname(os.path.realpath(wrapper))
    for relative in able.native:
        native = os.path.normpath(os.path.join(folder, relative))
        if os.access(native, os.X_OK) and not os.path.isdir(native):
            return native
    return wrapper


def which(program: str, path: str) -> str | None:
    """The first executable file with this name in PATH."""
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder or ".", program)
        if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
            return candidate
    return None
