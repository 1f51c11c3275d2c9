"""The fold of a task with stages: waves, chores, gates, calls that cost something, agents that take over."""

from __future__ import annotations

import pytest

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.spec import Limits, PipelineSpec, StageSpec
from holdfast.model.task import Task
from tests.support.story import BEGIN, Story

PIPELINE = PipelineSpec(intent="feature", group="impl", profile="standard", paid_call_budget=3)


def stage(name: str, group: str | None = None, agent: str = "a") -> StageSpec:
    return StageSpec(name=name, agent=agent, group=group)


def side_by_side() -> Story:
    """Two stages of one group between two others; the first is done."""
    stages = (stage("brief"), stage("left", "lenses"), stage("right", "lenses"), stage("merge"))
    return Story(stages, pipeline=PIPELINE).tell(ev.StageDone(stage="brief", attempt=1))


def numbers(task: Task) -> list[int]:
    return [attempt.number for attempt in task.current]


# ── waves ──


@pytest.mark.req("SUP-17")
def test_neighbours_of_a_group_are_due_together_and_the_next_waits_for_all() -> None:
    story = side_by_side()
    assert [found.name for found in story.task.due] == ["left", "right"]
    story.tell(ev.StageDone(stage="left", attempt=2))
    assert [found.name for found in story.task.due] == ["right"]
    story.tell(ev.StageDone(stage="right", attempt=3))
    assert [found.name for found in story.task.due] == ["merge"]
    story.tell(ev.StageDone(stage="merge", attempt=4))
    assert (story.task.due, story.task.stage) == ((), None)


def test_the_same_group_behind_another_stage_is_another_wave() -> None:
    story = Story((stage("one", "g"), stage("between"), stage("two", "g")))
    assert [found.name for found in story.task.due] == ["one"]


def test_two_attempts_side_by_side() -> None:
    story = side_by_side().open(2, stage="left", session_id="L").open(3, stage="right", session_id="R")
    story.start(2).start(3).move("running")
    task = story.task
    assert numbers(task) == [2, 3]
    assert [attempt.number for attempt in task.open_executions] == [2, 3]
    story.tell(
        ev.AgentText(attempt=2, offset=1, text="from the left"),
        ev.AgentText(attempt=3, offset=1, text="from the right"),
        ev.AgentUsage(attempt=2, offset=2, input_tokens=5, output_tokens=1),
        ev.AgentUsage(attempt=3, offset=2, input_tokens=7, output_tokens=1),
    )
    assert [attempt.last_text for attempt in task.current] == ["from the left", "from the right"]
    assert (task.total_usage.input_tokens, task.spending.usage.input_tokens) == (12, None)
    assert (task.stage_states["left"].session_id, task.stage_states["right"].session_id) == ("L", "R")
    story.end(2, "success")
    assert [attempt.number for attempt in task.open_executions] == [3]
    assert (task.spending.usage.input_tokens, task.total_usage.input_tokens) == (5, 12)
    story.end(3, "crashed")
    assert task.open_executions == []
    assert task.has_undecided
    assert task.active_s == 11.0  # they lived at the same time, one of them a second longer


def test_of_a_wave_the_good_one_goes_to_its_gate_and_the_other_is_tried_again() -> None:
    story = side_by_side().open(2, stage="left").open(3, stage="right").start(2).start(3).move("running")
    story.end(2, "success").end(3, "crashed").move("completing")
    task = story.task
    assert not task.has_undecided
    assert (task.stage_states["left"].awaits_gate, task.stage_states["right"].awaits_gate) == (True, False)
    story.tell(ev.GateJudged(stage="left", attempt=2, passed=True), ev.StageDone(stage="left", attempt=2))
    story.move("spawning").open(5, stage="right")
    assert numbers(task) == [5]
    assert task.stage_states["left"].attempt is not None
    assert task.stage_states["left"].attempt.number == 2


