"""A lane: what one stage went through, and what its gate said of the last attempt."""

from __future__ import annotations

import pytest

from holdfast.model import events as ev
from holdfast.model.attempt import Attempt, dirname
from holdfast.model.lane import Lane


def attempt(number: int = 1, **more: object) -> Attempt:
    return Attempt(
        ev.AttemptOpened(
            **{
                "attempt": number,
                "attempt_id": f"ses_{number}",
                "stage": "codex_impl",
                "agent": "codex",
                "mode": "fresh",
                **more,
            }
        )
    )


def judged(number: int, *, passed: bool) -> ev.GateJudged:
    return ev.GateJudged(stage="codex_impl", attempt=number, passed=passed)


@pytest.mark.parametrize(
    ("number", "kind", "name"),
    [
        (1, "agent", "001-codex_impl"),
        (12, "prepare", "012-codex_impl.prepare"),
        (1234, "gate", "1234-codex_impl.gate"),
    ],
)
def test_the_directory_names_number_stage_and_chore(number: int, kind: str, name: str) -> None:
    assert dirname(number, "codex_impl", kind) == name
    assert attempt(number, kind=kind).dirname == name


def test_an_attempt_succeeds_by_its_end_alone() -> None:
    one = attempt()
    assert (one.is_open, one.has_succeeded) == (True, False)
    one.ended = ev.AttemptEnded(attempt=1, outcome="tool_failed_but_finished")
    assert (one.is_open, one.has_succeeded) == (False, True)
    one.ended = ev.AttemptEnded(attempt=1, outcome="crashed")
    assert one.has_succeeded is False


def test_the_gate_is_awaited_from_success_until_it_speaks() -> None:
    lane = Lane("codex_impl", "codex")
    assert (lane.awaits_gate, lane.verdict) == (False, None)
    lane.attempt = attempt(3)
    assert lane.awaits_gate is False
    lane.accepted = 3
    assert lane.awaits_gate is True
    lane.gate = judged(3, passed=False)
    assert lane.awaits_gate is False
    assert lane.verdict == judged(3, passed=False)


def test_a_verdict_on_an_earlier_attempt_is_none_on_this_one() -> None:
    lane = Lane("codex_impl", "codex")
    lane.gate = judged(1, passed=False)
    lane.attempt = attempt(2)
    assert lane.verdict is None
    # But it is still known, for the one who has to put it right.
    assert lane.gate is not None


@pytest.mark.parametrize("afresh", [True, False])
def test_a_stage_that_begins_again_is_judged_anew(afresh: bool) -> None:
    lane = Lane("codex_impl", "codex")
    lane.attempt = lane.ran = attempt(1)
    lane.accepted, lane.gate = 1, judged(1, passed=True)
    lane.workspace = ev.WorkspacePrepared(
        stage="codex_impl", path="/p", kind="in_place", tree="t", base_tree="t"
    )
    lane.overflows = lane.chores_in_vain = 2
    lane.session_id, lane.is_approved = "S", True
    lane.begin_again(afresh=afresh, was_done=True)
    assert (lane.verdict, lane.awaits_gate, lane.workspace) == (None, False, None)
    assert (lane.overflows, lane.chores_in_vain) == (0, 0)
    # Afresh: a new session, and a person is asked again.
    kept = (None, None, False) if afresh else ("S", lane.attempt, True)
    assert (lane.session_id, lane.ran, lane.is_approved) == kept
