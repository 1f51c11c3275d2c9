"""Progress: evidence that is only gathered when silence makes somebody ask."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.store.process import tree_cpu_s

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: A tree that used less than this share of one core since the last look is idle.
BUSY_SHARE = 0.02
#: A walk of the workspace ends after this long; what it has not seen by then counts as unchanged.
WALK_S = 0.02
#: The same where their names are wanted, for a message that is written once.
LONG_WALK_S = 1.0
_SKIPPED = frozenset({".git", "node_modules", ".venv", "__pycache__"})


def age_s(by_its_time_s: float, unseen_s: float) -> float:
    """How long ago a log was written to that has grown since somebody looked, `unseen_s` ago. What its own time says, unless that
    cannot be: a clock that was set, here or where the file lies, must not make it look older. Rather too young than too old."""
    found_s = by_its_time_s - clock.FILE_TICK_S
    return found_s if 0.0 < found_s <= unseen_s else 0.0


class CpuMeter:
    """CPU use of a process tree between two looks."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.used_s = tree_cpu_s(pid)
        self.at_mono = clock.mono()

    def is_busy(self) -> bool:
        """Whether the tree worked since the last look."""
        used_s, now_mono = tree_cpu_s(self.pid), clock.mono()
        # A child that was reaped by somebody outside the tree takes its time with it: never below zero.
        spent_s, elapsed_s = max(0.0, used_s - self.used_s), max(now_mono - self.at_mono, 0.001)
        self.used_s, self.at_mono = used_s, now_mono
        return spent_s / elapsed_s >= BUSY_SHARE


def changed_since(root: str, at: float, *, skip: str) -> bool:
    """Whether a file below `root` was modified after `at` (wall time), so far as a short walk can tell.

    `skip` is the home: what holdfast itself writes is no progress of the agent.
    """
    return any(True for _ in _changes(root, at, skip=skip, within_s=WALK_S))


def changed_files(root: str, at: float, *, skip: str, at_most: int = 200) -> tuple[str, ...]:
    """Names below `root` of files that were modified after `at`, so far as a walk of a second can tell."""
    found: list[str] = []
    for path in _changes(root, at, skip=skip, within_s=LONG_WALK_S):
        found.append(os.path.relpath(path, root))
        if len(found) >= at_most:
            break
    return tuple(sorted(found))


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
