"""Whose process is it: this attempt's, another holdfast's, or that of a home from which this one was copied.

Any process can copy or set a name, an environment or a command line, so they may lead to a process,
but never exempt one from the sweep. What proves something is kept by the kernel: parents, start times, held
locks, and the device and inode of directories and open files.
"""

from __future__ import annotations

import os
import sys

from holdfast import ids, own_python
from holdfast.errors import HoldfastError
from holdfast.model.process import ProcessIdentity
from holdfast.store import atomic, lock_owner, process
from holdfast.store.layout import AttemptDir, is_our_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: A process of holdfast has its lock within this time after its start.
STARTING_S = 10.0
_STARTED_AS = ("holdfast.runner", "holdfast.keeper", "holdfast.seed")


class Kinship:
    """Tells the processes of one attempt from all others."""

    def __init__(
        self,
        directory: AttemptDir,
        *,
        attempt_id: str,
        started: int | None = None,
        tree_known: bool = True,
        siblings: list[tuple[str, str, int]] | None = None,
    ) -> None:
        self.directory = directory
        self.attempt_id = attempt_id
        #: The start time of its agent: nothing of the attempt is older.
        self._started = started
        #: Directories and ids of the task's other open attempts, and their agents. Each is swept by itself.
        self._siblings = {path: attempt_id for path, attempt_id, _ in siblings or ()}
        self._agents = {agent for _, _, agent in siblings or ()}
        #: The marker without the home: `/tasks/ID/attempts/NAME`.
        self._within = "/" + "/".join(directory.path.split("/")[-4:])
        self.is_copy = is_copy(directory, _recorded(directory))
        self._logs = [] if tree_known else _logs(directory)

    def is_older(self, start_time: int) -> bool:
        """Whether a process is older than the attempt, and so not of it."""
        return self._started is not None and start_time < self._started

    def is_marked(self, pid: int) -> bool:
        """Whether its environment, or its output if the process tree is lost, leads to this attempt."""
        marker = process.variable(pid, "HOLDFAST_ATTEMPT")
        if marker is not None:
            return self._is_marker(pid, marker)
        return any(process.has_open(pid, descriptor, log) for descriptor, log in self._logs)

    def _is_marker(self, pid: int, marker: str) -> bool:
        """Whether `marker` is the attempt's, or was before the home was renamed.

        Another home may have the old name now, so the attempt's id decides, unless the agent replaced it.
        """
        if not marker.endswith(self._within):
            return False
        attempt_id = process.variable(pid, "SESSION_ID") or ""
        if attempt_id != self.attempt_id:
            return marker == self.directory.path and not ids.is_attempt_id(attempt_id)
        # Of a copied attempt, even the id is the same.
        return self.is_copy is False or not _is_another(marker, self.directory.path)

    def is_of_sibling(self, pid: int) -> bool:
        """Whether `pid` belongs to another open attempt of the task, which has its own sweep."""
        if not self._siblings:
            return False
        environ = process.environment(pid)
        attempt_id = self._siblings.get(environ.get("HOLDFAST_ATTEMPT", ""))
        return attempt_id is not None and attempt_id == environ.get("SESSION_ID")

    def is_agent_of_sibling(self, pid: int) -> bool:
        """Whether `pid` is the agent of another open attempt of the task."""
        return pid in self._agents

    def is_of_holdfast(self, pid: int) -> bool:
        """Whether `pid` is a process of holdfast: it holds a lock that it signed, and not the attempt's."""
        # They set their name before they hold a lock for long. Listing descriptors is slow.
        return process.name(pid).startswith("holdfast") and holds_our_lock(pid, self.directory.path)

    def may_become_holdfast(self, pid: int, start_time: int) -> bool:
        """Whether `pid` was executed as a process of holdfast, too recently to have its lock."""
        if not process.name(pid).startswith(("python", os.path.basename(sys.executable)[:15], "holdfast")):
            return False
        is_ours = own_python.module_of(process.arguments(pid)) in _STARTED_AS
        return is_ours and process.age_s(start_time) < STARTING_S


def holds_our_lock(pid: int, marker: str) -> bool:
    """Whether `pid` holds a flock on a lock file of holdfast that it signed, other than the attempt's."""
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for descriptor in descriptors:
        try:
            target = os.readlink(f"/proc/{pid}/fd/{descriptor}")
            if not is_our_lock(target) or os.path.dirname(target) == marker:
                continue
            with open(f"/proc/{pid}/fdinfo/{descriptor}", encoding="ascii", errors="replace") as file:
                is_held = "FLOCK" in file.read()
        except OSError:
            continue
        if is_held and _has_signed(pid, target):
            return True
    return False


def _has_signed(pid: int, lock: str) -> bool:
    owner = lock_owner.owner(lock)
    return owner is not None and owner.pid == pid and owner.start_time == process.start_time(pid)


# ── copied homes ──


def is_foreign(identity: ProcessIdentity, directory: AttemptDir, born: dict[str, Any] | None) -> bool:
    """Whether this live process is the agent of the attempt from which `directory` was copied.

    Pid and start time are the same in both. `born` is the content of identity.json.
    """
    copied = is_copy(directory, born)
    if copied is not None:
        return copied
    if any(process.has_open(identity.pid, descriptor, log) for descriptor, log in _logs(directory)):
        return False
    marker = process.variable(identity.pid, "HOLDFAST_ATTEMPT")
    return marker is not None and _is_another(marker, directory.path)


def is_copy(directory: AttemptDir, born: dict[str, Any] | None) -> bool | None:
    """Whether the attempt was started in another directory, of which this is a copy; None if that is unknown.

    A renamed directory keeps its inode.
    """
    recorded = born.get("directory") if born is not None else None
    if not isinstance(recorded, list) or len(recorded) != 2:  # pyright: ignore[reportUnknownArgumentType]
        return None
    try:
        here = os.stat(directory.path)
    except OSError:
        return None
    if recorded == [here.st_dev, here.st_ino]:
        return False
    # A file system that is mounted again may get another device number, and a snapshot has the same inodes.
    return None if recorded[1] == here.st_ino else True


def _recorded(directory: AttemptDir) -> dict[str, Any] | None:
    try:
        return atomic.read_json(directory.identity)
    except (HoldfastError, OSError):
        return None


def _is_another(path: str, directory: str) -> bool:
    """Whether there is a directory at `path`, and it is not this one."""
    try:
        return not os.path.samestat(os.stat(path), os.stat(directory))
    except OSError:
        return False


def _logs(directory: AttemptDir) -> list[tuple[int, os.stat_result]]:
    """The files to which the agent's output goes, with their descriptors."""
    logs: list[tuple[int, os.stat_result]] = []
    for descriptor, path in ((1, directory.stdout), (2, directory.stderr)):
        try:
            logs.append((descriptor, os.stat(path)))
        except OSError:
            continue
    return logs
