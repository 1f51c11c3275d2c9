"""Best of N: who is eliminated, when a judge is called, and which candidate is adopted."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model import contest
from holdfast.model import events as ev
from holdfast.model.spec import Limits, PipelineSpec, StageSpec
from holdfast.runner.plan.step import Journal, MarkStage, OpenChore, SaveContext, Step
from tests.support.planning import NOW, cleaned, next_step
from tests.support.story import Story

PIPELINE = PipelineSpec(intent="safe_impl", group="impl", profile="safe_impl", repair_times=2)
CANDIDATES = tuple(
    StageSpec(
        name=f"a_impl-{n}", agent="a", role="impl", writes=True, group="g", contest="a_impl", candidate=n
    )
    for n in (1, 2, 3)
)
JUDGE = StageSpec(name="a_judge", agent="a", role="judge", contest="a_impl")
VERIFY = StageSpec(name="a_verify", agent="a", role="verify")
STAGES = (*CANDIDATES, JUDGE, VERIFY)
_CLASSES = {"success": "contract_violation", "auth": "auth"}


def judged(*refused: int, outcomes: tuple[str, ...] = ("success", "success", "success")) -> Story:
    """Three candidates ended, and the gates of the successful ones have judged; some refused."""
    story = Story(STAGES, limits=Limits(deadline_s=None), pipeline=PIPELINE, workspace="worktree")
    for n in (1, 2, 3):
        story.open(n, stage=f"a_impl-{n}", session_id=f"S{n}").start(n)
    story.move("running")
    for n, outcome in enumerate(outcomes, start=1):
        story.end(n, outcome)
    story.move("completing", reason="success")
    for n, outcome in enumerate(outcomes, start=1):
        name = f"a_impl-{n}"
        if outcome != "success":
            story.tell(_triaged(name, n, outcome))
        elif n in refused:
            said = {"failed": "acceptance", "reasons": ("`make` failed",)}
            story.tell(ev.GateJudged(stage=name, attempt=n, passed=False, **said), _triaged(name, n))
        else:
            story.tell(
                ev.GateJudged(stage=name, attempt=n, passed=True, tree=f"t{n}"),
                ev.StageDone(stage=name, attempt=n),
            )
    return story


def _triaged(stage: str, number: int, outcome: str = "success") -> ev.FailureTriaged:
    return ev.FailureTriaged(
        stage=stage,
        attempt=number,
        outcome=outcome,
        failure_class=_CLASSES.get(outcome, "transient"),
        signature=stage,
    )


def plan(story: Story, **observed: Any) -> Step:
    numbers = range(1, story.task.last_number + 1)
    return next_step(story, cleaned(*numbers), now=NOW, **observed)


def eliminate(story: Story, *numbers: int) -> Story:
    return story.tell(*(ev.CandidateEliminated(stage=f"a_impl-{n}", candidate=n, attempt=n) for n in numbers))


def called(story: Story, decision: str, *, passed: bool = True) -> Story:
    """The judge was called, and said this."""
    story.move("spawning").open(9, stage="a_judge").start(9).move("running").end(9, "success")
    story.move("completing", reason="success")
    return story.tell(ev.GateJudged(stage="a_judge", attempt=9, passed=passed, decision=decision))


def test_what_a_gate_refused_is_eliminated_once_another_one_has_passed() -> None:
    step = plan(judged(2))
    assert isinstance(step, Journal)
    (event,) = step.events
    assert event == ev.CandidateEliminated(
        stage="a_impl-2", candidate=2, attempt=2, reasons=("`make` failed",)
    )


def test_if_none_passed_the_work_of_all_goes_back() -> None:
    step = plan(judged(1, 2, 3))
    assert isinstance(step, Journal)
    repaired = [event.stage for event in step.events if isinstance(event, ev.RepairPlanned)]
    assert repaired == ["a_impl-1", "a_impl-2", "a_impl-3"]


def test_one_that_must_wait_is_eliminated() -> None:
    step = plan(judged(outcomes=("success", "rate_limit", "success")))
    assert isinstance(step, Journal)
    assert [type(event) for event in step.events] == [ev.CandidateEliminated]


def test_one_that_crashed_is_resumed() -> None:
    step = plan(judged(outcomes=("success", "crashed", "success")))
    assert isinstance(step, Journal)
    assert not any(isinstance(event, ev.CandidateEliminated) for event in step.events)
    assert any(isinstance(event, ev.RetryPlanned) for event in step.events)


def test_one_that_asks_for_a_person_is_not_eliminated() -> None:
    story = judged(outcomes=("success", "auth", "success"))
    assert isinstance(plan(story), Journal)
    assert not isinstance(plan(story, interrupt_file="help"), Journal)


def test_several_survivors_need_a_judge_and_one_does_not() -> None:
    step = plan(eliminate(judged(2), 2))
    assert isinstance(step, Journal)
    assert [event.new for event in step.events if isinstance(event, ev.TaskMoved)] == ["spawning"]
    assert plan(eliminate(judged(1, 2), 1, 2)) == OpenChore(stage="a_judge", kind="adopt")


def test_the_choice_is_adopted_before_the_judge_is_done() -> None:
    story = called(eliminate(judged(2), 2), "3")
    assert plan(story) == OpenChore(stage="a_judge", kind="adopt")
    story.tell(ev.CandidateChosen(stage="a_judge", chosen="a_impl-3", candidate=3, by="judge", tree="t3"))
    assert plan(story) == MarkStage(number=9)


@pytest.mark.parametrize("decision", ["2", "4", "", "../3", "03"])
def test_a_number_that_is_no_survivor_is_never_adopted(decision: str) -> None:
    story = called(eliminate(judged(2), 2), decision)
    assert contest.choice(story.task) is None
    step = plan(story)
    assert isinstance(step, SaveContext)
    assert "did not pass its gate" in step.interrupt.question


def test_nothing_is_chosen_while_a_candidate_is_not_over() -> None:
    assert contest.choice(judged(1, 2).task) is None


def test_a_repair_after_the_choice_goes_to_the_chosen_one_alone() -> None:
    story = called(eliminate(judged(2), 2), "3")
    story.tell(
        ev.CandidateChosen(stage="a_judge", chosen="a_impl-3", candidate=3, by="judge", tree="t3"),
        ev.StageDone(stage="a_judge", attempt=9),
        ev.RepairPlanned(stage="a_impl-3", after=3, failed_stage="a_verify", number=1),
    )
    assert [stage.name for stage in story.task.due] == ["a_impl-3"]
    assert set(story.task.stages_done) == {"a_impl-1", "a_judge"}
    assert story.task.stage_state("a_impl-3").needs_fresh_session


def test_a_retry_from_one_candidate_begins_with_all_of_them() -> None:
    story = called(eliminate(judged(2), 2), "3")
    story.tell(
        ev.CandidateChosen(stage="a_judge", chosen="a_impl-3", candidate=3, by="judge", tree="t3"),
        ev.StageDone(stage="a_judge", attempt=9),
    )
    story.move("failed").tell(ev.RunOpened(run=2, request="R", from_stage="a_impl-3"))
    assert [stage.candidate for stage in story.task.due] == [1, 2, 3]
    assert story.task.chosen is None
