"""What a person's request changes, in which states it is refused, and that it is applied once."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import HoldfastError
from holdfast.model import events as ev
from holdfast.model.request import REQUESTS
from holdfast.model.spec import PipelineSpec, QueueSpec, StageSpec
from holdfast.runner.plan.facts import PendingRequest, PreparedInterrupt
from holdfast.runner.plan.step import (
    AnswerRequest,
    EndTakeover,
    ForgetRequest,
    PostNotice,
    Step,
    WriteInterruptFile,
)
from tests.support.planning import asking, memory, moved, next_step, request
from tests.support.story import Story

PIPELINE = PipelineSpec(intent="feature", group="impl", profile="standard")
LENSES = tuple(StageSpec(name=name, agent="a", group="g") for name in ("one", "two"))


def answer(story: Story, verb: str, **args: Any) -> Step:
    # Whoever asks for a takeover is there, and so is whoever has the session.
    return next_step(story, request=request(verb, **args).evolve(is_claimed=True, is_taken_over=True))


def applied(verb: str, *effect: ev.Event, **args: Any) -> AnswerRequest:
    asked = request(verb, **args).request
    assert not isinstance(asked, HoldfastError)
    return AnswerRequest(name="R.json", request=asked, effect=effect)


def refused(verb: str, refusal: str, **args: Any) -> AnswerRequest:
    return applied(verb, **args).evolve(refusal=refusal)


def by_request(old: str, new: str, reason: str, **more: Any) -> ev.TaskMoved:
    return moved(old, new, reason, request="R", **more)


def intents(name: str, *numbers: int) -> list[ev.Event]:
    """What the request intends for these executions; the last event has the request."""
    reason = {"stop": "stopped by me", "interrupt": "interrupted by me"}[name]
    made = [ev.StopIntended(attempt=number, intent=name, reason=reason) for number in numbers]
    return [*made[:-1], made[-1].evolve(request="R")]


def queued() -> Story:
    return Story(status="queued", queue=QueueSpec())


def interrupted(**more: Any) -> Story:
    return Story(**more).attempt(1).end(1, "auth").move("interrupted", interrupt="log in")


def awaiting_approval(**more: Any) -> Story:
    return Story(**more).move("interrupted", interrupt="may it?", approval="a_run")


def waiting(**more: Any) -> Story:
    return Story(**more).attempt(1).end(1, "quota").move("waiting")


def two() -> Story:
    story = Story(LENSES, pipeline=PIPELINE).open(1, stage="one").open(2, stage="two")
    return story.start(1).start(2).move("running")


def with_chore() -> Story:
    return Story(pipeline=PIPELINE).open(1, kind="prepare", agent="command", session_id=None)


def past_work() -> Story:
    """Nothing but its last files is left to write."""
    return Story().attempt(1).end(1, "success").move("completing")


# ── stop ──


@pytest.mark.parametrize(
    ("story", "effect"),
    [
        (queued(), [by_request("queued", "killed", "stopped by me")]),
        (Story(), [by_request("spawning", "killed", "stopped by me")]),
        (Story().open(1), intents("stop", 1)),
        (Story().attempt(1), intents("stop", 1)),
        (two(), intents("stop", 1, 2)),
        # One of two has ended: the other one is stopped, and what was decided for the task covers both.
        (two().end(1, "success"), intents("stop", 2)),
        # All have ended and nothing is decided yet: the stop changes the decision.
        (two().end(1, "success").end(2, "crashed"), intents("stop", 1, 2)),
        (with_chore(), intents("stop", 1)),
        (with_chore().end(1, "success"), intents("stop", 1)),
        (past_work(), [by_request("completing", "killed", "stopped by me")]),
        (waiting(), [by_request("waiting", "killed", "stopped by me")]),
        (interrupted(), [by_request("interrupted", "killed", "stopped by me")]),
        *(
            (
                Story().attempt(1).end(1, "crashed").move(state),
                [by_request(state, "killed", "stopped by me")],
            )
            for state in ("crashed", "hung", "timeout")
        ),
    ],
)
def test_a_stop_ends_the_agents_or_the_task(story: Story, effect: list[ev.Event]) -> None:
    assert answer(story, "stop") == applied("stop", *effect)


def test_a_stop_has_the_reason_that_was_given() -> None:
    step = answer(Story(), "stop", reason="enough")
    assert step == applied("stop", by_request("spawning", "killed", "enough"), reason="enough")


# ── interrupt ──


@pytest.mark.req("INT-3")
@pytest.mark.parametrize(
    ("story", "numbers"),
    [
        (Story().attempt(1), [1]),
        (two(), [1, 2]),
        (two().end(1, "crashed"), [2]),
        (with_chore(), [1]),
        (Story().attempt(1).end(1, "crashed"), [1]),
    ],
)
def test_an_interrupt_stops_the_agents_first(story: Story, numbers: list[int]) -> None:
    assert answer(story, "interrupt") == applied("interrupt", *intents("interrupt", *numbers))


def test_an_interrupt_says_whether_the_home_goes_down() -> None:
    for cause, noted in (("down", "down"), ("failure", ""), (7, "")):
        step = answer(two(), "interrupt", cause=cause)
        assert isinstance(step, AnswerRequest)
        assert [getattr(event, "cause", None) for event in step.effect] == [noted, noted]
        assert answer(Story(), "interrupt", cause=cause, reason="q") == asking("q", request="R", cause=noted)


@pytest.mark.parametrize(
    "story",
    [Story(), waiting(), Story(pipeline=PIPELINE).attempt(1).end(1, "success").move("completing")],
    ids=["spawning", "waiting", "completing"],
)
def test_an_interrupt_without_agents_is_prepared_like_every_other_and_then_answered(story: Story) -> None:
    old, question = str(story.task.status), "interrupted by me"
    pending = request("interrupt")
    assert next_step(story, request=pending) == asking(question, request="R")
    prepared = PreparedInterrupt(question=question, reason=question, request="R", is_saved=True)
    for step, done in (
        (PostNotice(event="interrupted", reason=question, asked_by="person"), "is_announced"),
        (WriteInterruptFile(question=question), "has_file"),
    ):
        assert next_step(story, memory(interrupting=prepared), request=pending) == step
        prepared = prepared.evolve(**{done: True})
    moved_by = by_request(old, "interrupted", question, interrupt=question, marked=True)
    assert next_step(story, memory(interrupting=prepared), request=pending) == applied("interrupt", moved_by)


# ── resume, approve, reject ──


@pytest.mark.req("INT-1", "INT-3")
@pytest.mark.parametrize(
    ("story", "new"),
    [
        (interrupted(), "spawning"),
        (waiting(), "spawning"),
        # A task of the queue continues through it; a wait keeps its slot.
        (interrupted(queue=QueueSpec()), "queued"),
        (waiting(queue=QueueSpec()), "spawning"),
    ],
)
def test_a_resume_continues_with_an_answer_for_the_agent(story: Story, new: str) -> None:
    old = str(story.task.status)
    effect = by_request(old, new, "resumed by me", answer="the blue one")
    assert answer(story, "resume", message="the blue one") == applied(
        "resume", effect, message="the blue one"
    )
    assert answer(story, "resume") == applied("resume", by_request(old, new, "resumed by me"))


def test_an_approval_lets_the_stage_start() -> None:
    given = ev.ApprovalGiven(stage="a_run", by="me", request="R")
    onward = by_request("interrupted", "spawning", "a_run approved by me", answer="go")
    assert answer(awaiting_approval(), "approve", message="go") == applied(
        "approve", given, onward, message="go"
    )
    meant = {"interrupt": 1, "stage": "a_run"}
    onward = by_request("interrupted", "spawning", "a_run approved by me")
    assert answer(awaiting_approval(), "approve", **meant) == applied("approve", given, onward, **meant)
    onward = by_request("interrupted", "queued", "a_run approved by me")
    assert answer(awaiting_approval(queue=QueueSpec()), "approve") == applied("approve", given, onward)


def test_a_rejection_ends_the_task() -> None:
    step = answer(awaiting_approval(), "reject")
    assert step == applied("reject", by_request("interrupted", "killed", "a_run rejected by me"))
    step = answer(awaiting_approval(), "reject", message="no")
    effect = by_request("interrupted", "killed", "a_run rejected by me: no")
    assert step == applied("reject", effect, message="no")


# ── start and done, by the queue ──


def test_a_queued_task_is_started_by_the_keeper() -> None:
    effect = by_request("queued", "spawning", "started by me", iteration=7)
    assert answer(queued(), "start", iteration=7) == applied("start", effect, iteration=7)
    effect = by_request("queued", "spawning", "started by me")
    assert answer(queued(), "start") == applied("start", effect)


def test_a_queued_task_can_be_done_by_an_external_worker() -> None:
    effect = by_request("queued", "completed", "done by me, outside holdfast")
    assert answer(queued(), "done") == applied("done", effect)


# ── retry ──

ENV: dict[str, Any] = {"env": {}}
DONE = Story().tell(ev.StageDone(stage="a_run", attempt=1)).move("killed")


@pytest.mark.parametrize(
    ("story", "args", "run"),
    [
        (Story().move("killed"), {}, {}),
        (Story(queue=QueueSpec()).move("killed"), {}, {"is_queued": True}),
        (Story().move("killed"), {"from": "a_run"}, {"from_stage": "a_run"}),
        (DONE, {"from": "a_run"}, {"from_stage": "a_run"}),
        (Story().move("killed"), {"message": "again"}, {"answer": "again"}),
        (Story().move("killed"), {"deadline": "2h"}, {"deadline_s": 7200.0, "sets_deadline": True}),
        (Story().move("killed"), {"deadline": "none"}, {"deadline_s": None, "sets_deadline": True}),
    ],
)
def test_a_retry_opens_a_run(story: Story, args: dict[str, Any], run: dict[str, Any]) -> None:
    opened = ev.RunOpened(run=2, request="R", **run)
    assert answer(story, "retry", **ENV, **args) == applied("retry", opened, **ENV, **args)


# ── refusals ──


@pytest.mark.parametrize(
    ("story", "verb", "args", "refusal"),
    [
        (Story().move("killed"), "stop", {}, "it has already ended: killed"),
        (Story().move("killed"), "interrupt", {}, "it has already ended: killed"),
        (interrupted(), "interrupt", {}, "it is already interrupted"),
        (queued(), "interrupt", {}, "it is queued and has not started"),
        (past_work(), "interrupt", {}, "its work is done, and it is completing"),
        (
            Story().attempt(1).tell(ev.StopIntended(attempt=1, intent="stop", reason="r")),
            "interrupt",
            {},
            "it is being stopped",
        ),
        (Story(), "resume", {}, "it is spawning, not interrupted or waiting"),
        (Story().move("killed"), "resume", {}, "it is killed, not interrupted or waiting"),
        (
            awaiting_approval(),
            "resume",
            {},
            "it waits for approval of a_run; answer with 'holdfast approve' or 'holdfast reject'",
        ),
        (interrupted(), "resume", {"message": 7}, "message must be text"),
        (interrupted(), "approve", {}, "it is interrupted and waits for no approval"),
        (Story(), "reject", {}, "it is spawning and waits for no approval"),
        (awaiting_approval(), "approve", {"interrupt": 2}, "the answer is for an earlier question; it waits"),
        (awaiting_approval(), "approve", {"interrupt": "1"}, "the answer is for an earlier question"),
        (awaiting_approval(), "reject", {"stage": "b_run"}, "the answer is for an earlier question"),
        (Story(), "start", {}, "it is spawning, not queued"),
        (Story(), "done", {}, "it is spawning, not queued"),
        (Story(), "retry", ENV, "it has not ended: it is spawning"),
        (Story().move("killed"), "retry", {}, "the request has no environment (env), and the task's own is "),
        (Story().move("killed"), "retry", {**ENV, "from": "x"}, "it has no stage 'x'; its stages are a_run"),
        (DONE, "retry", ENV, "all its stages are done; name the one to run again with --from (a_run)"),
        (Story().move("killed"), "retry", {**ENV, "deadline": "soon"}, "deadline: "),
        (Story(), "paint", {}, f"no such request: paint (one of {', '.join(REQUESTS)})"),
    ],
)
def test_a_request_that_makes_no_sense_now_is_refused(
    story: Story, verb: str, args: dict[str, Any], refusal: str
) -> None:
    step = answer(story, verb, **args)
    assert isinstance(step, AnswerRequest)
    assert step.refusal is not None
    assert step.refusal.startswith(refusal)
    assert step == refused(verb, step.refusal, **args)


def test_a_file_that_is_no_request_is_refused() -> None:
    pending = PendingRequest(name="R.json", request=HoldfastError("not JSON"))
    step = next_step(Story(), request=pending)
    assert step == AnswerRequest(name="R.json", request=None, refusal="not JSON")


# ── once ──


@pytest.mark.parametrize("verb", REQUESTS)
def test_a_request_that_was_answered_is_only_forgotten(verb: str) -> None:
    story = Story().tell(ev.RequestApplied(request="R", verb=verb, by="me"))
    assert answer(story, verb) == ForgetRequest(name="R.json")
    story = Story().tell(ev.RequestRefused(request="R", verb=verb, by="me", reason="no"))
    assert answer(story, verb) == ForgetRequest(name="R.json")


TAKEOVER = {"attempt": 2, "stage": "a_run"}


def taken_over() -> Story:
    story = interrupted()
    story.tell(
        ev.TakeoverStarted(
            attempt=2,
            attempt_id="a",
            stage="a_run",
            agent="claude",
            session_id="i",
            by="ada",
            request="Q",
        )
    )
    return story


SITUATIONS: dict[str, tuple[Story, dict[str, Any]]] = {
    "start": (queued(), {}),
    "stop": (Story(), {}),
    "interrupt": (Story().attempt(1), {}),
    "resume": (interrupted(), {}),
    "retry": (Story().move("killed"), ENV),
    "approve": (awaiting_approval(), {}),
    "reject": (awaiting_approval(), {}),
    "done": (queued(), {}),
    "applied": (Story().move("killed"), {"how": "patch"}),
    "takeover": (interrupted(), {**TAKEOVER, "attempt_id": "a", "agent": "claude", "session_id": "i"}),
    "handback": (taken_over(), {"attempt": 2, "message": "go on"}),
}


@pytest.mark.parametrize("verb", REQUESTS)
def test_a_request_that_was_applied_is_only_answered(verb: str) -> None:
    """The runner was killed between effect and answer."""
    story, args = SITUATIONS[verb]
    step = answer(story, verb, **args)
    assert isinstance(step, AnswerRequest)
    assert step.effect
    story.tell(*step.effect)
    assert answer(story, verb, **args) == applied(verb, **args)


@pytest.mark.parametrize(
    ("story", "verb"),
    [(awaiting_approval(), "approve"), (two(), "stop"), (two(), "interrupt")],
    ids=["approve", "stop", "interrupt"],
)
def test_a_request_whose_record_was_torn_is_applied_again_as_a_whole(story: Story, verb: str) -> None:
    """The first event is there, the second one is not: the request must not count as applied."""
    step = answer(story, verb)
    assert isinstance(step, AnswerRequest)
    assert len(step.effect) == 2
    story.tell(step.effect[0])
    assert answer(story, verb) == step


# ── takeovers ──


@pytest.mark.parametrize("verb", ["resume", "stop", "takeover"])
def test_while_a_person_has_the_session_the_task_is_left_alone(verb: str) -> None:
    args = TAKEOVER if verb == "takeover" else {}
    step = answer(taken_over(), verb, **args)
    assert isinstance(step, AnswerRequest)
    assert step.refusal is not None
    assert step.refusal.startswith("ada has taken over its session")


@pytest.mark.parametrize("verb", ["resume", "stop", "takeover"])
def test_a_lost_takeover_is_ended_before_anything_else(verb: str) -> None:
    story = taken_over()
    assert next_step(story, request=request(verb)) == EndTakeover(number=2)
    assert next_step(story) == EndTakeover(number=2)
    story.tell(ev.TakeoverEnded(attempt=2, how="lost"))
    assert not isinstance(next_step(story, request=request(verb)), EndTakeover)


def test_a_hand_back_whose_record_was_torn_is_completed() -> None:
    story = taken_over()
    step = answer(story, "handback", attempt=2, message="go on")
    assert isinstance(step, AnswerRequest)
    ended, onward = step.effect
    assert isinstance(ended, ev.TakeoverEnded)
    story.tell(ended)
    assert answer(story, "handback", attempt=2, message="go on") == step.evolve(effect=(onward,))


def test_a_takeover_whose_command_is_gone_is_refused() -> None:
    step = next_step(interrupted(), request=request("takeover", **TAKEOVER))
    assert isinstance(step, AnswerRequest)
    assert step.refusal == "the command that asked for it is gone"


def test_a_hand_back_that_keeps_the_task_only_records_the_end() -> None:
    step = answer(taken_over(), "handback", attempt=2, keep=True)
    assert isinstance(step, AnswerRequest)
    (ended,) = step.effect
    assert isinstance(ended, ev.TakeoverEnded)
    assert ended.how == "kept"
