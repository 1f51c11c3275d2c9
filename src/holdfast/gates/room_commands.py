"""Running commands in a clean room.

With bubblewrap, the room is mounted in place of the project, so that absolute paths (of an editable install,
or in the settings of a tool) lead into it, and the project's dependencies are read-only. Without it, commands
run in the room's own directory, the dependencies are symbolic links, and paths in the environment are
rewritten.

Commands that an agent proposed run in a sandbox, that of the task if it has one: else an agent would run
commands outside. They are not run without bubblewrap.
"""

from __future__ import annotations

import os
import subprocess

from holdfast.model.record import Record
from holdfast.sandbox import machine, mounts, start
from holdfast.sandbox.builder import SandboxBuilder
from holdfast.sandbox.forbidden import forbidden_in
from holdfast.store.directories import remove_tree
from holdfast.store.no_links import is_directory, plain_path
from holdfast.workspace.scope import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.spec import SandboxSpec
    from holdfast.store.layout import Home, Packet
    from holdfast.workspace.clean_room import Room
    from holdfast.workspace.project_tree import ProjectTree

_PROBE_S = 10.0


class Setting(Record):
    """How a command is run: the arguments before it, its directory and its environment."""

    before: tuple[str, ...] = ()
    cwd: str
    env: dict[str, str]


class Links(Record):
    """Directories of the project that a room gets, if the tree does not have them."""

    names: tuple[str, ...]
    #: Patterns of `scope.deny`: such files are in the tree even if git ignores them, to be compared.
    deny: tuple[str, ...] = ()


def of_room(room: Room, project: ProjectTree, links: Links) -> Setting:
    """Prepare a room for commands of a project.

    `project` is the user's, also if the task has a worktree.
    """
    bwrap = _bwrap()
    env, shared = _environment(room), [*_dependencies(room, project, links), *room.shared]
    if bwrap is None:
        for path, source in shared:
            _link(room.top, path, source)
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


def in_sandbox(
    setting: Setting, packet: Packet, spec: SandboxSpec, *, forbidden: tuple[str, ...] = ()
) -> Setting:
    """The same as `in_place`, in the sandbox of a task, without its `forbidden` paths."""
    builder, directory = _builder(packet.home), os.path.realpath(setting.cwd)
    start.show(builder, packet, directory, forbidden)
    return _boxed(builder, spec, cwd=directory, env=setting.env)


def of_room_in_sandbox(
    room: Room,
    project: ProjectTree,
    links: Links,
    *,
    home: Home,
    spec: SandboxSpec,
    forbidden: tuple[str, ...] = (),
) -> Setting:
    """The same as `of_room`, in the sandbox of a task, without its `forbidden` paths."""
    builder = _builder(home)
    builder.put(room.top, project.top)
    builder.put(room.temporary, room.temporary)
    dependencies = _dependencies(room, project, links)
    for path, _ in dependencies:
        place = os.path.join(project.top, path)
        builder.lend(place, place, around=project.top)
    found = _forbidden(room, project, dependencies, forbidden) if forbidden else []
    builder.mounts += found
    for path, source in room.shared:
        # The objects of the task have the content of forbidden files, also of those that are not committed.
        if not found or path != room.own_objects:
            builder.lend(source, os.path.join(project.top, path), around=project.top, own=home.path)
    return _boxed(builder, spec, cwd=project.directory, env=_environment(room))


def _forbidden(
    room: Room, project: ProjectTree, dependencies: list[tuple[str, str]], patterns: tuple[str, ...]
) -> list[mounts.Mount]:
    """Mounts that hide the forbidden paths of a room and of the dependencies in it."""
    places = [(os.path.realpath(room.top), project.top)]
    places += [(source, os.path.join(project.top, path)) for path, source in dependencies]
    paths = forbidden_in(room.directory, patterns)
    paths += forbidden_in(project.directory, patterns) if dependencies else []
    found: list[mounts.Mount] = []
    for real in map(os.path.realpath, paths):
        kind = mounts.HIDE_FOLDER if os.path.isdir(real) else mounts.HIDE_FILE
        found += [
            mounts.Mount(kind=kind, path=shown + real[len(top) :])
            for top, shown in places
            if real.startswith(top + "/")
        ]
    return found


def _builder(home: Home) -> SandboxBuilder:
    builder = SandboxBuilder(env=os.environ)
    builder.hide(home.path)
    return builder


def _boxed(builder: SandboxBuilder, spec: SandboxSpec, *, cwd: str, env: dict[str, str]) -> Setting:
    sandbox = builder.sandbox(bwrap=machine.path(), cwd=cwd, network=spec.network)
    return Setting(before=tuple(mounts.command_line(sandbox, [])), cwd="/", env={**env, "PWD": cwd})


def _environment(room: Room) -> dict[str, str]:
    return {**os.environ, "TMPDIR": room.temporary, "TMP": room.temporary, "TEMP": room.temporary}


def _dependencies(room: Room, project: ProjectTree, links: Links) -> list[tuple[str, str]]:
    """What exists in the project and not in the tree: path below the root → where it is."""
    found: list[tuple[str, str]] = []
    for name in links.names:
        source = os.path.realpath(os.path.join(project.directory, name))
        if os.path.exists(source) and _is_free(room, name, links.deny):
            found.append((os.path.join(project.prefix, name), source))
    return found


def _is_free(room: Room, name: str, deny: tuple[str, ...]) -> bool:
    """Whether a room has nothing at a path, or only files that are the user's as they are: denied ones.

    False if a link of the tree leads out of the room on the way.
    """
    path = os.path.join(os.path.realpath(room.directory), name)
    folder = os.path.dirname(os.path.normpath(path))
    if os.path.realpath(folder) != folder:
        return False
    return not os.path.lexists(path) or (bool(deny) and is_directory(path) and _is_denied(room, path, deny))


def _is_denied(room: Room, folder: str, deny: tuple[str, ...]) -> bool:
    scope, top = Scope((), deny), os.path.realpath(room.directory)
    return all(
        scope.denies(os.path.relpath(os.path.join(inner, name), top))
        for inner, _, names in os.walk(folder)
        for name in names
    )


def _link(top: str, path: str, source: str) -> None:
    full = os.path.normpath(os.path.join(top, path))
    # The tree may have links; nobody else writes in the room.
    plain_path(top, os.path.dirname(full))
    os.makedirs(os.path.dirname(full), exist_ok=True)
    # Denied files, which are in the source, too; or the note in place of a large file.
    remove_tree(full)
    os.symlink(source, full)


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
            # Itself, and no program that it would have to search in PATH.
            [path, "--dev-bind", "/", "/", "--", path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return path if done.returncode == 0 else None
