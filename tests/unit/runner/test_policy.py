"""What follows from the end of an attempt is a pure function of how it ended and why it was stopped."""

from __future__ import annotations

import pytest

from holdfast.config.keys import KEYS
from holdfast.model import outcome
from holdfast.model.decision import Decision, Then, severity
from holdfast.model.spec import Limits
from holdfast.model.status import MOVES, Status
from holdfast.model.usage import Usage, budget_reached
from holdfast.runner.plan.policy import (
    LOST_LIMIT,
    after_attempt,
    at_limit,
    available,
    backoff_s,
    condition,
    has_retry_left,
    wait_s,
    was_healthy,
    without_asking,
)

INTENTS = ("stop", "interrupt", "input", "deadline", "output", "budget", "timeout", "hang", "session")
LIMITS = Limits(base_interval_s=30.0, max_interval_s=300.0, max_retries=10)


@pytest.mark.req("SUP-16", "SUP-13", "W-A1", "BUD-9")
@pytest.mark.parametrize(
    ("kind", "then", "status"),
    [
        ("success", Then.COMPLETE, Status.COMPLETING),
        ("tool_failed_but_finished", Then.COMPLETE, Status.COMPLETING),
        ("permission_denied_but_finished", Then.COMPLETE, Status.COMPLETING),
        ("failed", Then.END, Status.FAILED),
        ("usage_error", Then.END, Status.FAILED),
        ("crashed", Then.RETRY, Status.CRASHED),
        ("spawn_failed", Then.RETRY, Status.CRASHED),
        ("lost", Then.RETRY, Status.CRASHED),
        ("an outcome of a later version", Then.RETRY, Status.CRASHED),
        ("rate_limit", Then.WAIT, Status.WAITING),
        ("quota", Then.WAIT, Status.WAITING),
        ("overloaded", Then.WAIT, Status.WAITING),
        ("server_error", Then.RETRY, Status.CRASHED),
        ("network", Then.RETRY, Status.CRASHED),
        ("invalid_request", Then.END, Status.FAILED),
        ("auth", Then.ASK, Status.INTERRUPTED),
        ("max_turns", Then.ASK, Status.INTERRUPTED),
    ],
)
def test_an_attempt_that_ended_by_itself(kind: str, then: Then, status: Status) -> None:
    decision = after_attempt(kind, "why")
    assert (decision.then, decision.status) == (then, status)
    assert decision.reason


@pytest.mark.req("SUP-16", "LCH-18")
@pytest.mark.parametrize("kind", ["success", "failed", "crashed", "stopped", "hung", "lost", "spawn_failed"])
@pytest.mark.parametrize(
    ("intent", "then", "status"),
    [
        ("stop", Then.END, Status.KILLED),
        ("interrupt", Then.ASK, Status.INTERRUPTED),
        ("deadline", Then.END, Status.ABANDONED),
        ("output", Then.ASK, Status.INTERRUPTED),
        ("budget", Then.ASK, Status.INTERRUPTED),
        ("timeout", Then.ASK, Status.INTERRUPTED),
        ("input", Then.ASK, Status.INTERRUPTED),
        ("session", Then.RETRY, Status.CRASHED),
        ("hang", Then.RETRY, Status.HUNG),
    ],
)
def test_our_intent_wins_over_the_output_of_the_dying_process(
    kind: str, intent: str, then: Then, status: Status
) -> None:
    decision = after_attempt(kind, "its own words", intent=intent, intent_reason="our reason")
    assert (decision.then, decision.status, decision.reason) == (then, status, "our reason")


@pytest.mark.req("SUP-18")
def test_a_lingering_process_is_judged_by_its_result() -> None:
    assert after_attempt("success", intent="linger", intent_reason="it lingers").then is Then.COMPLETE
    assert after_attempt("failed", "no", intent="linger", intent_reason="it lingers").then is Then.END


@pytest.mark.req("BUD-7")
def test_what_was_not_the_tasks_fault_burns_no_retry() -> None:
    for kind in (*outcome.BLAMELESS, *outcome.MUST_WAIT):
        assert after_attempt(kind).burns is False
    for kind in outcome.RESUMABLE:
        assert after_attempt(kind).burns is True


@pytest.mark.req("BUD-7")
@pytest.mark.parametrize(
    ("lost_in_a_row", "burns"), [(1, False), (LOST_LIMIT, False), (LOST_LIMIT + 1, True)]
)
def test_unseen_ends_burn_retries_when_there_are_many_in_a_row(lost_in_a_row: int, *, burns: bool) -> None:
    decision = after_attempt("lost", "why", lost_in_a_row=lost_in_a_row)
    assert (decision.then, decision.burns) == (Then.RETRY, burns)
    assert ("attempts in a row" in decision.reason) is burns


