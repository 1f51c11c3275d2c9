"""Which tasks of a home changed: the one way in which views learn of it.

    changes = Changes(home)      # from here on, nothing is missed
    show(everything)
    while True:
        for task_id in changes.wait(60.0):
            show(task_id)

A task changes when its manifest is written (every fact in the journal is followed by that), when its done
marker appears or disappears, and when its packet appears or disappears. inotify reports it at once; where
that is missing, or its limits are reached, the files are looked at every 0.15 s.

inotify reports no change of an ended task, which has no watch: there may be ten thousand. One that is retried
is noticed by the line in the audit. Both can be lost (on a full disk, or a network file system), so all files
are looked at now and then, too.
"""

from __future__ import annotations

import os
import select

from holdfast import clock
from holdfast.store import inotify, layout
from holdfast.store.inotify import Inotify
from holdfast.views.facts.audit_tail import AuditTail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from holdfast.store.layout import Home

SCHEMA = "holdfast.changes/1"
#: How often all files are looked at: without inotify, and with it, of tasks that have not ended and of all.
SCAN_S, LIVE_SCAN_S, WHOLE_SCAN_S = 0.15, 5.0, 30.0
#: A file that changed this recently may change again without a newer timestamp.
_FRESH_S = 0.1
_OF_HOME = inotify.CREATE | inotify.MOVED_TO | inotify.ONLYDIR
_OF_TASKS = inotify.CREATE | inotify.DELETE | inotify.MOVED_FROM | inotify.MOVED_TO | inotify.ONLYDIR
#: Files are written under a temporary name and renamed. (A heartbeat, which changes nothing that is worth
#: showing, is written in place.)
_OF_PACKET = inotify.MOVED_TO | inotify.ONLYDIR
_OF_DONE = inotify.DELETE | inotify.MOVED_FROM | inotify.MOVED_TO | inotify.ONLYDIR
_HOME, _TASKS, _AUDIT, _DIRECTORY = "home", "tasks", "audit", "directory"


def as_json(task_ids: Iterable[str]) -> dict[str, Any]:
    """What `Changes.wait` returned, for a program that cannot call it."""
    return {"schema": SCHEMA, "tasks": sorted(task_ids)}


