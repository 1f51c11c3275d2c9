"""Running commands in a clean room.

With bubblewrap, the room is mounted in place of the project, so that absolute paths (of an editable install,
or in the settings of a tool) lead into it, and the project's dependencies are read-only. Without it, commands
run in the room's own directory, the dependencies are symbolic links, and paths in the environment are
rewritten.
"""

from __future__ import annotations

import os
import subprocess

from holdfast.model.record import Record
from holdfast.sandbox import machine
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.workspace.clean_room import Room
    from holdfast.workspace.project_tree import ProjectTree

_PROBE_S = 10.0


class Setting(Record):
    """How a command is run: the arguments before it, its directory and its environment."""

    before: tuple[str, ...] = ()
    cwd: str
    env: dict[str, str]


def of_room(room: Room, project: ProjectTree, links: Sequence[str]) -> Setting:
    """Prepare a room for commands of a project, whose directories `links` they need.

    `project` is the user's, also if the task has a worktree.
    """
    bwrap = _bwrap()
    env = {**os.environ, "TMPDIR": room.temporary, "TMP": room.temporary, "TEMP": room.temporary}
    shared = [*_dependencies(room, project, links), *room.shared]
    if bwrap is None:
        for path, source in shared:
            _link(os.path.join(room.top, path), source)
        env.update(_moved(env, project.top, room.top))
        return Setting(cwd=room.directory, env={**env, "PWD": room.directory})
    args = [bwrap, "--dev-bind", "/", "/", "--bind", room.top, project.top]
    for path, source in shared:
        args += ["--ro-bind-try", source, os.path.join(project.top, path)]
    args += ["--chdir", project.directory, "--"]
    return Setting(before=tuple(args), cwd="/", env={**env, "PWD": project.directory})


def in_place(directory: str) -> Setting:
    """The setting of commands that run where the agent worked."""
    return Setting(cwd=directory, env=dict(os.environ))


def _dependencies(room: Room, project: ProjectTree, links: Sequence[str]) -> list[tuple[str, str]]:
    """What exists in the project and not in the tree: path below the root → where it is."""
    found: list[tuple[str, str]] = []
    for name in links:
        source = os.path.realpath(os.path.join(project.directory, name))
        if os.path.exists(source) and not os.path.lexists(os.path.join(room.directory, name)):
            found.append((os.path.join(project.prefix, name), source))
    return found


def _link(path: str, source: str) -> None:
    atomic.forget(path)  # the note in place of a large file
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(source, path)


def _moved(env: dict[str, str], old: str, new: str) -> dict[str, str]:
    """Variables with paths in the project, such as PATH and PYTHONPATH, for the room."""
    moved: dict[str, str] = {}
    for name, value in env.items():
        parts = value.split(os.pathsep)
        inside = [part == old or part.startswith(old.rstrip("/") + "/") for part in parts]
        if any(inside):
            moved[name] = os.pathsep.join(
                new + part[len(old) :] if is_in else part for part, is_in in zip(parts, inside, strict=True)
            )
    return moved


def _bwrap() -> str | None:
    """bubblewrap, if it works here: it needs user namespaces."""
    path = machine.program()
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, "--dev-bind", "/", "/", "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return path if done.returncode == 0 else None