def test_a_void_of_one_leaves_the_other_alone() -> None:
    story = side_by_side().open(2, stage="left").open(3, stage="right").start(2)
    story.tell(ev.AttemptVoid(attempt=3, reason="no process to be had"))
    task = story.task
    assert numbers(task) == [2]
    assert task.stage_states["right"].attempt is None
    assert (task.last_number, task.voids_in_a_row) == (3, 1)
    story.open(4, stage="right")
    assert numbers(task) == [2, 4]


def test_an_intent_for_each() -> None:
    story = side_by_side().open(2, stage="left").open(3, stage="right").start(2).start(3).move("running")
    story.tell(ev.StopIntended(attempt=3, intent="timeout", reason="r"))
    assert [attempt.intent_name for attempt in story.task.current] == [None, "timeout"]


# ── chores ──

PREPARED = ev.WorkspacePrepared(stage="a_run", path="/w", kind="worktree", tree="t", base_tree="t")


def test_a_chore_takes_a_number_and_is_no_attempt_of_an_agent() -> None:
    story = Story(pipeline=PIPELINE).open(1, agent="command", kind="prepare", session_id=None).start(1)
    task = story.task
    assert (task.last_number, task.attempt_count, task.paid_calls) == (1, 0, 0)
    assert (task.attempt, task.current, task.stage_state("a_run").attempt) == (None, [], None)
    assert [attempt.number for attempt in task.open_executions] == [1]
    assert task.find(1) is task.chore
    # Output of a chore is not output of an agent.
    story.tell(
        ev.AgentUsage(attempt=1, offset=1, input_tokens=5), ev.AgentText(attempt=1, offset=2, text="?")
    )
    story.end(1, "success", lived_s=3.0)
    assert (task.total_usage.input_tokens, task.messages, task.limit_waits) == (None, 0, 0)
    assert task.active_s == 3.0
    assert task.chore is not None
    assert not task.chore.is_open
    assert not task.has_undecided
    story.tell(PREPARED)
    assert task.chore is None
    assert task.stage_states["a_run"].workspace == PREPARED


def test_failed_chores_are_counted_until_one_succeeds() -> None:
    story = Story(pipeline=PIPELINE)
    failed = ev.ChoreFailed(stage="a_run", attempt=1, kind="prepare", reason="killed")
    for number in (1, 2):
        story.open(number, agent="command", kind="prepare", session_id=None).start(number).end(
            number, "crashed"
        )
        story.tell(failed.evolve(attempt=number))
        assert story.task.chore is None
    stage_state = story.task.stage_state("a_run")
    assert stage_state.failed_chores_in_a_row == 2
    story.tell(failed.evolve(attempt=3, counts=False))
    assert stage_state.failed_chores_in_a_row == 2
    story.tell(PREPARED)
    assert stage_state.failed_chores_in_a_row == 0


def test_a_chore_that_never_started_is_void_like_an_attempt() -> None:
    story = Story(pipeline=PIPELINE).open(1, agent="command", kind="gate", session_id=None)
    story.tell(ev.AttemptVoid(attempt=1, reason="r"))
    assert (story.task.chore, story.task.voids_in_a_row, story.task.paid_calls) == (None, 1, 0)


def test_the_gate_speaks_about_the_agents_attempt() -> None:
    story = Story(pipeline=PIPELINE).attempt(1).end(1, "success").move("completing")
    stage_state = story.task.stage_states["a_run"]
    assert stage_state.awaits_gate
    story.open(2, agent="command", kind="gate", session_id=None).start(2).end(2, "success")
    assert numbers(story.task) == [1]
    story.tell(ev.GateJudged(stage="a_run", attempt=1, passed=False, failed="scope", reasons=("r",)))
    assert (story.task.chore, stage_state.awaits_gate) == (None, False)
    assert stage_state.gate_result is not None
    assert stage_state.gate_result.failed == "scope"


# ── what costs something ──