def test_a_lost_session_is_not_resumed() -> None:
    for kind in outcome.NEEDS_FRESH_SESSION:
        assert after_attempt(kind).fresh_session is True
    assert after_attempt("crashed").fresh_session is False


@pytest.mark.req("PKT-13")
def test_every_decision_is_a_move_of_the_table() -> None:
    kinds = outcome.SUCCESS | outcome.MUST_WAIT | outcome.NEEDS_PERSON | outcome.FINAL | outcome.RESUMABLE
    for kind in kinds | outcome.BLAMELESS | outcome.NEEDS_FRESH_SESSION:
        for intent in (None, "linger", "limit", *INTENTS):
            assert after_attempt(kind, intent=intent).status in MOVES[Status.RUNNING]


@pytest.mark.req("SUP-6", "BUD-7")
@pytest.mark.parametrize(
    ("consecutive", "at_once", "delay_s"),
    [
        (0, True, 0.0),
        (1, True, 0.0),
        (2, True, 30.0),
        (3, True, 60.0),
        (4, True, 120.0),
        (5, True, 240.0),
        (6, True, 300.0),
        (10_000, True, 300.0),
        # The program could not even be executed: trying at once cannot help.
        (1, False, 30.0),
        (2, False, 60.0),
        (5, False, 300.0),
    ],
)
def test_backoff_doubles_up_to_the_maximum(consecutive: int, at_once: bool, delay_s: float) -> None:
    assert backoff_s(consecutive, LIMITS, None, at_once=at_once) == delay_s


@pytest.mark.req("SUP-6")
def test_backoff_ends_with_the_deadline() -> None:
    assert backoff_s(5, LIMITS, 100.0) == 100.0
    assert backoff_s(5, LIMITS, -1.0) == 0.0
    assert backoff_s(2, LIMITS, 100.0) == 30.0


@pytest.mark.req("BUD-7")
def test_the_cap_is_on_the_total() -> None:
    assert has_retry_left(9, LIMITS)
    assert not has_retry_left(10, LIMITS)
    assert not has_retry_left(0, Limits(max_retries=0))


@pytest.mark.req("BUD-7", "SUP-6")
def test_health_is_work_for_a_whole_interval() -> None:
    assert was_healthy(30.0, LIMITS, made_progress=True)
    assert not was_healthy(29.9, LIMITS, made_progress=True)
    assert not was_healthy(3600.0, LIMITS, made_progress=False)


@pytest.mark.parametrize(
    ("usage", "turns", "limits", "words"),
    [
        (Usage(cost_usd=0.6), 0, Limits(budget_usd=0.5), "$0.60 of $0.50"),
        (Usage(cost_usd=0.4), 0, Limits(budget_usd=0.5), None),
        (Usage(), 0, Limits(budget_usd=0.5), None),
        (Usage(input_tokens=900, output_tokens=100), 0, Limits(budget_tokens=1000), "1000 of 1000 tokens"),
        (Usage(input_tokens=900), 0, Limits(budget_tokens=1000), None),
        (Usage(), 3, Limits(max_turns=2), "more than 2 turns"),
        (Usage(), 2, Limits(max_turns=2), None),
    ],
)
def test_a_budget_is_reached_by_what_is_known(
    usage: Usage, turns: int, limits: Limits, words: str | None
) -> None:
    reached = budget_reached(usage, turns, limits)
    assert (reached is None) if words is None else (reached is not None and words in reached)


# ── stages side by side ──


@pytest.mark.req("SUP-17")
def test_of_several_decisions_the_gravest_is_followed() -> None:
    kinds = ("success", "crashed", "rate_limit", "auth", "failed")
    decisions = [after_attempt(kind) for kind in kinds]
    assert [decision.then for decision in sorted(decisions, key=severity)] == [
        Then.COMPLETE,
        Then.RETRY,
        Then.WAIT,
        Then.ASK,
        Then.END,
    ]
    # Only a gate's failure is repaired.
    assert set(Then) == {decision.then for decision in decisions} | {Then.REPAIR}


# ── limits ──


