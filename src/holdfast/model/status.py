"""The states of a task and the moves between them. Imports the standard library only."""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import InvalidMove
from holdfast.model.names import Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Status(Names):
    """What a task is doing."""

    QUEUED = "queued"
    SPAWNING = "spawning"
    RUNNING = "running"
    COMPLETING = "completing"
    CRASHED = "crashed"
    HUNG = "hung"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"
    TIMEOUT = "timeout"
    COMPLETED = "completed"
    FAILED = "failed"
    ABANDONED = "abandoned"
    KILLED = "killed"


_S = Status
MOVES: dict[Status, frozenset[Status]] = {
    # To completed: an external worker did it.
    _S.QUEUED: frozenset({_S.SPAWNING, _S.COMPLETED, _S.KILLED}),
    _S.SPAWNING: frozenset(
        {_S.RUNNING, _S.FAILED, _S.CRASHED, _S.WAITING, _S.INTERRUPTED, _S.ABANDONED, _S.KILLED}
    ),
    _S.RUNNING: frozenset(
        {
            _S.COMPLETING,
            _S.CRASHED,
            _S.HUNG,
            _S.WAITING,
            _S.INTERRUPTED,
            _S.TIMEOUT,
            _S.ABANDONED,
            _S.FAILED,
            _S.KILLED,
        }
    ),
    _S.CRASHED: frozenset({_S.SPAWNING, _S.WAITING, _S.INTERRUPTED, _S.ABANDONED, _S.FAILED, _S.KILLED}),
    _S.HUNG: frozenset({_S.SPAWNING, _S.WAITING, _S.INTERRUPTED, _S.ABANDONED, _S.FAILED, _S.KILLED}),
    _S.WAITING: frozenset({_S.SPAWNING, _S.QUEUED, _S.INTERRUPTED, _S.ABANDONED, _S.KILLED}),
    _S.INTERRUPTED: frozenset({_S.SPAWNING, _S.QUEUED, _S.ABANDONED, _S.KILLED}),
    _S.COMPLETING: frozenset(
        {
            _S.SPAWNING,
            _S.WAITING,
            _S.INTERRUPTED,
            _S.COMPLETED,
            _S.FAILED,
            _S.TIMEOUT,
            _S.ABANDONED,
            _S.KILLED,
        }
    ),
    _S.TIMEOUT: frozenset({_S.INTERRUPTED, _S.SPAWNING, _S.ABANDONED, _S.FAILED, _S.KILLED}),
    _S.COMPLETED: frozenset(),
    _S.FAILED: frozenset(),
    _S.ABANDONED: frozenset(),
    _S.KILLED: frozenset(),
}

#: Final states. Only a `retry` request leaves them (event `run.opened`).
ENDS = frozenset({_S.COMPLETED, _S.FAILED, _S.ABANDONED, _S.KILLED})
#: States that need no runner unless there is a request.
PARKED = frozenset({_S.QUEUED, _S.INTERRUPTED})

#: The command of Cause.DOWN, for texts.
DOWN_COMMAND = "holdfast down --now"
#: The reason of an interrupt without a message starts with this.
INTERRUPTED_BY = "interrupted by "


class Cause(Names):
    """Why a task was stopped, where a decision depends on it. `reason` is the same as text."""

    #: A failure: `last_failure.json` says what helps.
    FAILURE = "failure"
    #: The home went down: there is no question, and the task can just continue.
    DOWN = "down"
    #: Another process wrote to the journal, and a person is asked about it.
    DISTRUST = "distrust"
    #: A limit stopped it, and nothing was asked: its budget, the time of an attempt, its output.
    BUDGET = "budget"
    TIMEOUT = "timeout"
    OUTPUT = "output"
    #: An acceptance command could not start, and could not before the work either: this machine lacks
    #: something.
    SETUP = "setup"
    #: The checks of the repository failed (settings `post_work`, …), and a person decides; nothing was asked.
    CHECKS = "checks"


#: Exit status of a command that waits for the task.
EXIT_STATUS: dict[Status, int] = {
    _S.COMPLETED: 0,
    _S.FAILED: 1,
    _S.KILLED: 1,
    _S.INTERRUPTED: 4,
    _S.ABANDONED: 5,
    _S.TIMEOUT: 5,
}


def has_concerns(manifest: dict[str, Any]) -> bool:
    """Whether a person must look at a task although it is completed."""
    return any(map(manifest.get, ("concerns", "denied", "over_budget")))


#: A queued task that waits at least this long gives its slot away, and goes through the queue again.
LONG_WAIT_S = 60.0


def uses_slot(manifest: dict[str, Any]) -> bool:
    """Whether a started task of the queue uses its slot: one that waits for a person or for a long time does
    not. After a short wait it goes on without asking the queue, so it keeps its slot, unless only the checks
    of its pull request are looked at."""
    if manifest["status"] != _S.WAITING:
        return manifest["status"] != _S.INTERRUPTED
    checks: dict[str, Any] = manifest.get("ci") or {}
    if checks.get("state") == "pending":
        return False
    wake_at, since = manifest.get("wake_at"), manifest.get("status_updated_at")
    try:
        return bool(wake_at) and clock.parse_iso(wake_at) - clock.parse_iso(since or "") < LONG_WAIT_S
    except ValueError:
        return False


def newest_at(row: dict[str, Any]) -> str:
    """By what tasks are sorted, the newest first: the end of one that has ended, otherwise its creation."""
    return (row["status"] in ENDS and row.get("finished_at")) or row.get("started_at") or ""


def needs_look(manifest: dict[str, Any]) -> bool:
    """Whether a person should look at a task that has ended: it failed, or is completed with concerns, and
    nobody has applied its work. One that was stopped on request needs nobody."""
    status = manifest["status"]
    if manifest.get("applied"):
        return False
    return status in (_S.FAILED, _S.ABANDONED) or (status == _S.COMPLETED and has_concerns(manifest))


def exit_status(manifest: dict[str, Any]) -> int:
    """Exit status of a command that waited for this task.

    A task that a person must look at counts as interrupted: it is completed with concerns, although tools
    were denied or over its budget, held in the queue, or without a runner.
    """
    status = Status(manifest["status"])
    needs_person = EXIT_STATUS[_S.INTERRUPTED]
    if status is _S.COMPLETED and has_concerns(manifest):
        return needs_person
    return EXIT_STATUS.get(status, needs_person)


def check_move(old: Status, new: Status) -> None:
    """Raises InvalidMove if the table does not allow the move."""
    if new not in MOVES[old]:
        allowed = ", ".join(sorted(MOVES[old])) or "none, it is final"
        raise InvalidMove(f"a task cannot go from {old} to {new}", hint=f"allowed after {old}: {allowed}")
