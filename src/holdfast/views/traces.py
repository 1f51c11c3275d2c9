"""What a task leaves in its home beside its packet: locks, a window, the memory of the scripted agent. It goes with the task.

Everything here is a courtesy: what is in use by another task stays, and what cannot be removed keeps nobody from removing the
task.
"""

from __future__ import annotations

import os

from holdfast import ids
from holdfast.errors import HoldfastError
from holdfast.model.record import Record
from holdfast.packet import load, sessions
from holdfast.packet.create import remove_tree
from holdfast.packet.metrics import lines
from holdfast.store import atomic
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Traces(Record):
    """Found while the packet is still there, for afterwards."""

    task_id: str
    #: Agent and session id.
    sessions: tuple[tuple[str, str], ...] = ()
    #: The session that it went on with: another's, so its memory stays.
    given: str | None = None
    #: Where it wrote.
    directories: tuple[str, ...] = ()


def of(packet: Packet) -> Traces:
    """What a task may have left, by its journal; where that cannot be read, nothing."""
    agents: dict[int, str] = {}
    found: dict[tuple[str, str], None] = {}
    spec: dict[str, Any] = {}
    try:
        for line in lines(packet.journal):
            if line.get("type") == "task.created":
                spec = line.get("spec") or {}
            agent = agents.setdefault(line.get("attempt") or 0, line.get("agent") or "")
            if isinstance(line.get("session_id"), str) and agent:
                found[agent, line["session_id"]] = None
        tree = atomic.read_json(os.path.join(packet.workspace, "worktree.json")) or {}
    except (HoldfastError, OSError, AttributeError, TypeError):
        return Traces(task_id=packet.task_id)
    places = (spec.get("project_dir"), tree.get("path"))
    return Traces(
        task_id=packet.task_id,
        sessions=tuple(found),
        given=spec.get("session"),
        directories=tuple(place for place in places if isinstance(place, str)),
    )


def clear(home: Home, traces: Traces) -> None:
    """Remove them, now that the packet is gone."""
    try:
        for agent, session_id in traces.sessions:
            _forget_session(home, agent, session_id, is_own=session_id != traces.given)
        for directory in traces.directories:
            _forget_workspace(home, directory, traces.task_id)
        _close_window(home, traces.task_id)
    except (OSError, HoldfastError):
        return


def _forget_session(home: Home, agent: str, session_id: str, *, is_own: bool) -> None:
    lock = _take(sessions.lock_path(home, agent, session_id))
    if lock is None:
        return
    try:
        # Whoever waits for the lock finds that its file is another one, and begins anew.
        atomic.forget(lock.path)
        # An id may be anything, "..", too: it comes from what an agent printed.
        if is_own and agent == "scripted" and ids.is_safe_name(session_id):
            memory = os.path.join(home.scripted_agent, session_id)
            if os.path.isdir(memory) and not _is_used(home, session_id):
                remove_tree(memory)
    finally:
        lock.release()


def _is_used(home: Home, session_id: str) -> bool:
    """Whether another task goes on with the session."""
    for task_id in load.task_ids(home):
        try:
            if load.read_manifest(home.packet(task_id)).get("session_id") == session_id:
                return True
        except HoldfastError:
            continue
    return False


def _forget_workspace(home: Home, directory: str, task_id: str) -> None:
    from holdfast.workspace import lock as workspaces

    lock = _take(workspaces.path_of(home, directory))
    if lock is None:
        return
    try:
        # Another task may be about to go on there, though its runner was killed.
        if workspaces.writer(home, directory) in (None, task_id):
            workspaces.sign(home, directory, None)
            atomic.forget(lock.path)
    finally:
        lock.release()


def _take(path: str) -> locks.Lock | None:
    """The lock, if there is such a file and nobody has it."""
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
