"""Remove a task and its residue in the home: locks, its tmux window, the scripted agent's memory.

Removing that residue is best effort: what another task uses stays, and a failure does not keep the task.
"""

from __future__ import annotations

import os

from holdfast import ids
from holdfast.errors import HoldfastError
from holdfast.model.record import Record
from holdfast.packet import load, session_lock
from holdfast.packet.metrics import lines
from holdfast.packet.remove import remove
from holdfast.store import index
from holdfast.store import lock as locks
from holdfast.store.directories import remove_tree
from holdfast.store.layout import Home, Packet
from holdfast.workspace import room_places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Residue(Record):
    """What a task may have left in its home; collected while its packet still exists."""

    task_id: str
    #: Agent and session id.
    sessions: tuple[tuple[str, str], ...] = ()
    #: The session the task was started with (`--session`): it is another task's, so its memory stays.
    resumed_session: str | None = None
    #: Workspaces of the task.
    directories: tuple[str, ...] = ()


def remove_task(packet: Packet) -> None:
    """Remove the packet, its residue and its row in the index."""
    home, residue = packet.home, residue_of(packet)
    if room_places.rooms_of(packet):
        from holdfast.workspace import clean_room

        clean_room.sweep(packet)
    remove(packet)
    clear(home, residue)
    # Now, not at the next listing: a new task may get the same id, and even the same inode, before that.
    index.forget(home, packet.task_id)


def residue_of(packet: Packet) -> Residue:
    """What the journal says the task may have left; nothing if it is unreadable."""
    agents: dict[int, str] = {}
    session_ids: dict[tuple[str, str], None] = {}
    spec: dict[str, Any] = {}
    try:
        for line in lines(packet.journal):
            if line.get("type") == "task.created":
                spec = line.get("spec") or {}
            agent = agents.setdefault(line.get("attempt") or 0, line.get("agent") or "")
            if isinstance(line.get("session_id"), str) and agent:
                session_ids[agent, line["session_id"]] = None
    except (HoldfastError, OSError, AttributeError, TypeError):
        return Residue(task_id=packet.task_id)
    directories = (spec.get("project_dir"), os.path.join(packet.home.worktrees, packet.task_id))
    return Residue(
        task_id=packet.task_id,
        sessions=tuple(session_ids),
        resumed_session=spec.get("session"),
        directories=tuple(path for path in directories if isinstance(path, str)),
    )


def clear(home: Home, residue: Residue) -> None:
    """Remove the residue of a task whose packet is gone."""
    try:
        for agent, session_id in residue.sessions:
            _forget_session(home, agent, session_id, is_own=session_id != residue.resumed_session)
        for directory in residue.directories:
            _forget_workspace(home, directory, residue.task_id)
        _close_window(home, residue.task_id)
    except (OSError, HoldfastError):
        return


def _forget_session(home: Home, agent: str, session_id: str, *, is_own: bool) -> None:
    lock = _take_lock(session_lock.path_of(home, agent, session_id))
    if lock is None:
        return
    try:
        lock.unlink()
        # The id comes from an agent's output, so it may be anything, even "..".
        if is_own and agent == "scripted" and ids.is_safe_name(session_id):
            memory = os.path.join(home.scripted_agent, session_id)
            is_ours = os.path.isdir(memory) and not os.path.islink(home.scripted_agent)
            if is_ours and not _is_session_used(home, session_id):
                remove_tree(memory)
    finally:
        lock.release()


def _is_session_used(home: Home, session_id: str) -> bool:
    """Whether another task continues the session."""
    for task_id in load.task_ids(home):
        try:
            if load.read_manifest(home.packet(task_id)).get("session_id") == session_id:
                return True
        except HoldfastError:
            continue
    return False


def _forget_workspace(home: Home, directory: str, task_id: str) -> None:
    from holdfast.workspace import lock as workspaces

    lock = _take_lock(workspaces.path_of(home, directory))
    if lock is None:
        return
    try:
        # Another task whose runner was killed may be about to continue there.
        if workspaces.writer(home, directory) in (None, task_id):
            workspaces.sign(home, directory, None)
            lock.unlink()
    finally:
        lock.release()


def _take_lock(path: str) -> locks.Lock | None:
    """The lock, if the file exists and nobody holds it."""
    if not os.path.exists(path):
        return None
    try:
        return locks.acquire(path, role="remover", within_s=0.0)
    except HoldfastError:
        return None


def _close_window(home: Home, task_id: str) -> None:
    if not os.path.lexists(home.tmux_socket):
        return
    from holdfast.views import tmux

    server = tmux.Server(home)
    server.close(task_id)
    if not server.sessions():
        server.shut()
