"""Which processes belong to a test, and how to end them: by pid, never by name.

Everything a test starts carries the path of the test's own directory (as HOLDFAST_HOME, HOME, TMPDIR, a
packet's path, its working directory) or the test's id in its environment. What was only forked carries
neither, but is still a descendant of the test process. Linux only: elsewhere the lists are empty.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from typing import NamedTuple

from holdfast.store import lock as locks
from holdfast.store import lock_owner
from holdfast.store.process import is_alive as is_still_alive


class Process(NamedTuple):
    """One live process, as /proc showed it."""

    pid: int
    parent_pid: int
    state: str
    start_ticks: int
    command: str

    def __str__(self) -> str:
        return f"pid {self.pid} ({self.state}, parent {self.parent_pid}): {self.command}"


def look(pid: int) -> Process | None:
    """The process with this pid, or None when it is gone. A zombie is gone."""
    stat = _read(f"/proc/{pid}/stat")
    # The name may hold spaces and parentheses; the fields begin after the last one.
    fields = stat[stat.rfind(b")") + 2 :].split()
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None
    command = _read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").strip() or stat.split(b" ", 2)[1]
    return Process(
        pid=pid,
        parent_pid=int(fields[1]),
        state=fields[0].decode(),
        start_ticks=int(fields[19]),
        command=command.decode("utf-8", "replace")[:300],
    )


def is_alive(pid: int) -> bool:
    """Whether this pid is a process that is not a zombie."""
    return look(pid) is not None


def cpu_s(pid: int) -> float:
    """The processor time that a living process has used."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def marked(*marks: str | os.PathLike[str]) -> list[Process]:
    """Live processes that carry one of `marks` in environment, command line or working directory.

    The caller and its ancestors (pytest, make, a shell that was given the path) are never among them.
    """
    needles = [os.fsencode(mark) for mark in marks]
    spared = _own_line()
    return [p for p in _all() if p.pid not in spared and _carries(p.pid, needles)]


def descendants(pid: int | None = None) -> list[Process]:
    """Live processes below `pid` (default: the caller), whatever they carry."""
    root = os.getpid() if pid is None else pid
    children: dict[int, list[Process]] = {}
    for process in _all():
        children.setdefault(process.parent_pid, []).append(process)
    found: list[Process] = []
    open_pids = [root]
    while open_pids:
        below = children.get(open_pids.pop(), [])
        found += below
        open_pids += [p.pid for p in below]
    return found


def kill(processes: Iterable[Process]) -> None:
    """SIGKILL exactly these; a pid that meanwhile belongs to another process is left alone."""
    for process in processes:
        try:
            fd = os.pidfd_open(process.pid)
        except OSError:
            continue  # gone
        try:
            now = look(process.pid)
            if now is not None and now.start_ticks == process.start_ticks:
                signal.pidfd_send_signal(fd, signal.SIGKILL)
        except ProcessLookupError:
            pass
        finally:
            os.close(fd)


def _all() -> list[Process]:
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    return [p for p in map(look, pids) if p is not None]


def _carries(pid: int, needles: list[bytes]) -> bool:
    try:
        cwd = os.fsencode(os.readlink(f"/proc/{pid}/cwd"))
    except OSError:
        cwd = b""
    places = (_read(f"/proc/{pid}/environ"), _read(f"/proc/{pid}/cmdline"), cwd)
    return any(needle in place for place in places for needle in needles)


def _own_line() -> set[int]:
    pids = {os.getpid()}
    process = look(os.getpid())
    while process is not None and process.parent_pid not in pids:
        pids.add(process.parent_pid)
        process = look(process.parent_pid)
    return pids


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # gone, or another user's
        return b""


def stop_owner(lock: str) -> None:
    """End the keeper or seed that holds a lock."""
    owner = lock_owner.owner(lock)
    if owner is not None and locks.is_held(lock) and is_still_alive(owner):
        os.kill(owner.pid, signal.SIGKILL)
