"""StageState: the history of one stage, and the gate result of its last attempt."""

from __future__ import annotations

import pytest

from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.execution import Chore, Execution, dirname
from holdfast.model.stage_state import StageState


def opened(number: int, kind: str) -> ev.AttemptOpened:
    return ev.AttemptOpened(
        attempt=number, attempt_id=f"ses_{number}", stage="codex_impl", agent="codex", mode="fresh", kind=kind
    )


def attempt(number: int = 1) -> Attempt:
    return Attempt(opened(number, "agent"))


def judged(number: int, *, passed: bool) -> ev.GateJudged:
    return ev.GateJudged(stage="codex_impl", attempt=number, passed=passed)


@pytest.mark.parametrize(
    ("of", "number", "kind", "name"),
    [
        (Attempt, 1, "agent", "001-codex_impl"),
        (Chore, 12, "prepare", "012-codex_impl.prepare"),
        (Chore, 1234, "gate", "1234-codex_impl.gate"),
    ],
)
def test_the_directory_names_number_stage_and_chore(
    of: type[Execution], number: int, kind: str, name: str
) -> None:
    assert dirname(number, "codex_impl", kind) == name
    assert of(opened(number, kind)).dirname == name


def test_an_attempt_succeeds_by_its_end_alone() -> None:
    one = attempt()
    assert (one.is_open, one.has_succeeded) == (True, False)
    one.ended = ev.AttemptEnded(attempt=1, outcome="tool_failed_but_finished")
    assert (one.is_open, one.has_succeeded) == (False, True)
    one.ended = ev.AttemptEnded(attempt=1, outcome="crashed")
    assert one.has_succeeded is False


def test_the_gate_is_awaited_from_success_until_it_speaks() -> None:
    stage_state = StageState("codex_impl", "codex")
    assert (stage_state.awaits_gate, stage_state.gate_result) == (False, None)
    stage_state.attempt = attempt(3)
    assert stage_state.awaits_gate is False
    stage_state.gate_attempt = 3
    assert stage_state.awaits_gate is True
    stage_state.gate = judged(3, passed=False)
    assert stage_state.awaits_gate is False
    assert stage_state.gate_result == judged(3, passed=False)


def test_a_gate_result_of_an_earlier_attempt_does_not_count() -> None:
    stage_state = StageState("codex_impl", "codex")
    stage_state.gate = judged(1, passed=False)
    stage_state.attempt = attempt(2)
    assert stage_state.gate_result is None
    # But it is still recorded, for the person who has to fix it.
    assert stage_state.gate is not None


@pytest.mark.parametrize("afresh", [True, False])
def test_a_stage_that_begins_again_is_judged_again(afresh: bool) -> None:
    stage_state = StageState("codex_impl", "codex")
    stage_state.attempt = stage_state.ran = attempt(1)
    stage_state.gate_attempt, stage_state.gate = 1, judged(1, passed=True)
    stage_state.workspace = ev.WorkspacePrepared(
        stage="codex_impl", path="/p", kind="in_place", tree="t", base_tree="t"
    )
    stage_state.overflows = stage_state.failed_chores_in_a_row = 2
    stage_state.session_id, stage_state.is_approved = "S", True
    stage_state.begin_again(afresh=afresh, was_done=True)
    assert (stage_state.gate_result, stage_state.awaits_gate, stage_state.workspace) == (None, False, None)
    assert (stage_state.overflows, stage_state.failed_chores_in_a_row) == (0, 0)
    # Afresh: a new session, and a person is asked again.
    kept = (None, None, False) if afresh else ("S", stage_state.attempt, True)
    assert (stage_state.session_id, stage_state.ran, stage_state.is_approved) == kept