@pytest.mark.req("BUD-4")
def test_a_call_is_counted_when_it_is_opened_and_given_back_when_it_came_to_nothing() -> None:
    story = Story(pipeline=PIPELINE).open(1)
    assert story.task.paid_calls == 1
    story.tell(ev.AttemptVoid(attempt=1, reason="r"))
    assert story.task.paid_calls == 0
    story.attempt(2).end(2, "crashed")
    assert story.task.paid_calls == 1
    # A successor reads the same void again: it belongs to no attempt.
    story.tell(ev.AttemptVoid(attempt=1, reason="r"))
    assert story.task.paid_calls == 1


def test_a_plain_command_costs_nothing() -> None:
    story = Story().open(1, agent="command", session_id=None)
    assert story.task.paid_calls == 0
    story.tell(ev.AttemptVoid(attempt=1, reason="r"))
    assert story.task.paid_calls == 0


def spent_calls() -> Story:
    story = Story(pipeline=PIPELINE)
    for number in (1, 2, 3):
        story.attempt(number).end(number, "crashed").move("crashed").move("spawning")
    return story.move("interrupted")


def test_a_resume_at_a_budget_grants_it_once_more() -> None:
    story = spent_calls()
    assert (story.task.paid_limit, story.task.has_reached_any_budget) == (3, True)
    story.move("spawning")
    assert (story.task.grants, story.task.paid_limit, story.task.has_reached_any_budget) == (1, 6, False)
    # Interrupted for another reason, with calls left: nothing is granted.
    story.move("interrupted").move("spawning")
    assert story.task.grants == 1


def test_a_resume_through_the_queue_grants_too() -> None:
    assert spent_calls().move("queued").task.grants == 1


def test_an_end_of_a_wait_or_a_stop_grants_nothing() -> None:
    assert spent_calls().move("killed").task.grants == 0
    story = Story(pipeline=PIPELINE)
    for number in (1, 2, 3):
        story.attempt(number).end(number, "rate_limit").move("waiting").move("spawning")
    assert story.task.has_reached_any_budget
    assert story.task.grants == 0


def test_a_budget_that_was_passed_is_there_once_more_however_far() -> None:
    story = Story(limits=Limits(budget_usd=2.0, budget_tokens=100)).attempt(1)
    story.tell(ev.AgentUsage(attempt=1, offset=1, input_tokens=10, cost_usd=5.0, cumulative=True))
    story.end(1, "success")
    assert story.task.budget_reached == "its budget is used up: $5.00 of $2.00"
    story.move("interrupted").move("spawning")
    assert story.task.budget_reached is None
    assert story.task.total_usage.cost_usd == 5.0
    assert story.task.paid_limit is None


@pytest.mark.req("BUD-4")
def test_stages_side_by_side_need_a_call_each() -> None:
    pair = [StageSpec(name=name, agent="scripted", group="both") for name in ("a", "b")]
    pipeline = PipelineSpec(intent="x", group="x", profile="x", paid_call_budget=1)
    story = Story(stages=tuple(pair), pipeline=pipeline)
    assert story.task.has_no_call_left
    story.move("interrupted").move("spawning")
    assert (story.task.grants, story.task.has_no_call_left) == (1, False)


@pytest.mark.req("BUD-4")
def test_another_run_counts_on() -> None:
    story = spent_calls().move("spawning").tell(triaged(3))
    calls, limit = story.task.paid_calls, story.task.paid_limit
    story.move("killed").tell(ev.RunOpened(run=2, request="r"))
    task = story.task
    assert (task.paid_calls, task.paid_limit) == (calls, limit)
    assert [seen["count"] for seen in task.signatures.values()] == [1]
    assert task.last_failure is None


@pytest.mark.req("BUD-4")
def test_another_run_of_a_task_without_calls_grants_as_many_again() -> None:
    story = spent_calls()
    calls, limit = story.task.paid_calls, story.task.paid_limit
    assert limit is not None
    story.move("killed").tell(ev.RunOpened(run=2, request="r"))
    assert (story.task.paid_calls, story.task.paid_limit) == (calls, limit + 3)


