"""Verdicts: what the evidence says about an agent that is alive. Pure: facts and a time in, a conclusion out.

Silence alone is never a hang. Silence past `stale_s` starts a grace period; what excuses silence (an open tool call, an
announced wait, a busy process tree, files that change) has a ceiling of its own; and every ceiling ends somewhere.
"""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.record import Record
from holdfast.model.spec import Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Kind(StrEnum):
    """What can be concluded."""

    WORKING = "working"
    #: Silent for longer than `stale_s`, without excuse: the grace period runs.
    QUIET = "quiet"
    #: Silent, with an excuse whose ceiling is not reached.
    EXCUSED = "excused"
    HUNG = "hung"
    #: The result was printed and the process lives on.
    LINGERING = "lingering"


class Evidence(Record):
    """What is known. Times are on the monotonic clock, so a sleeping machine makes nobody look hung."""

    #: Last byte, event or start: whichever came last.
    progress_mono: float
    #: Silence before this is not counted: it has only just started.
    judged_from_mono: float = 0.0
    result_mono: float | None = None
    #: Start of the oldest tool call that is still open.
    tool_mono: float | None = None
    tool_name: str = ""
    #: The agent said it will be silent until then.
    wait_until_mono: float | None = None
    #: The process tree used CPU since the last look.
    is_busy: bool = False
    #: Files in the workspace changed since the last look.
    files_changed: bool = False
    #: When an excuse last held: the grace period begins after it, because the next look may come a moment later and see
    #: neither CPU nor files in so short a time.
    excused_mono: float | None = None


class Verdict(Record):
    """A conclusion, why, and when to look again."""

    kind: Kind
    because: str
    look_again_mono: float

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
            "tree_is_busy": evidence.is_busy,
            "files_changed": evidence.files_changed,
        }


_NEVER_S = 86400.0


def judge(evidence: Evidence, limits: Limits, now_mono: float) -> Verdict:
    """The verdict on a living agent."""
    if evidence.result_mono is not None:
        ends = evidence.result_mono + limits.linger_s
        kind = Kind.LINGERING if now_mono >= ends else Kind.WORKING
        return Verdict(
            kind=kind, because="the result is printed, the process is not gone", look_again_mono=ends
        )
    if limits.stale_s is None:
        return Verdict(
            kind=Kind.WORKING, because="silence is normal for it", look_again_mono=now_mono + _NEVER_S
        )
    stale_at = max(evidence.progress_mono, evidence.judged_from_mono) + limits.stale_s
    if now_mono < stale_at:
        return Verdict(kind=Kind.WORKING, because="it made progress", look_again_mono=stale_at)
    for excuse, ends in _excuses(evidence, limits, now_mono):
        if now_mono < ends:
            # Look again after the grace period at the latest: an excuse such as a busy tree can go away.
            again = min(ends, now_mono + max(limits.grace_s, 0.05))
            return Verdict(kind=Kind.EXCUSED, because=excuse, look_again_mono=again)
    hung_at = max(stale_at, evidence.excused_mono or stale_at) + limits.grace_s
    if now_mono < hung_at:
        return Verdict(
            kind=Kind.QUIET, because="silent without excuse, grace period runs", look_again_mono=hung_at
        )
    silent = now_mono - evidence.progress_mono
    return Verdict(
        kind=Kind.HUNG, because=f"silent for {silent:.1f}s without excuse", look_again_mono=now_mono
    )


def _excuses(evidence: Evidence, limits: Limits, now_mono: float) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    if evidence.wait_until_mono is not None:
        ceiling = evidence.progress_mono + limits.wait_ceiling_s
        found.append(("it announced a wait", min(evidence.wait_until_mono + limits.grace_s, ceiling)))
    if evidence.tool_mono is not None:
        found.append((f"its tool {evidence.tool_name} runs", evidence.tool_mono + limits.tool_ceiling_s))
    if evidence.is_busy:
        found.append(("its processes use the CPU", evidence.progress_mono + limits.busy_ceiling_s))
    if evidence.files_changed:
        found.append(("files in the workspace change", evidence.progress_mono + limits.busy_ceiling_s))
    return found
