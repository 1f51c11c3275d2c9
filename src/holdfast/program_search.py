"""Where programs of our own choice (git, tmux, systemctl, the shell of a gate, …) are looked for.

An agent, also one in a sandbox, writes in its project, and a project is often in PATH: an active virtual
environment, `node_modules/.bin`, a relative directory. A program that an agent put there must not be ours.
An agent's own command and the commands of the user keep the user's PATH.
"""

from __future__ import annotations

import os

#: What marks the root of a project.
_PROJECT_MARKS = (".git", ".holdfast")

#: Directories in which agents may write, as far as this process has met them.
_untrusted: set[str] = set()


def distrust(directory: str) -> None:
    """From now on, take no program from this directory."""
    if directory and directory != "/":
        _untrusted.add(os.path.realpath(directory))


def search_path() -> str:
    """PATH without directories in which an agent may write: relative ones, those of the project around the
    current directory and of known projects, of virtual environments and of node packages."""
    roots = {*_untrusted, *_surroundings()}
    return os.pathsep.join(
        entry
        for entry in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if os.path.isabs(entry) and not _belongs_to_project(entry, roots)
    )


def find(name: str) -> str | None:
    """The path of a program in `search_path`; None if it is not there."""
    for folder in search_path().split(os.pathsep):
        path = os.path.join(folder, name)
        if folder and os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return None


def _belongs_to_project(entry: str, roots: set[str]) -> bool:
    real = os.path.realpath(entry)
    if any(_is_in(real, root) for root in roots) or "node_modules" in real.split(os.sep):
        return True
    return os.path.lexists(os.path.join(os.path.dirname(real), "pyvenv.cfg"))


def _surroundings() -> set[str]:
    """The current directory and the root of its project. One that contains the user's home directory is not
    taken for a project: `~/.local/bin` would be lost."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:
        return set()
    found = {here}
    above = here
    while above != "/":
        if any(os.path.lexists(os.path.join(above, mark)) for mark in _PROJECT_MARKS):
            found.add(above)
        above = os.path.dirname(above)
    user = os.path.realpath(os.path.expanduser("~"))
    return {root for root in found if root != "/" and not _is_in(user, root)}


def _is_in(path: str, root: str) -> bool:
    return path == root or path.startswith(root + os.sep)
