"""Which tasks need a runner, judged by their files. Files that have not changed are not read again."""

from __future__ import annotations

import os

from holdfast.errors import HoldfastError
from holdfast.keeper.log import log
from holdfast.model.status import ENDS, Status
from holdfast.packet import inbox, load, takeover
from holdfast.store import admitted, index
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any


class RunnerNeeds:
    """Tells which tasks of a home need a runner, and remembers those that need none."""

    def __init__(self, home: Home) -> None:
        self.home = home
        #: A queued task was seen, whether the queue has it or not.
        self.has_queued = False
        #: Ended tasks: skipped until `forget_unchanged`.
        self._ended: set[str] = set()
        #: Tasks that need nothing, with the timestamps of their files: skipped until one of them changes.
        self._idle_stamps: dict[str, tuple[int, ...]] = {}
        #: Tasks whose manifest was compared with the journal, with what both looked like then.
        self._believed: dict[str, object] = {}
        #: Interrupted tasks that continue when their interrupt file is removed.
        self._has_interrupt_file: set[str] = set()
        #: Packets that no command has made.
        self._not_admitted: set[str] = set()

    @property
    def awaits_removal(self) -> bool:
        """Whether an interrupt file may be removed, so that the keeper must keep checking."""
        return bool(self._has_interrupt_file)

    def forget(self, task_id: str) -> None:
        """Check this task again, even if it has ended: a `retry` may have revived it."""
        self._ended.discard(task_id)
        self._idle_stamps.pop(task_id, None)

    def forget_unchanged(self) -> None:
        """Check all tasks again: two changes within one clock tick look like one."""
        self._ended.clear()
        self._idle_stamps.clear()

    def keep_only(self, task_ids: Collection[str]) -> None:
        """Forget removed tasks."""
        self._has_interrupt_file.intersection_update(task_ids)
        self._believed = {name: self._believed[name] for name in task_ids if name in self._believed}

    def arises(self, packet: Packet) -> bool:
        """Whether a task that is not watched needs a runner now."""
        if packet.task_id in self._ended:
            return False
        stamp = _stamp(packet)
        if self._idle_stamps.get(packet.task_id) == stamp:
            return False
        if self.exists(packet, is_watched=False):
            self._idle_stamps.pop(packet.task_id, None)
            return True
        self._idle_stamps[packet.task_id] = stamp
        return False

    def exists(self, packet: Packet, *, is_watched: bool) -> bool:
        """Whether the task needs a runner, or has one whose death the keeper must notice.

        A task whose interrupt file was removed is resumed here.
        """
        try:
            manifest, is_live, has_runner = self._read(packet)
        except (HoldfastError, ValueError):
            # Unreadable: a runner could not help. `status` reports it.
            return False
        status = Status(manifest["status"])
        self.has_queued = self.has_queued or status is Status.QUEUED
        if (is_live or has_runner) and not self._is_admitted(packet):
            return False
        if _interrupt(manifest).get("file"):
            self._has_interrupt_file.add(packet.task_id)
        else:
            self._has_interrupt_file.discard(packet.task_id)
        if not is_live and not has_runner and status in ENDS:
            self._ended.add(packet.task_id)
        if not is_live and _was_file_removed(packet, manifest) and self._is_admitted(packet):
            inbox.drop(packet, "resume", {}, by="file")
            is_live = True
        # A retried task of the queue waits again, but the index still has it as ended.
        is_queued_again = status is Status.QUEUED and bool(manifest.get("attempt"))
        if is_live or is_watched or is_queued_again:
            index.update(self.home, manifest)
        return is_live or has_runner

    def _read(self, packet: Packet) -> tuple[dict[str, Any], bool, bool]:
        """The manifest, whether the task is live, and whether a runner holds its lock although it is not.

        Such a runner is about to leave, or its agent wrote the manifest.
        """
        manifest = load.read_manifest(packet)
        if load.is_live(packet, manifest["status"]):
            return manifest, True, False
        if locks.is_held(packet.runner_lock):
            return manifest, False, True
        stamp = _end_stamp(packet)
        if self._believed.get(packet.task_id) == stamp:
            return manifest, False, False
        # Its agent may have written the end.
        believed = load.believed(packet, manifest)
        is_live = load.is_live(packet, believed["status"])
        if believed is manifest:
            self._believed[packet.task_id] = stamp
        return believed, is_live, False

    def _is_admitted(self, packet: Packet) -> bool:
        """Whether a command made the packet. What an agent, a backup or a person has put there is not run."""
        if admitted.is_admitted(packet):
            self._not_admitted.discard(packet.task_id)
            return True
        if packet.task_id not in self._not_admitted:
            self._not_admitted.add(packet.task_id)
            log(admitted.objection(packet))
        return False


def _was_file_removed(packet: Packet, manifest: dict[str, Any]) -> bool:
    """Whether an interrupted task should continue because its interrupt file was removed.

    (Not if it waits for approval.)
    """
    interrupt = _interrupt(manifest)
    if manifest["status"] != Status.INTERRUPTED or not interrupt.get("file") or interrupt.get("approval"):
        return False
    if takeover.is_held(packet, manifest):
        return False  # a person works in its session
    return not os.path.lexists(packet.interrupt_request) and not os.path.lexists(packet.error_marker)


def _interrupt(manifest: dict[str, Any]) -> dict[str, Any]:
    return manifest.get("interrupt") or {}


def _stamp(packet: Packet) -> tuple[int, ...]:
    """Modification times of the files that decide whether a task needs the keeper."""
    times: list[int] = []
    for path in (packet.manifest, packet.inbox, packet.state, packet.done, packet.admission):
        try:
            times.append(os.stat(path).st_mtime_ns)
        except OSError:
            times.append(0)
    return tuple(times)


def _end_stamp(packet: Packet) -> tuple[tuple[int, int, int], ...]:
    """What changes with the manifest or the journal."""
    found: list[tuple[int, int, int]] = []
    for path in (packet.manifest, packet.journal):
        try:
            stats = os.lstat(path)
            found.append((stats.st_ino, stats.st_size, stats.st_mtime_ns))
        except OSError:
            found.append((0, 0, 0))
    return tuple(found)