class Changes:
    """Reports changes from its creation on. Not for several threads."""

    def __init__(self, home: Home, *, only: Iterable[str] | None = None) -> None:
        """`only`: watch these tasks, which exist, and no others."""
        self._home = home
        self._only = None if only is None else frozenset(only)
        #: What is known of each task.
        self._stamps: dict[str, _Stamp] = {}
        self._changed: set[str] = set()
        self._inotify = Inotify.open()
        #: What a watch is about: its kind, and the task or directory.
        self._watches: dict[int, tuple[str, str]] = {}
        self._watches_of: dict[str, list[int]] = {}
        self._audit = AuditTail(home)
        self._tasks_mtime_ns = 0
        #: Whether the kernel reports changes. Not without inotify, and not before there is a home.
        self._is_told = False
        self._watch_home()
        self._list()
        self._changed.clear()
        self._scanned_mono = self._scanned_whole_mono = clock.mono()

    @property
    def descriptor(self) -> int:
        """Readable when something may have changed, for a loop that waits for other things too. -1 without
        inotify. Either way `wait(0)` must be called every few seconds (`SCAN_S` without inotify)."""
        return self._inotify.descriptor if self._inotify is not None else -1

    def wait(self, timeout_s: float) -> set[str]:
        """The ids of the tasks that changed since the last call; waits for one. Empty after the timeout."""
        ends_mono = clock.mono() + timeout_s
        while True:
            left_s = max(0.0, min(ends_mono, self._scan_due_mono()) - clock.mono())
            if self._inotify is None:
                clock.sleep(left_s)
            elif _is_readable(self._inotify.descriptor, left_s):
                self._take_events(self._inotify)
            self._scan_if_due()
            if self._changed or clock.mono() >= ends_mono:
                changed, self._changed = self._changed, set()
                return changed

    def close(self) -> None:
        """Stop watching."""
        self._audit.close()
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None

    # ── looking at files ──

    def _scan_due_mono(self) -> float:
        return self._scanned_mono + (LIVE_SCAN_S if self._is_told else SCAN_S)

    def _scan_if_due(self) -> None:
        now_mono = clock.mono()
        if now_mono < self._scan_due_mono():
            return
        self._watch_home()
        self._list()
        is_whole = now_mono >= self._scanned_whole_mono + WHOLE_SCAN_S
        named = self._audit.task_ids()
        for task_id, stamp in list(self._stamps.items()):
            if is_whole and stamp.has_ended:
                self._forget_watches(task_id)
            if is_whole or not stamp.has_ended or task_id in named:
                self._look(task_id)
        self._scanned_mono = clock.mono()
        if is_whole:
            self._scanned_whole_mono = self._scanned_mono

    def _list(self) -> None:
        """Find packets that appeared or disappeared."""
        if self._only is not None:
            for task_id in self._only:
                self._look(task_id)
            return
        try:
            mtime_ns = os.stat(self._home.tasks).st_mtime_ns
            if mtime_ns == self._tasks_mtime_ns:
                return
            with os.scandir(self._home.tasks) as entries:
                found = {entry.name for entry in entries if _is_task(entry.name) and layout.is_packet(entry)}
        except FileNotFoundError:
            mtime_ns, found = 0, set[str]()
        # The same timestamp may cover a change that comes a moment later.
        self._tasks_mtime_ns = mtime_ns if clock.now() - mtime_ns / 1e9 > SCAN_S else 0
        for task_id in found ^ self._stamps.keys():
            self._look(task_id)

    def _look(self, task_id: str) -> None:
        """Compare the files of a task with what is known."""
        old = self._stamps.get(task_id)
        if old is None or not old.has_ended:
            self._watch_task(task_id)  # first, so that nothing is missed
        new = _Stamp.read(self._home, task_id)
        if new is None:
            if self._stamps.pop(task_id, None) is not None:
                self._changed.add(task_id)
            self._forget_watches(task_id)
            return
        if old is None or new.key != old.key:
            # Soon after a change, the next one may have the same timestamp: then it is reported twice.
            self._stamps[task_id] = new if self._is_told or not new.is_fresh() else _Stamp((), new.has_ended)
            self._changed.add(task_id)
        if new.has_ended and (old is None or not old.has_ended):
            self._forget_watches(task_id)
        elif old is not None and old.has_ended and not new.has_ended:
            self._watch_task(task_id)

    # ── inotify ──

    def _take_events(self, instance: Inotify) -> None:
        tasks: set[str] = set()
        for wd, mask, name in instance.read():
            if mask & inotify.OVERFLOW:
                self._tasks_mtime_ns = 0
                self._scanned_mono = self._scanned_whole_mono = float("-inf")
                continue
            kind, about = self._watches.get(wd, ("", ""))
            if mask & inotify.IGNORED:
                self._watches.pop(wd, None)
            elif kind == _HOME:
                if name in ("tasks", "audit.jsonl"):
                    self._watch_home()
                    self._tasks_mtime_ns = 0
                    self._list()
                    tasks |= self._audit.task_ids()
            elif kind == _TASKS:
                if _is_task(name):
                    tasks.add(name)
                    # What was moved away keeps its watches: a new packet of the same name needs its own.
                    self._forget_watches(name)
            elif kind == _AUDIT:
                tasks |= self._audit.task_ids()
            elif kind == _DIRECTORY and name in ("manifest.json", "_task.done"):
                tasks.add(about)
                # Its timestamp may be that of the change before: the kernel's clock for files is coarse.
                self._changed.add(about)
        for task_id in tasks:
            if self._only is None or task_id in self._only:
                if task_id in self._stamps and self._stamps[task_id].has_ended:
                    self._watch_task(task_id)  # perhaps it is being retried
                self._look(task_id)

    def _watch_home(self) -> None:
        """Watch the home, its tasks and its audit, as far as they exist."""
        self._is_told = self._add(self._home.path, _OF_HOME, _HOME) is not None
        if self._only is None:
            self._add(self._home.tasks, _OF_TASKS, _TASKS)
        self._add(self._home.audit, inotify.MODIFY, _AUDIT)

    def _watch_task(self, task_id: str) -> None:
        if self._inotify is None or task_id in self._watches_of:
            return
        folder = f"{self._home.tasks}/{task_id}"
        added = [
            self._add(folder, _OF_PACKET, _DIRECTORY, task_id),
            self._add(f"{folder}/done", _OF_DONE, _DIRECTORY, task_id),
        ]
        if None not in added:
            self._watches_of[task_id] = [wd for wd in added if wd is not None]

    def _forget_watches(self, task_id: str) -> None:
        for wd in self._watches_of.pop(task_id, ()):
            self._watches.pop(wd, None)
            if self._inotify is not None:
                self._inotify.remove(wd)

    def _add(self, path: str, mask: int, kind: str, about: str = "") -> int | None:
        if self._inotify is None:
            return None
        try:
            wd = self._inotify.add(path, mask)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return None
        except OSError:
            # No watches left: look at the files instead.
            self._inotify.close()
            self._inotify, self._is_told = None, False
            return None
        self._watches[wd] = (kind, about)
        return wd


class _Stamp:
    """The files of a task at one moment."""

    __slots__ = ("has_ended", "key")

    def __init__(self, key: tuple[int, ...], has_ended: bool) -> None:  # noqa: FBT001 (a pair of values)
        self.key = key
        self.has_ended = has_ended

    def is_fresh(self) -> bool:
        """Whether the manifest has just been written."""
        return bool(self.key) and clock.now() - self.key[0] / 1e9 < _FRESH_S

    @classmethod
    def read(cls, home: Home, task_id: str) -> _Stamp | None:
        """None if there is no packet."""
        try:
            manifest = os.lstat(home.manifest_of(task_id))
            key = (manifest.st_mtime_ns, manifest.st_size, manifest.st_ino)
        except OSError:
            if not os.path.isdir(f"{home.tasks}/{task_id}"):
                return None
            key = ()  # it has no manifest yet, or lost it
        try:
            done = os.lstat(f"{home.tasks}/{task_id}/done/_task.done")
        except OSError:
            return cls(key, False)
        return cls((*key, done.st_mtime_ns, done.st_ino), True)


def _is_task(name: str) -> bool:
    return not name.startswith(".")


def _is_readable(descriptor: int, timeout_s: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))
