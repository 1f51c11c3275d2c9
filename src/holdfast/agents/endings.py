"""Ends that mean the same for every agent: a signal, a finished run, the last line of stderr."""

from __future__ import annotations

from holdfast import clock
from holdfast.model import outcome as oc
from holdfast.model.outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.attempt import Attempt
    from holdfast.model.process import Exit

_ASKED_TO_LEAVE = {1: "SIGHUP", 2: "SIGINT", 15: "SIGTERM"}
_DETAIL_CHARS = 200
#: A process that ends sooner than this never started properly: its last output explains why.
EARLY_S = 1.0
_EARLY_LINES = 3


def by_signal(exit: Exit) -> Outcome | None:
    """Death by a signal, or the exit status that a program uses when it catches one; None for any other
    end."""
    number = exit.exit_signal
    if number is None and exit.exit_code is not None and exit.exit_code - 128 in (*_ASKED_TO_LEAVE, 9):
        number = exit.exit_code - 128
    if number is None:
        return None
    if number in _ASKED_TO_LEAVE:
        return Outcome(kind="interrupted", detail=f"ended by {_ASKED_TO_LEAVE[number]}")
    if number == 9:
        return Outcome(kind="killed", detail="ended by SIGKILL")
    return Outcome(kind="crashed", detail=f"killed by signal {number}")


def is_complete(exit: Exit, attempt: Attempt) -> bool:
    """Whether it reported a result and exited with 0, or lingered after its result and was ended by us."""
    has_result = attempt.result is not None and not attempt.result.is_error
    return has_result and (exit.exit_code == 0 or attempt.intent_name == "linger")


def by_death(exit: Exit) -> Outcome | None:
    """Death by a signal. Unlike in `by_signal`, an exit status is not taken for one."""
    number = exit.exit_signal
    if number is None:
        return None
    kind = "killed" if number == 9 else "interrupted" if number in _ASKED_TO_LEAVE else "crashed"
    return Outcome(kind=kind, detail=f"ended by signal {number}")


def finished(attempt: Attempt) -> Outcome:
    """A normal end, with the flaw that the summary mentions."""
    return flaw(attempt) or Outcome(kind="success")


def flaw(attempt: Attempt) -> Outcome | None:
    """What went wrong before a normal end; None if nothing did."""
    error, kind = attempt.error, oc.DENIED
    if error is not None and error.kind == kind:
        return Outcome(kind=kind, detail=error.message[:_DETAIL_CHARS])
    if attempt.denied_tools:
        return Outcome(kind=kind, detail=f"denied: {', '.join(attempt.denied_tools)}"[:_DETAIL_CHARS])
    if attempt.tool_failed:
        return Outcome(kind="tool_failed_but_finished")
    return None


def failed(attempt: Attempt) -> Outcome | None:
    """The class of the last error, with the time when a limit ends; None if there was no error."""
    error, limit = attempt.error, attempt.rate_limit
    if error is None:
        return None
    resets_at = limit.resets_at if limit is not None and error.kind in oc.MUST_WAIT else None
    return Outcome(kind=error.kind, detail=error.message[:_DETAIL_CHARS], resets_at=resets_at)


def in_session(outcome: Outcome, attempt: Attempt, *, was_kept: bool) -> Outcome:
    """The same outcome; not resumable if this attempt started its session and the program saved nothing of
    it."""
    if was_kept or attempt.mode == "resume" or outcome.kind in oc.SUCCESS:
        return outcome
    return outcome.evolve(resumable=False)


def last_line(stderr: str) -> str:
    """The last line of stderr."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return lines[-1][:_DETAIL_CHARS] if lines else ""


def early(outcome: Outcome, lived_s: float, stderr: str) -> Outcome:
    """The same outcome; if the program failed right at its start, with its last lines of stderr in the
    detail."""
    if lived_s > EARLY_S or outcome.kind not in ("crashed", "failed", "truncated"):
        return outcome
    lines = [line.strip()[:_DETAIL_CHARS] for line in stderr.splitlines() if line.strip()][-_EARLY_LINES:]
    new = [line for line in lines if line not in outcome.detail]
    words = f"{outcome.detail}; {clock.duration_text(lived_s)} after its start"
    return outcome.evolve(detail=f"{words}: {' / '.join(new)}" if new else words)


def without_result(exit: Exit, stderr: str) -> Outcome:
    """It ended by itself without reporting that it was finished."""
    if exit.exit_code == 0:
        return Outcome(kind="truncated", detail="it ended before its last event")
    message = last_line(stderr) or "nothing on stderr"
    return Outcome(kind="crashed", detail=f"exit status {exit.exit_code}: {message}")
