"""After attempts ended: triage, clean up, write files, and follow the most severe decision."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.spec import Limits, PipelineSpec, StageSpec
from holdfast.pipeline.triage import Failure
from holdfast.runner.plan.step import (
    CheckLeftovers,
    DismissRecorders,
    Journal,
    Step,
    Sweep,
    TriageFailure,
    Watch,
    WriteFiles,
)
from tests.support.planning import FAILURE, NOW, asking, cleaned, memory, moved, moving, next_step
from tests.support.story import Story

PIPELINE = PipelineSpec(intent="feature", group="impl", profile="standard", retry_budget=1)
LENSES = tuple(StageSpec(name=name, agent="a", group="g") for name in ("one", "two", "three"))
SWEPT: dict[str, Any] = {"killed": [], "spared": [], "proof": "none left"}
NO_DEADLINE = Limits(deadline_s=None)


def intended(number: int, intent: str, *, cause: str = "") -> ev.StopIntended:
    return ev.StopIntended(attempt=number, intent=intent, reason="ours", cause=cause)


def swept(number: int, **more: Any) -> ev.AttemptSwept:
    return ev.AttemptSwept(attempt=number, **{**SWEPT, **more})


def ended(
    outcome: str,
    *,
    intent: str | None = None,
    cause: str = "",
    end: dict[str, Any] | None = None,
    **more: Any,
) -> Story:
    """One attempt that ended and whose leftovers were killed."""
    story = Story(**{"limits": NO_DEADLINE, **more}).attempt(1)
    if intent is not None:
        story.tell(intended(1, intent, cause=cause))
    return story.end(1, outcome, **(end or {})).tell(swept(1))


def parallel(*outcomes: str, intents: dict[int, str] | None = None, **more: Any) -> Story:
    """Parallel attempts 1, 2, … that ended like this."""
    stages = LENSES[: len(outcomes)]
    story = Story(stages, **{"limits": NO_DEADLINE, **more})
    for number, stage in enumerate(stages, 1):
        story.open(number, stage=stage.name, session_id=f"S{number}").start(number)
    story.move("running")
    for number, outcome in enumerate(outcomes, 1):
        if number in (intents or {}):
            story.tell(intended(number, (intents or {})[number]))
        story.end(number, outcome).tell(swept(number))
    return story


def follow(story: Story, **observed: Any) -> Step:
    """What follows once everything is cleaned up."""
    return next_step(story, cleaned(1, 2, 3), **observed)


def retried(reason: str, stage: str = "a_run", *, status: str = "crashed", **planned: Any) -> Journal:
    """The first retry: at once."""
    values = {"stage": stage, "consecutive": 1, "total": 1, "delay_s": 0.0, **planned}
    return Journal(
        events=(
            moved("running", status, reason),
            ev.RetryPlanned(**values),
            moved(status, "spawning", f"resume after {reason}"),
        )
    )


# ── what follows from one attempt ──


@pytest.mark.req("SUP-13", "SUP-16", "BUD-9")
@pytest.mark.parametrize(
    ("story", "step"),
    [
        (ended("success"), moving("running", "completing", "success")),
        (ended("failed", end={"detail": "no"}), moving("running", "failed", "no", **FAILURE)),
        (ended("crashed", end={"detail": "exit 1"}), retried("crashed: exit 1")),
        (ended("crashed"), retried("crashed")),
        (ended("lost"), retried("lost", consecutive=0, total=0, burned=False)),
        (ended("unknown_session"), retried("unknown_session", fresh_session=True)),
        (ended("max_turns", end={"detail": "9"}), asking("max_turns: 9", **FAILURE)),
        (ended("stopped", intent="stop"), moving("running", "killed", "ours")),
        (ended("success", intent="stop"), moving("running", "killed", "ours")),
        (ended("stopped", intent="interrupt"), asking("ours")),
        (ended("stopped", intent="interrupt", cause="down"), asking("ours", cause="down")),
        (ended("stopped", intent="deadline"), moving("running", "abandoned", "ours")),
        (ended("stopped", intent="output"), asking("ours", cause="output")),
        (ended("stopped", intent="budget"), asking("ours", cause="budget")),
        (ended("stopped", intent="timeout"), asking("ours", cause="timeout")),
        (ended("hung", intent="hang"), retried("ours", status="hung")),
        (ended("stopped", intent="session"), retried("ours")),
        (ended("stopped", intent="input"), asking("ours")),
        # It lingered after its result, which counts.
        (ended("success", intent="linger"), moving("running", "completing", "success")),
    ],
)
def test_what_follows_from_an_attempt(story: Story, step: Step) -> None:
    assert follow(story) == step


@pytest.mark.parametrize(
    ("intent", "on_limit", "off", "status", "reason"),
    [
        ("budget", "end", (), "abandoned", "ours"),
        ("timeout", "end", (), "timeout", "ours"),
        ("budget", "ask", ("budget",), "abandoned", "ours (not asking: interrupt_off has budget)"),
        ("timeout", "ask", ("timeout",), "timeout", "ours (not asking: interrupt_off has timeout)"),
        ("output", "ask", ("output",), "abandoned", "ours (not asking: interrupt_off has output)"),
    ],
)
def test_a_limit_ends_a_task_that_must_not_ask(
    intent: str, on_limit: str, off: tuple[str, ...], status: str, reason: str
) -> None:
    limits = Limits(deadline_s=None, on_limit=on_limit)
    story = ended("stopped", intent=intent, limits=limits, interrupt_off=off)
    assert follow(story) == moving("running", status, reason, cause=intent)


def test_an_error_ends_a_task_that_must_not_ask() -> None:
    reason = "auth (not asking: interrupt_off has error)"
    assert follow(ended("auth", interrupt_off=("error",))) == moving("running", "failed", reason, **FAILURE)


def test_an_agent_that_waits_for_input_counts_as_hung_if_the_task_must_not_ask() -> None:
    story = ended("stopped", intent="input", interrupt_off=("input",))
    assert follow(story) == retried("ours (not asking: interrupt_off has input)", status="hung")


def test_an_agent_without_login_says_how_to_log_in() -> None:
    for outcome in ("auth", "no_auth"):
        assert follow(ended(outcome)) == asking(outcome, **FAILURE)
        question = f"{outcome}; log in with 'a login', then 'holdfast resume t'"
        assert follow(ended(outcome), logins={"a": "a login"}) == asking(question, **FAILURE)


def test_a_second_session_that_ran_out_of_room_is_left_to_a_person() -> None:
    story = ended("context_too_long")
    assert follow(story) == retried("context_too_long", fresh_session=True)
    story = story.move("crashed").move("spawning").attempt(2, session="T").end(2, "context_too_long")
    question = "context_too_long; a fresh session ran out of room too: split the task"
    assert follow(story.tell(swept(2))) == asking(question, **FAILURE)


@pytest.mark.req("INT-1")
@pytest.mark.parametrize(
    ("story", "step"),
    [
        (ended("success"), asking("which one?")),
        (ended("crashed"), asking("which one?")),
        # Nothing would continue anyway.
        (ended("failed", end={"detail": "no"}), moving("running", "failed", "no", **FAILURE)),
        (ended("stopped", intent="stop"), moving("running", "killed", "ours")),
        (ended("stopped", intent="interrupt"), asking("ours")),
    ],
)
def test_an_agent_that_left_an_interrupt_file_is_not_continued_without_an_answer(
    story: Story, step: Step
) -> None:
    assert follow(story, interrupt_file="which one?") == step


# ── clean up ──


def test_what_a_failed_attempt_left_is_killed_before_anything_else() -> None:
    story = Story().attempt(1).end(1, "crashed")
    assert next_step(story) == Sweep(number=1)
    assert next_step(story, memory(sweep_due_mono={1: NOW.mono + 0.5})) == Watch(wait_s=0.5)
    assert next_step(story, memory(sweep_due_mono={1: NOW.mono})) == Sweep(number=1)
    story.tell(swept(1))
    assert next_step(story) == WriteFiles(number=1)
    assert next_step(story, memory(files_written={1})) == DismissRecorders(numbers=(1,))
    assert next_step(story, cleaned(1)) == retried("crashed")


@pytest.mark.parametrize("policy", ["report", "kill", "keep"])
def test_what_a_successful_attempt_left_is_reported_killed_or_kept(policy: str) -> None:
    story = Story(leftovers=policy).attempt(1).end(1, "success")
    if policy == "report":
        assert next_step(story) == CheckLeftovers(number=1)
        assert next_step(story, memory(leftovers_checked={1})) == WriteFiles(number=1)
        story.tell(ev.LeftoversFound(attempt=1, processes=[], policy=policy))
    if policy == "kill":
        assert next_step(story) == Sweep(number=1)
        story.tell(swept(1))
    assert next_step(story) == WriteFiles(number=1)
    # The recorders leave once the success is recorded.
    assert next_step(story, memory(files_written={1})) == moving("running", "completing", "success")


def test_processes_that_cannot_be_killed_are_left_to_a_person_before_a_retry() -> None:
    story = Story().attempt(1).end(1, "crashed").tell(swept(1, unkillable=(77,), proof="77 is left"))
    question = "the last attempt left processes that cannot be killed: 77 is left"
    assert follow(story) == asking(question, reason="crashed", **FAILURE)
    story = Story().attempt(1).tell(intended(1, "stop")).end(1, "stopped").tell(swept(1, unkillable=(77,)))
    assert follow(story) == moving("running", "killed", "ours")


def test_a_proof_is_only_text_and_decides_nothing() -> None:
    story = Story(limits=NO_DEADLINE).attempt(1).end(1, "crashed").tell(swept(1, proof="all are gone"))
    assert follow(story) == retried("crashed")


# ── retries, deadlines ──


def test_a_deadline_that_is_over_ends_the_task_instead_of_a_retry() -> None:
    story = ended("crashed", limits=Limits(deadline_s=10.0), end={"lived_s": 10.0})
    over = moved("crashed", "abandoned", "its deadline is over; the last failure: crashed", **FAILURE)
    assert follow(story) == Journal(events=(moved("running", "crashed", "crashed"), over))


# ── waits ──


def waiting_until(reason: str, seconds: float, **more: Any) -> Journal:
    return moving("running", "waiting", reason, wake_at=clock.iso(NOW.wall + seconds), **more)


@pytest.mark.req("BUD-9")
@pytest.mark.parametrize(
    ("intent", "resets_in_s", "jitter", "wait_s"),
    [
        (None, None, 0.0, 60.0),
        (None, None, 1.0, 66.0),
        (None, 300.0, 0.0, 301.0),
        (None, 300.0, 1.0, 305.0),
        (None, -300.0, 0.0, 60.0),
        ("limit", 300.0, 0.0, 301.0),
        ("hang", 300.0, 0.0, 301.0),
    ],
)
def test_at_a_limit_of_the_service_the_task_waits(
    intent: str | None, resets_in_s: float | None, jitter: float, wait_s: float
) -> None:
    resets_at = None if resets_in_s is None else clock.iso(NOW.wall + resets_in_s)
    story = ended("quota", intent=intent, end={"detail": "full", "resets_at": resets_at})
    assert next_step(story, cleaned(1, jitter=jitter)) == waiting_until("quota: full", wait_s)


def test_waits_without_a_time_grow() -> None:
    story = (
        ended("overloaded").move("waiting").move("spawning").attempt(2).end(2, "overloaded").tell(swept(2))
    )
    assert follow(story) == waiting_until("overloaded", 120.0)


# ── failover ──


def takes_over(new: str, old: str, reason: str, *, before: tuple[ev.Event, ...] = ()) -> Journal:
    reason = f"{old}: {reason}"
    return Journal(
        events=(
            *before,
            ev.AgentSwitched(stage="a_run", old=old, new=new, reason=reason),
            moved("running", "waiting", reason, wake_at=clock.iso(NOW.wall)),
            moved("waiting", "spawning", f"{new} takes over"),
        )
    )


def limited_until(seconds: float) -> dict[str, Any]:
    return {"noticed_at": clock.iso(NOW.wall - 1.0), "resets_at": clock.iso(NOW.wall + seconds)}


@pytest.mark.parametrize(
    ("story", "step"),
    [
        (ended("quota", end=limited_until(300.0), failover=("b",)), takes_over("b", "a", "quota")),
        (ended("auth", failover=("b",)), takes_over("b", "a", "auth")),
        (ended("spawn_failed", failover=("b",)), takes_over("b", "a", "spawn_failed")),
        # Its own limit of the service, although we stopped it.
        (
            ended("quota", intent="limit", end=limited_until(300.0), failover=("b",)),
            takes_over("b", "a", "quota: "),
        ),
        # A failure of the work is no reason to change the agent, and a person who stops it means every agent.
        (ended("crashed", failover=("b",)), retried("crashed")),
        (ended("auth", intent="interrupt", failover=("b",)), asking("ours")),
    ],
)
def test_another_agent_takes_over_from_one_that_is_unavailable(story: Story, step: Step) -> None:
    assert follow(story) == step


def test_without_an_available_agent_the_task_waits_for_the_first_that_is_back() -> None:
    limits: dict[str, Any] = {"failover": ("b",)}
    story = ended("quota", end=limited_until(300.0), **limits)
    step = follow(story)
    assert isinstance(step, Journal)
    story.tell(*step.events).open(2, agent="b", session_id=None).start(2).move("running")
    story.end(2, "quota", **limited_until(900.0)).tell(swept(2))
    assert follow(story) == waiting_until("quota", 300.0)


def test_an_agent_that_took_over_keeps_the_stage_while_it_is_available() -> None:
    """Although the first agent is back."""
    story = ended("quota", end=limited_until(-60.0), failover=("b",)).move("waiting").move("spawning")
    story.tell(ev.AgentSwitched(stage="a_run", old="a", new="b", reason="r"))
    story.open(2, agent="b", session_id=None).start(2).move("running").end(2, "crashed").tell(swept(2))
    assert follow(story) == retried("crashed")


# ── parallel stages ──


@pytest.mark.req("PIP-13")
@pytest.mark.parametrize(
    ("story", "step"),
    [
        (parallel("success", "success"), moving("running", "completing", "success")),
        # The gates of the successful ones come first.
        (parallel("success", "crashed"), "1 of 2 parallel stages succeeded"),
        (parallel("failed", "success", "success"), "2 of 3 parallel stages succeeded"),
        (parallel("success", "stopped", intents={2: "interrupt"}), "1 of 2 parallel stages succeeded"),
        # But nothing more is done after a stop or a deadline.
        (parallel("success", "stopped", intents={2: "stop"}), moving("running", "killed", "ours")),
        (parallel("success", "success", intents={1: "stop"}), moving("running", "killed", "ours")),
        (parallel("stopped", "success", intents={1: "deadline"}), moving("running", "abandoned", "ours")),
        (
            parallel("stopped", "crashed", "success", intents={1: "stop"}),
            moving("running", "killed", "ours"),
        ),
        # The most severe decision wins.
        (parallel("crashed", "auth"), asking("auth", **FAILURE)),
        (parallel("auth", "failed"), moving("running", "failed", "failed", **FAILURE)),
        (parallel("quota", "crashed"), waiting_until("quota", 60.0)),
        (parallel("quota", "auth"), asking("auth", **FAILURE)),
        (parallel("crashed", "lost"), retried("crashed", "one")),
    ],
)
def test_parallel_attempts_are_decided_together(story: Story, step: Step | str) -> None:
    assert follow(story) == (moving("running", "completing", step) if isinstance(step, str) else step)


def fresh(stage: str, **more: Any) -> ev.RetryPlanned:
    values = {"consecutive": 0, "total": 0, "delay_s": 0.0, **more}
    return ev.RetryPlanned(stage=stage, burned=False, fresh_session=True, **values)


def test_a_session_that_cannot_continue_is_not_resumed_whatever_is_followed() -> None:
    step = follow(parallel("unknown_session", "auth"))
    assert step == asking("auth", before=(fresh("one"),), **FAILURE)
    assert follow(parallel("unknown_session", "quota")) == waiting_until(
        "quota", 60.0, before=(fresh("one"),)
    )
    assert follow(parallel("unknown_session", "failed")) == moving(
        "running", "failed", "failed", before=(fresh("one"),), **FAILURE
    )
    step = follow(parallel("crashed", "unknown_session"))
    assert isinstance(step, Journal)
    assert step.events[1:3] == (
        fresh("two"),
        ev.RetryPlanned(stage="one", consecutive=1, total=1, delay_s=0.0),
    )


def test_every_parallel_attempt_is_cleaned_up_before_anything_is_decided() -> None:
    story = Story(LENSES[:2], limits=NO_DEADLINE).open(1, stage="one").open(2, stage="two").start(1).start(2)
    story.move("running").end(1, "success").end(2, "crashed")
    assert next_step(story) == CheckLeftovers(number=1)
    assert next_step(story, memory(leftovers_checked={1})) == WriteFiles(number=1)
    assert next_step(story, memory(leftovers_checked={1}, files_written={1})) == Sweep(number=2)
    story.tell(swept(2))
    assert next_step(story, memory(leftovers_checked={1}, files_written={1})) == WriteFiles(number=2)
    step = next_step(story, memory(leftovers_checked={1}, files_written={1, 2}))
    assert step == moving("running", "completing", "1 of 2 parallel stages succeeded")


# ── pipelines ──


def failed_stage(outcome: str, *, seen: int = 0, failure_class: str = "transient", **more: Any) -> Story:
    """An attempt of a pipeline that failed and was triaged, after `seen` failures of the same kind."""
    story = ended(outcome, **{"pipeline": PIPELINE, **more})
    found = ev.FailureTriaged(
        stage="a_run", attempt=1, outcome=outcome, failure_class=failure_class, signature="s"
    )
    return story.tell(*(found.evolve(attempt=0) for _ in range(seen)), found)


@pytest.mark.req("GAT-7")
@pytest.mark.parametrize(
    ("story", "outcome"),
    [
        (ended("network", end={"detail": "gone"}, pipeline=PIPELINE), "network"),
        # Death by a signal says nothing about the work.
        (ended("crashed", end={"detail": "gone", "exit_signal": 9}, pipeline=PIPELINE), "killed"),
        (ended("crashed", end={"detail": "gone"}, pipeline=PIPELINE), "crashed"),
        (ended("network", end={"detail": "gone", "exit_signal": 15}, pipeline=PIPELINE), "network"),
        (ended("stopped", intent="budget", end={"detail": "gone"}, pipeline=PIPELINE), "budget"),
        (ended("stopped", intent="output", end={"detail": "gone"}, pipeline=PIPELINE), "budget"),
        (ended("quota", end={"detail": "gone"}, pipeline=PIPELINE), "quota"),
    ],
)
def test_a_failure_of_a_pipeline_is_triaged_first(story: Story, outcome: str) -> None:
    failure = Failure(stage="a_run", outcome=outcome, detail="gone")
    assert next_step(story) == TriageFailure(number=1, failure=failure)


@pytest.mark.parametrize(
    ("story", "step"),
    [
        (ended("success", pipeline=PIPELINE), moving("running", "completing", "success")),
        (ended("stopped", intent="stop", pipeline=PIPELINE), moving("running", "killed", "ours")),
        (ended("stopped", intent="interrupt", pipeline=PIPELINE), asking("ours")),
        (ended("stopped", intent="deadline", pipeline=PIPELINE), moving("running", "abandoned", "ours")),
    ],
)
def test_what_is_no_failure_of_the_stage_is_not_triaged(story: Story, step: Step) -> None:
    assert follow(story) == step


def test_an_interrupt_file_comes_before_the_triage() -> None:
    assert follow(ended("network", pipeline=PIPELINE), interrupt_file="q") == asking("q")


@pytest.mark.req("GAT-9", "BUD-3")
def test_class_and_budget_decide_what_follows_from_a_failure() -> None:
    reason = "network (transient, retry 1 of 1 for this signature)"
    step = follow(failed_stage("network"))
    # The class has a pause of five seconds, so the retry is not immediate.
    backoff = moved("crashed", "waiting", f"backoff after {reason}", wake_at=clock.iso(NOW.wall + 5.0))
    planned = ev.RetryPlanned(stage="a_run", consecutive=1, total=1, delay_s=5.0)
    assert step == Journal(events=(moved("running", "crashed", reason), planned, backoff))
    reason = "network (transient: retried once for this signature, with the same failure)"
    assert follow(failed_stage("network", seen=1)) == moving("running", "failed", reason, **FAILURE)
    reason = "auth (auth: no automatic retry)"
    assert follow(failed_stage("auth", failure_class="auth")) == asking(reason, **FAILURE)
    assert follow(failed_stage("quota")) == waiting_until("quota", 60.0)


def test_a_timeout_of_a_pipeline_is_retried_then_asks_or_ends() -> None:
    timeout: dict[str, Any] = {"intent": "timeout", "failure_class": "timeout"}
    step = follow(failed_stage("timeout", **timeout))
    assert step == retried("ours (timeout, retry 1 of 1 for this signature)", status="timeout")
    reason = "ours (timeout: retried once for this signature, with the same failure)"
    assert follow(failed_stage("timeout", seen=1, **timeout)) == asking(reason, **FAILURE)
    limits = Limits(deadline_s=None, on_limit="end")
    step = follow(failed_stage("timeout", seen=1, limits=limits, **timeout))
    assert step == moving("running", "timeout", reason, **FAILURE)
