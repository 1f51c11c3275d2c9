"""The verdict on a living agent is a pure function of evidence and time."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model.spec import Limits
from holdfast.watch.verdict import Evidence, Kind, judge

#: Stale after 90 s, hung 30 s later; excuses end after 1000 s, announced waits after 5000 s.
LIMITS = Limits(
    stale_s=90.0,
    grace_s=30.0,
    linger_s=10.0,
    tool_ceiling_s=1000.0,
    busy_ceiling_s=1000.0,
    wait_ceiling_s=5000.0,
    retry_ceiling_s=900.0,
)

#: now, evidence, verdict, when to look again. Progress was at 0.
CASES: list[tuple[str, float, dict[str, Any], Kind, float]] = [
    ("just now", 0, {}, Kind.WORKING, 90),
    ("a moment before stale", 89.9, {}, Kind.WORKING, 90),
    ("stale", 90, {}, Kind.QUIET, 120),
    ("in the grace period", 119.9, {}, Kind.QUIET, 120),
    ("after the grace period", 120, {}, Kind.HUNG, 120),
    # A tool that runs.
    ("tool", 500, {"tool_mono": 5, "tool_name": "Bash"}, Kind.EXCUSED, 530),
    ("tool, near its ceiling", 1000, {"tool_mono": 5}, Kind.EXCUSED, 1005),
    ("tool, past its ceiling", 1005, {"tool_mono": 5}, Kind.HUNG, 1005),
    (
        "tool, at its ceiling, was excused till now",
        1005,
        {"tool_mono": 5, "excused_mono": 1004},
        Kind.QUIET,
        1034,
    ),
    # A wait that was announced; its grace period is added.
    ("wait", 200, {"wait_until_mono": 300}, Kind.EXCUSED, 230),
    ("wait, just over", 310, {"wait_until_mono": 300}, Kind.EXCUSED, 330),
    ("wait, over", 331, {"wait_until_mono": 300}, Kind.HUNG, 331),
    ("wait, too long", 5000, {"wait_until_mono": 90000}, Kind.HUNG, 5000),
    # A tree that works, files that change.
    ("busy", 500, {"is_busy": True}, Kind.EXCUSED, 530),
    ("busy for too long", 1000, {"is_busy": True}, Kind.HUNG, 1000),
    ("files", 500, {"files_changed": True}, Kind.EXCUSED, 530),
    ("files for too long", 1000, {"files_changed": True}, Kind.HUNG, 1000),
    ("one excuse ended, another holds", 1005, {"tool_mono": 5, "wait_until_mono": 1100}, Kind.EXCUSED, 1035),
    # The grace period begins when the last excuse ends.
    ("was busy a moment ago", 500.001, {"excused_mono": 500}, Kind.QUIET, 530),
    ("was busy a grace period ago", 530, {"excused_mono": 500}, Kind.HUNG, 530),
    ("was excused before it was stale", 115, {"excused_mono": 40}, Kind.QUIET, 120),
    # It retries the model's service: each notice is output, none is progress.
    ("retries for a moment", 29, {"unanswered_mono": 0}, Kind.WORKING, 30),
    ("retries", 30, {"unanswered_mono": 0}, Kind.EXCUSED, 60),
    ("retries, near the ceiling", 890, {"unanswered_mono": 0}, Kind.EXCUSED, 900),
    ("retries, past the ceiling", 900, {"unanswered_mono": 0}, Kind.QUIET, 930),
    ("retries, was excused till now", 900, {"unanswered_mono": 0, "excused_mono": 899}, Kind.QUIET, 930),
    ("retries at a limit", 80, {"unanswered_mono": 0, "is_limited": True}, Kind.EXCUSED, 90),
    ("is silent at a limit", 90, {"unanswered_mono": 0, "is_limited": True}, Kind.QUIET, 120),
    ("is silent at a limit, too long", 120, {"unanswered_mono": 0, "is_limited": True}, Kind.HUNG, 120),
    ("retries for too long", 930, {"unanswered_mono": 0}, Kind.HUNG, 930),
    ("retries, but its tool runs", 930, {"unanswered_mono": 0, "tool_mono": 5}, Kind.EXCUSED, 960),
    (
        "retries after a pause of its own",
        930,
        {"unanswered_mono": 0, "wait_until_mono": 25},
        Kind.HUNG,
        930,
    ),
    (
        "retries at a time that was told",
        930,
        {"unanswered_mono": 0, "wait_until_mono": 2000},
        Kind.EXCUSED,
        960,
    ),
    # The result was printed.
    ("result", 100, {"result_mono": 99}, Kind.WORKING, 109),
    ("lingering", 109, {"result_mono": 99}, Kind.LINGERING, 109),
    ("a result is never a hang", 9999, {"result_mono": 99, "tool_mono": 5}, Kind.LINGERING, 109),
]


@pytest.mark.req("SUP-2", "SUP-3", "SUP-18", "W-A3")
@pytest.mark.parametrize(
    ("now", "facts", "kind", "again"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_the_verdict_follows_from_evidence_and_time(
    now: float, facts: dict[str, Any], kind: Kind, again: float
) -> None:
    verdict = judge(Evidence(progress_mono=0.0, **facts), LIMITS, now)
    assert (verdict.kind, verdict.look_again_mono) == (kind, pytest.approx(again))
    assert verdict.because


@pytest.mark.req("SUP-2", "W-A3")
def test_silence_means_nothing_where_no_threshold_is_set() -> None:
    verdict = judge(Evidence(progress_mono=0.0), Limits(stale_s=None), 10.0**7)
    assert verdict.kind is Kind.WORKING
    assert (
        judge(Evidence(progress_mono=0.0, result_mono=0.0), Limits(stale_s=None), 60.0).kind is Kind.LINGERING
    )


@pytest.mark.req("SUP-12", "SUP-2")
def test_only_differences_of_one_clock_count() -> None:
    """No wall clock: the same evidence a day later, or after a suspend, gives the same verdict."""
    for shift in (0.0, 86400.0, 10.0**8):
        for _, now, facts, kind, again in CASES:
            moved = {key: value + shift if key.endswith("_mono") else value for key, value in facts.items()}
            verdict = judge(Evidence(progress_mono=shift, **moved), LIMITS, now + shift)
            assert verdict.kind is kind
            assert verdict.look_again_mono == pytest.approx(again + shift)


@pytest.mark.req("SUP-3", "SUP-12")
def test_checking_at_the_given_times_reaches_an_end() -> None:
    """Every excuse has a limit: an agent that stays silent is hung in the end, whatever its excuse."""
    facts = {"tool_mono": 1.0, "wait_until_mono": 10.0**9, "is_busy": True, "files_changed": True}
    now, excused, looks = 0.0, None, 0
    while (
        verdict := judge(Evidence(progress_mono=0.0, excused_mono=excused, **facts), LIMITS, now)
    ).kind is not Kind.HUNG:
        excused = now if verdict.kind is Kind.EXCUSED else excused
        assert verdict.look_again_mono > now
        now, looks = verdict.look_again_mono, looks + 1
    assert now == pytest.approx(5000 + 30, abs=31)
    assert looks < 500


@pytest.mark.req("SUP-2")
def test_the_evidence_is_given_in_seconds() -> None:
    evidence = Evidence(
        progress_mono=10.0, tool_mono=12.0, tool_name="Bash", wait_until_mono=50.0, is_busy=True
    )
    facts = judge(evidence, LIMITS, 20.0).to_evidence(evidence, 20.0)
    assert facts["silent_s"] == 10.0
    assert (facts["tool"], facts["tool_open_s"]) == ("Bash", 8.0)
    assert facts["announced_wait_ends_in_s"] == 30.0
    assert (facts["tree_is_busy"], facts["files_changed"]) == (True, False)
