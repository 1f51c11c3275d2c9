"""Words of several verbs."""

from __future__ import annotations

import pytest

from holdfast import clock
from holdfast.views.text import describe


@pytest.mark.parametrize(
    ("status", "wake_at", "said"),
    [
        ("waiting", "2026-01-31T12:00:30.000Z", "backoff after a crash; goes on in 30s"),
        ("waiting", "2026-01-31T11:59:00.000Z", "backoff after a crash; goes on in 0s"),
        ("waiting", None, "backoff after a crash"),
        ("spawning", "2026-01-31T12:00:30.000Z", "backoff after a crash"),
    ],
)
def test_a_reason_says_when_it_goes_on(status: str, wake_at: str | None, said: str) -> None:
    manifest = {"status": status, "status_reason": "backoff after a crash", "wake_at": wake_at}
    assert describe.reason(manifest, clock.parse_iso("2026-01-31T12:00:00.000Z")) == said


def test_a_report_in_one_line_has_no_signs_of_headings() -> None:
    text = "## Findings None. ### Test gaps issue #12 and C# #"
    assert describe.without_headings(text) == "Findings None. Test gaps issue #12 and C#"
    assert describe.without_headings("as  it is") == "as  it is"


NOW = clock.parse_iso("2026-01-31T12:00:00.000Z")


@pytest.mark.parametrize(
    ("waited_s", "asked_s", "said"),
    [
        (0.0, 0.0, "took 0.0s"),
        (151.0, 0.0, "took 0.0s, waited 2m31s"),
        (0.0, 59.0, "took 0.0s, waited 59.0s for a person"),
        (151.0, 59.0, "took 0.0s, waited 2m31s, plus 59.0s for a person"),
    ],
)
def test_waits_for_a_person_are_not_part_of_other_waits(waited_s: float, asked_s: float, said: str) -> None:
    at = {"started_at": "2026-01-31T12:00:00.000Z", "run_started_at": "2026-01-31T12:00:00.000Z"}
    manifest = {"status": "running", "waited_s": waited_s, "asked_s": asked_s, **at}
    assert describe.took(manifest, NOW) == said


CONCERN = {"stage": "a_review", "text": "it is wrong"}


@pytest.mark.parametrize(
    ("row", "group"),
    [
        ({"status": "failed"}, "needs you"),
        ({"status": "abandoned"}, "needs you"),
        ({"status": "killed"}, "ended"),
        ({"status": "completed"}, "ended"),
        ({"status": "completed", "concerns": [CONCERN]}, "needs you"),
        ({"status": "completed", "denied": [{"stage": "a_impl"}]}, "needs you"),
        ({"status": "completed", "over_budget": "tokens"}, "needs you"),
        ({"status": "completed", "concerns": [CONCERN], "applied": {"how": "merge"}}, "ended"),
        ({"status": "failed", "finished_at": "2026-01-30T12:00:01.000Z"}, "needs you"),
        ({"status": "failed", "finished_at": "2026-01-30T11:59:59.000Z"}, "ended"),
        ({"status": "interrupted"}, "needs you"),
        ({"status": "running"}, "working"),
    ],
)
def test_what_ended_in_the_last_day_and_was_not_dealt_with_needs_you(
    row: dict[str, object], group: str
) -> None:
    row = {"finished_at": "2026-01-31T11:00:00.000Z", **row}
    assert describe.group(row, NOW) == group
    if row["status"] == "failed":
        assert describe.group(row, NOW, is_archived=True) == "ended"
