"""What a workspace was before the first sandboxed agent of the task wrote in it: `sandbox/start.json`.

Later attempts, and a gate that runs proposed commands in place, believe this record and not the workspace, in
which an agent can plant a `.git`. No sandbox shows the record.
"""

from __future__ import annotations

import os

from holdfast.errors import HoldfastError
from holdfast.model.record import Record
from holdfast.sandbox.forbidden import forbidden_in
from holdfast.store import admitted, atomic
from holdfast.workspace import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.sandbox.builder import SandboxBuilder
    from holdfast.store.layout import Packet

_SCHEMA = "holdfast.sandbox/1"
#: Of submodules in submodules.
_MAX_DEPTH = 8


class Start(Record):
    """One workspace at the start."""

    nested = {"repository": git.Repository}

    repository: git.Repository | None = None
    #: Where submodules are, checked out or not.
    submodules: tuple[str, ...] = ()
    #: Whether there was a `.git`, in which no forbidden path is searched.
    has_git: bool = False
    #: The devices and inodes of what the task forbids: a rename does not change them.
    forbidden: tuple[list[int], ...] = ()


def start_of(packet: Packet, directory: str, patterns: tuple[str, ...]) -> Start:
    """The record of a workspace, made if this is its first attempt. `patterns` are the forbidden paths.

    A record that no runner wrote is made again: an agent without a sandbox can write in the packet. Raises
    StorageError.
    """
    known = _known(packet)
    if directory in known:
        return Start.from_json(known[directory])
    start = _look(directory, patterns)
    atomic.make_directory(packet.sandbox)
    admitted.note(packet, admitted.Kind.SANDBOX_START, directory, start.to_json())
    data = {"schema": _SCHEMA, "workspaces": {**known, directory: start.to_json()}}
    atomic.write_json(packet.sandbox_start, data, durable=True)
    return start


def show(builder: SandboxBuilder, packet: Packet, directory: str, patterns: tuple[str, ...]) -> None:
    """Let a command work in a workspace that has no git data of its own: for agents, and for the commands of
    a gate that run in place."""
    start = start_of(packet, directory, patterns)
    builder.workspace(directory, start.repository, store=None, submodules=start.submodules)
    forbid(builder, start, directory, patterns)


def forbid(builder: SandboxBuilder, start: Start, directory: str, patterns: tuple[str, ...]) -> None:
    """Hide the forbidden paths of a workspace, also what was one at its start."""
    if patterns:
        builder.forbid(*forbidden_in(directory, patterns, known=start.forbidden, has_git=start.has_git))


def _known(packet: Packet) -> dict[str, Any]:
    """What the file says, as far as runners wrote it."""
    try:
        found = (atomic.read_json(packet.sandbox_start) or {}).get("workspaces")
    except HoldfastError:
        return {}
    rows: dict[str, Any] = found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    return {
        directory: row
        for directory, row in rows.items()
        if admitted.is_noted(packet, admitted.Kind.SANDBOX_START, directory, row)
    }


def _look(directory: str, patterns: tuple[str, ...]) -> Start:
    try:
        repository = git.find(directory)
    except (OSError, HoldfastError):
        repository = None
    has_git = os.path.lexists(os.path.join(directory, ".git"))
    found = forbidden_in(directory, patterns, has_git=has_git) if patterns else []
    return Start(
        repository=repository,
        submodules=tuple(_submodules(repository)) if repository is not None else (),
        has_git=has_git,
        forbidden=tuple([stats.st_dev, stats.st_ino] for stats in map(os.stat, found)),
    )


def _submodules(repository: git.Repository, depth: int = 0) -> list[str]:
    """The submodules of a repository, and theirs."""
    signs = (os.path.join(repository.top, ".gitmodules"), os.path.join(repository.git_dir, "modules"))
    if depth > _MAX_DEPTH or not any(map(os.path.lexists, signs)):
        return []
    found: list[str] = []
    try:
        listed = git.run(["ls-files", "-s", "-z"], of=repository)
    except HoldfastError:
        return []  # git cannot read it: it is protected, but what is in it is not known
    for name, _ in git.gitlinks(listed):
        path = os.path.join(repository.top, name)
        found.append(path)
        inner = git.at(path)
        # A `.git` that leads elsewhere was written by something other than git.
        if inner is not None and inner.is_inside(repository.top, repository.common_dir):
            found += _submodules(inner, depth + 1)
    return found