@pytest.mark.req("BUD-9")
@pytest.mark.parametrize(
    ("intent", "on_limit", "then", "status"),
    [
        ("budget", "ask", Then.ASK, Status.INTERRUPTED),
        ("timeout", "ask", Then.ASK, Status.INTERRUPTED),
        ("budget", "end", Then.END, Status.ABANDONED),
        # It passes through `timeout` on its way to the end.
        ("timeout", "end", Then.END, Status.TIMEOUT),
        ("interrupt", "end", Then.ASK, Status.INTERRUPTED),
        ("output", "end", Then.ASK, Status.INTERRUPTED),
        ("hang", "end", Then.RETRY, Status.HUNG),
    ],
)
def test_a_task_that_ends_at_its_limits_does_not_ask(
    intent: str, on_limit: str, then: Then, status: Status
) -> None:
    decision = at_limit(
        after_attempt("stopped", intent=intent, intent_reason="why"), intent, Limits(on_limit=on_limit)
    )
    assert (decision.then, decision.status, decision.reason) == (then, status, "why")
    assert decision.status in MOVES[Status.RUNNING]


def test_a_limit_changes_nothing_about_what_ended_by_itself() -> None:
    decision = Decision(then=Then.RETRY, status=Status.CRASHED, reason="crashed")
    assert at_limit(decision, None, Limits(on_limit="end")) is decision


# ── who takes over ──

NOW, SOON, LATE = 1_800_000_000.0, "2027-01-15T08:00:00.000Z", "2027-01-15T09:00:00.000Z"


@pytest.mark.parametrize(
    ("out", "found"),
    [
        ({}, "a"),
        ({"a": LATE}, "b"),
        ({"a": None}, "b"),
        ({"a": LATE, "b": None}, "c"),
        ({"a": LATE, "b": None, "c": LATE}, None),
        # Its limit is lifted: the first of the order comes back.
        ({"a": SOON, "b": None}, "a"),
    ],
)
def test_the_first_agent_that_is_not_out(out: dict[str, str | None], found: str | None) -> None:
    assert available(("a", "b", "c"), out, NOW) == found


def test_an_empty_list_has_no_available_agent() -> None:
    assert available((), {}, NOW) is None


def test_a_wait_lasts_until_the_limit_is_lifted_or_grows() -> None:
    assert wait_s(1, 100.0, jitter=0.0) == 101.0
    assert wait_s(1, 100.0, jitter=1.0) == 105.0
    assert wait_s(1, -5.0, jitter=0.0) == 60.0, "a time that has passed is no announcement"
    assert [wait_s(waits, None, jitter=0.0) for waits in (0, 1, 2, 3, 7, 1000)] == [
        60,
        60,
        120,
        240,
        3600,
        3600,
    ]
    assert wait_s(1, None, jitter=1.0) == pytest.approx(66.0)


@pytest.mark.parametrize("intent", ["hang", "limit"])
def test_one_that_was_stopped_at_a_limit_waits_and_burns_nothing(intent: str) -> None:
    decision = after_attempt("rate_limit", "five hours", intent=intent, intent_reason="it is silent")
    assert (decision.then, decision.burns) == (Then.WAIT, False)
    assert "five hours" in decision.reason


@pytest.mark.req("INT-5")
@pytest.mark.parametrize(
    ("kind", "intent", "name", "then", "status"),
    [
        ("stopped", "budget", "budget", Then.END, Status.ABANDONED),
        ("max_turns", None, "budget", Then.END, Status.ABANDONED),
        ("timeout", "timeout", "timeout", Then.END, Status.TIMEOUT),
        ("stopped", "output", "output", Then.END, Status.ABANDONED),
        ("stopped", "input", "input", Then.RETRY, Status.HUNG),
        ("auth", None, "error", Then.END, Status.FAILED),
        ("not_trusted", None, "error", Then.END, Status.FAILED),
    ],
)
def test_each_condition_can_be_switched_off(
    kind: str, intent: str | None, name: str, then: Then, status: Status
) -> None:
    decision = after_attempt(kind, intent=intent, intent_reason="why")
    assert decision.then is Then.ASK
    why = condition(intent, kind)
    assert why == name
    assert why in KEYS["interrupt_off"].choices
    others = [each for each in KEYS["interrupt_off"].choices if each != name]
    assert without_asking(decision, why, others) is decision
    switched = without_asking(decision, why, [name])
    assert (switched.then, switched.status) == (then, status)
    assert f"interrupt_off has {name}" in switched.reason
    assert switched.status in MOVES[Status.RUNNING]


@pytest.mark.req("INT-5")
def test_a_person_who_interrupts_cannot_be_switched_off() -> None:
    decision = after_attempt("stopped", intent="interrupt", intent_reason="wait")
    assert (
        without_asking(decision, condition("interrupt", "stopped"), KEYS["interrupt_off"].choices) is decision
    )