def test_another_run_forgets_the_counts_only_on_request() -> None:
    story = spent_calls().move("spawning").tell(triaged(3))
    story.move("killed").tell(ev.RunOpened(run=2, request="r", resets=True))
    task = story.task
    assert (task.paid_calls, task.grants, task.paid_limit) == (0, 0, 3)
    assert (task.signatures, task.last_failure) == ({}, None)


# ── failures ──


def triaged(attempt: int, signature: str = "s" * 16) -> ev.FailureTriaged:
    return ev.FailureTriaged(
        stage="a_run", attempt=attempt, outcome="crashed", failure_class="transient", signature=signature
    )


@pytest.mark.req("BUD-3")
def test_failures_are_counted_by_their_signature() -> None:
    story = Story(pipeline=PIPELINE).attempt(1).end(1, "crashed").tell(triaged(1))
    first = clock.iso(story.now)
    assert story.task.current[0].triage == triaged(1)
    story.tell(triaged(2, "other" * 4)).tell(triaged(3))
    seen = story.task.signatures["s" * 16]
    assert seen == {"count": 2, "class": "transient", "first_seen": first, "last_seen": clock.iso(story.now)}
    assert story.task.signatures["other" * 4]["count"] == 1
    assert story.task.last_failure == triaged(3)


@pytest.mark.parametrize(("outcome", "overflows"), [("crashed", 1), ("context_too_long", 0)])
def test_a_prompt_that_was_too_large_by_its_words_alone_is_remembered(outcome: str, overflows: int) -> None:
    large = triaged(1).evolve(failure_class="prompt_too_large", outcome=outcome)
    # The other is counted at the attempt's end already.
    assert Story(pipeline=PIPELINE).tell(large).task.stage_state("a_run").overflows == overflows


# ── who plays a stage ──


def test_an_agent_at_its_limit_is_out_until_that_is_lifted() -> None:
    until = "2027-01-15T09:00:00.000Z"
    story = Story(failover=("b",)).attempt(1).end(1, "rate_limit", resets_at=until)
    assert story.task.stage_states["a_run"].unavailable == {"a": until}


def test_without_a_time_it_is_out_for_longer_each_time() -> None:
    story, heard = Story(failover=("b",)), "2027-01-15T08:00:00.000Z"
    for number, minutes in ((1, 1), (2, 2), (3, 4)):
        story.attempt(number).end(number, "overloaded", noticed_at=heard)
        until = clock.iso(clock.parse_iso(heard) + 60.0 * minutes)
        assert story.task.stage_states["a_run"].unavailable == {"a": until}
        story.move("waiting").move("spawning")


@pytest.mark.parametrize("outcome", ["auth", "no_auth", "spawn_failed", "model_not_found"])
def test_one_that_only_a_person_can_help_is_out_for_good(outcome: str) -> None:
    story = Story(failover=("b",)).attempt(1).end(1, outcome)
    assert story.task.stage_states["a_run"].unavailable == {"a": None}


@pytest.mark.parametrize("outcome", ["success", "crashed"])
def test_one_that_works_again_is_in_again(outcome: str) -> None:
    story = Story(failover=("b",)).attempt(1).end(1, "quota").move("waiting").move("spawning")
    story.attempt(2).end(2, outcome)
    assert story.task.stage_states["a_run"].unavailable == {}


def test_an_agent_that_takes_over_starts_its_own_session() -> None:
    story = Story(failover=("b",)).attempt(1, session="S").end(1, "quota")
    story.tell(ev.AgentSwitched(stage="a_run", old="a", new="b", reason="quota")).move("waiting").move(
        "spawning"
    )
    stage_state = story.task.stage_states["a_run"]
    assert (stage_state.agent, stage_state.session_id) == ("b", None)
    story.open(2, agent="b", mode="briefing", session_id=None)
    assert (stage_state.agent, stage_state.session_id) == ("b", None)
    assert story.task.total_retries == 0


