"""Signs of progress other than output. Collected only when an agent is silent."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.store.process import tree_cpu_s

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: A process tree that used less than this share of one core since the last check is idle.
BUSY_SHARE = 0.02
#: Time limit of a walk through the workspace; files it does not reach count as unchanged.
WALK_S = 0.02
#: Time limit of a walk that collects file names, for a message that is written once.
LONG_WALK_S = 1.0
_SKIPPED = frozenset({".git", "node_modules", ".venv", "__pycache__"})


def age_s(mtime_age_s: float, unseen_s: float) -> float:
    """Time since the last write to a log that has grown since the last check, `unseen_s` ago.

    That is the age of its mtime, or 0 if that age is impossible: a clock change, here or on a file server,
    must not make the agent look silent.
    """
    written_s = mtime_age_s - clock.FILE_TICK_S
    return written_s if 0.0 < written_s <= unseen_s else 0.0


class CpuMeter:
    """CPU use of a process tree between two checks."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.used_s = tree_cpu_s(pid)
        self.at_mono = clock.mono()

    def is_busy(self) -> bool:
        """Whether the tree used CPU since the last check."""
        used_s, now_mono = tree_cpu_s(self.pid), clock.mono()
        # The CPU time of a child reaped outside the tree disappears, so the difference can be negative.
        spent_s, elapsed_s = max(0.0, used_s - self.used_s), max(now_mono - self.at_mono, 0.001)
        self.used_s, self.at_mono = used_s, now_mono
        return spent_s / elapsed_s >= BUSY_SHARE


def changed_since(root: str, at: float, *, skip: str) -> bool:
    """Whether a short walk finds a file below `root` that was modified after `at` (wall time).

    `skip` is the home: what holdfast writes is not progress of the agent.
    """
    return any(True for _ in _changes(root, at, skip=skip, within_s=WALK_S))


def changed_files(root: str, at: float, *, skip: str, at_most: int = 200) -> tuple[str, ...]:
    """Files below `root` that were modified after `at`, as far as a walk of one second finds them."""
    names: list[str] = []
    for path in _changes(root, at, skip=skip, within_s=LONG_WALK_S):
        names.append(os.path.relpath(path, root))
        if len(names) >= at_most:
            break
    return tuple(sorted(names))


def _changes(root: str, at: float, *, skip: str, within_s: float) -> Iterator[str]:
    ends = clock.mono() + within_s
    todo = [root]
    while todo and clock.mono() < ends:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in _SKIPPED and entry.path != skip:
                            todo.append(entry.path)
                    elif entry.stat(follow_symlinks=False).st_mtime > at - clock.FILE_TICK_S:
                        yield entry.path
        except OSError:
            continue
