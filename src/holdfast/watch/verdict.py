"""Verdicts on a running agent: is it working, quiet or hung? Pure.

Silence alone is never a hang. Silence longer than `stale_s` starts a grace period. An open tool call, an
announced wait, a busy process tree or changing files excuse silence, each up to its own ceiling. Notices that
the agent retries the model's service are no progress: they have a ceiling too.
"""

from __future__ import annotations

from holdfast.model.names import Names
from holdfast.model.record import Record
from holdfast.model.spec import Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Kind(Names):
    """The possible verdicts."""

    WORKING = "working"
    #: Silent for longer than `stale_s` with no sign of work: the grace period runs.
    QUIET = "quiet"
    #: Silent, with an excuse whose ceiling is not reached.
    EXCUSED = "excused"
    HUNG = "hung"
    #: The result was printed, but the process has not exited.
    LINGERING = "lingering"


class Evidence(Record):
    """The input of a verdict. Times are monotonic, so that a suspended machine does not look like a hang."""

    #: Last output, event or start, whichever is latest.
    progress_mono: float
    #: Silence before this time does not count: the agent has only just started.
    judged_from_mono: float = 0.0
    result_mono: float | None = None
    #: Start of the oldest tool call that is still open.
    tool_mono: float | None = None
    tool_name: str = ""
    #: End of the wait that the agent announced.
    wait_until_mono: float | None = None
    #: Its first retry since the model last answered, if it printed nothing but retries since; also as text.
    unanswered_mono: float | None = None
    unanswered_since: str = ""
    #: What it retries was refused because of a limit.
    is_limited: bool = False
    #: The process tree used CPU since the last check.
    is_busy: bool = False
    #: Files in the workspace changed since the last check.
    files_changed: bool = False
    #: When an excuse last applied. The grace period starts after it: the next check may follow at once and
    #: find neither CPU use nor changed files in so short a time.
    excused_mono: float | None = None


class Verdict(Record):
    """A verdict, its reason, and when to judge again."""

    kind: Kind
    because: str
    look_again_mono: float
    #: What the agent waits for, if a person should see it.
    waits_for: str = ""

    def to_evidence(self, evidence: Evidence, now_mono: float) -> dict[str, Any]:
        """The evidence in seconds before now, for the journal."""

        def ago(then: float | None) -> float | None:
            return None if then is None else round(now_mono - then, 3)

        return {
            "silent_s": ago(evidence.progress_mono),
            "tool": evidence.tool_name or None,
            "tool_open_s": ago(evidence.tool_mono),
            "announced_wait_ends_in_s": None
            if evidence.wait_until_mono is None
            else round(evidence.wait_until_mono - now_mono, 3),
            "model_silent_s": ago(evidence.unanswered_mono),
            "tree_is_busy": evidence.is_busy,
            "files_changed": evidence.files_changed,
        }


#: When to judge again if silence is not limited.
_NO_LIMIT_S = 86400.0


def judge(evidence: Evidence, limits: Limits, now_mono: float) -> Verdict:
    """The verdict on a running agent."""
    if evidence.result_mono is not None:
        ends = evidence.result_mono + limits.linger_s
        kind = Kind.LINGERING if now_mono >= ends else Kind.WORKING
        return Verdict(kind=kind, because="result printed, process still running", look_again_mono=ends)
    if limits.stale_s is None:
        return Verdict(
            kind=Kind.WORKING, because="silence is not limited", look_again_mono=now_mono + _NO_LIMIT_S
        )
    if evidence.unanswered_mono is not None:
        return _judge_retries(evidence, evidence.unanswered_mono, limits, now_mono)
    stale_at = _silent_from_mono(evidence) + limits.stale_s
    if now_mono < stale_at:
        return Verdict(kind=Kind.WORKING, because="it made progress", look_again_mono=stale_at)
    if excused := _excused(_excuses(evidence, limits), limits, now_mono):
        return excused
    hung_at = max(stale_at, evidence.excused_mono or stale_at) + limits.grace_s
    if now_mono < hung_at:
        return Verdict(
            kind=Kind.QUIET, because="silent with no sign of work, grace period runs", look_again_mono=hung_at
        )
    silent = now_mono - evidence.progress_mono
    return Verdict(
        kind=Kind.HUNG, because=f"silent for {silent:.1f}s with no sign of work", look_again_mono=now_mono
    )


def _silent_from_mono(evidence: Evidence) -> float:
    return max(evidence.progress_mono, evidence.judged_from_mono)


def _judge_retries(evidence: Evidence, since_mono: float, limits: Limits, now_mono: float) -> Verdict:
    """The verdict on an agent that prints nothing but notices of retries."""
    shown_at, ends = since_mono + limits.grace_s, since_mono + limits.retry_ceiling_s
    if evidence.is_limited and limits.stale_s is not None:
        # It may wait for the service in silence, for hours. The task can wait without its agent.
        silent_at = _silent_from_mono(evidence) + limits.stale_s
        shown_at, ends = min(shown_at, silent_at), min(ends, silent_at)
    silent = f"the model has not answered since {evidence.unanswered_since}"
    waits_for = f"the model, which has not answered since {evidence.unanswered_since}"
    if now_mono < min(shown_at, ends):
        return Verdict(kind=Kind.WORKING, because="it retries", look_again_mono=min(shown_at, ends))
    excuses: list[tuple[str, float]] = []
    wait_until = evidence.wait_until_mono
    # By itself only a long pause counts, which the service asked for: every retry has a short one.
    if wait_until is not None and wait_until - evidence.progress_mono > limits.grace_s:
        until = min(wait_until + limits.grace_s, since_mono + limits.wait_ceiling_s)
        excuses.append(("it announced a wait", until))
    excuses.append((f"{silent}; it retries", ends))
    excuses += _excuses(evidence.evolve(wait_until_mono=None), limits)
    if excused := _excused(excuses, limits, now_mono):
        return excused.evolve(waits_for=waits_for)
    hung_at = max(ends, evidence.excused_mono or ends) + limits.grace_s
    kind = Kind.QUIET if now_mono < hung_at else Kind.HUNG
    return Verdict(
        kind=kind, because=f"{silent}; retries do not help", look_again_mono=hung_at, waits_for=waits_for
    )


def _excused(excuses: list[tuple[str, float]], limits: Limits, now_mono: float) -> Verdict | None:
    """The verdict by the first excuse that applies."""
    for excuse, ends in excuses:
        if now_mono < ends:
            # Judge again after the grace period at the latest: the excuse may no longer apply.
            again = min(ends, now_mono + max(limits.grace_s, 0.05))
            return Verdict(kind=Kind.EXCUSED, because=excuse, look_again_mono=again)
    return None


def _excuses(evidence: Evidence, limits: Limits) -> list[tuple[str, float]]:
    excuses: list[tuple[str, float]] = []
    if evidence.wait_until_mono is not None:
        ceiling = evidence.progress_mono + limits.wait_ceiling_s
        excuses.append(("it announced a wait", min(evidence.wait_until_mono + limits.grace_s, ceiling)))
    if evidence.tool_mono is not None:
        excuses.append((f"its tool {evidence.tool_name} runs", evidence.tool_mono + limits.tool_ceiling_s))
    if evidence.is_busy:
        excuses.append(("its processes use the CPU", evidence.progress_mono + limits.busy_ceiling_s))
    if evidence.files_changed:
        excuses.append(("files in the workspace change", evidence.progress_mono + limits.busy_ceiling_s))
    return excuses