def test_a_new_session_is_not_taken_for_the_old_one() -> None:
    story = Story().attempt(1, session="S").end(1, "context_too_long").move("crashed")
    story.tell(ev.RetryPlanned(stage="a_run", consecutive=1, total=1, delay_s=0.0, fresh_session=True))
    stage_state = story.move("spawning").task.stage_states["a_run"]
    assert (stage_state.needs_fresh_session, stage_state.overflows) == (True, 1)
    # A program that chooses its session id is killed before it prints the id.
    story.attempt(2, mode="briefing", session=None)
    assert (stage_state.needs_fresh_session, stage_state.session_id) == (False, None)
    story.end(2, "crashed").move("crashed").move("spawning")
    assert stage_state.session_id is None


# ── people ──


@pytest.mark.req("INT-2")
def test_an_approval_is_awaited_for_a_stage_and_is_kept() -> None:
    story = Story(("a_run", "b_run")).move("interrupted", approval="a_run", marked=True)
    assert story.task.interrupted is not None
    assert (story.task.interrupted.approval, story.task.interrupted.has_file) == ("a_run", True)
    story.tell(ev.ApprovalGiven(stage="a_run", by="ada", request="R")).move("spawning", request="R")
    assert story.task.interrupted is None
    assert (story.task.stage_state("a_run").is_approved, story.task.stage_state("b_run").is_approved) == (
        True,
        False,
    )
    assert "R" in story.task.requests


def test_the_iteration_of_the_loop_stays_with_the_task() -> None:
    story = Story(status="queued").move("spawning", iteration=7).attempt(1)
    assert story.task.iteration == 7


def test_a_retry_from_a_stage_begins_it_again() -> None:
    story = Story(("a_run", "b_run"), pipeline=PIPELINE).tell(PREPARED).attempt(1).end(1, "success")
    story.move("completing").tell(ev.GateJudged(stage="a_run", attempt=1, passed=True))
    story.tell(ev.StageDone(stage="a_run", attempt=1)).move("killed")
    story.tell(ev.RunOpened(run=2, request="r", from_stage="a_run"))
    stage_state = story.task.stage_states["a_run"]
    assert (stage_state.workspace, stage_state.gate, stage_state.gate_attempt, stage_state.session_id) == (
        None,
        None,
        0,
        None,
    )
    assert [found.name for found in story.task.due] == ["a_run"]


@pytest.mark.parametrize(("number", "repairs"), [(0, 0), (1, 1)])
def test_what_a_person_sends_back_is_no_repair(number: int, repairs: int) -> None:
    story = Story((stage("impl"), stage("verify")), pipeline=PIPELINE)
    story.open(1, stage="impl").start(1).move("running").end(1, "success").move("completing")
    story.tell(ev.GateJudged(stage="impl", attempt=1, passed=True), ev.StageDone(stage="impl", attempt=1))
    story.tell(ev.RepairPlanned(stage="impl", after=1, failed_stage="verify", number=number))
    story.move("spawning").open(2, stage="impl")
    assert story.task.repairs.get("verify", 0) == len(story.task.repair_log) == repairs
    assert story.task.attempt is not None
    assert story.task.attempt.repair is not None  # its agent is told what was refused


def test_the_end_of_a_limit_that_was_reported_once_is_kept() -> None:
    until = clock.iso(BEGIN + 3600)
    story = Story().attempt(1)
    for resets_at in (None, until, None):
        story.tell(ev.AgentRateLimit(attempt=1, offset=1, resets_at=resets_at, reason="used up"))
    told = story.task.current[0].rate_limit
    assert told is not None
    assert told.resets_at == until


@pytest.mark.parametrize(("turns", "over"), [(2, ""), (3, "3 of 2 turns")])
def test_turns_that_were_exceeded_with_the_result_are_over_budget(turns: int, over: str) -> None:
    story = Story(limits=Limits(max_turns=2)).attempt(1)
    for offset in range(turns):
        story.tell(ev.AgentText(attempt=1, offset=offset + 1, text="x"))
    story.end(1, "success")
    assert story.task.over_budget == over
