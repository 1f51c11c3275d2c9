"""While executions are open: each rule is applied to all of them before the next rule."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.attempt_table import Reading
from holdfast.model.process import Exit
from holdfast.model.spec import Limits, PipelineSpec, StageSpec
from holdfast.runner.plan.facts import ExecutionFacts, Judgement, StartFailure
from holdfast.runner.plan.running import judge_again_s
from holdfast.runner.plan.step import (
    Heartbeat,
    IntendStop,
    Journal,
    LockSession,
    ReadOutput,
    RecordEnd,
    RecordStart,
    RecordVerdict,
    Signal,
    Step,
    WakeRecorder,
    Watch,
)
from holdfast.watch.verdict import Kind
from tests.support.planning import NOW, alive, asking, judgement, memory, moving, next_step
from tests.support.story import Story

PIPELINE = PipelineSpec(intent="feature", group="impl", profile="standard")
LENSES = tuple(StageSpec(name=name, agent="a", group="g") for name in ("one", "two"))
ENDED = ExecutionFacts(is_watched=True, has_ended=True)
HEARTBEAT_S = 20.0


def chosen(story: Story, *seen: ExecutionFacts, heartbeat_in_s: float = HEARTBEAT_S, **more: Any) -> Step:
    """The next step, with what was seen of the executions 1, 2, …"""
    executions = dict(enumerate(seen, 1))
    return next_step(story, executions=executions, heartbeat_in_s=heartbeat_in_s, **more)


def running(**more: Any) -> Story:
    return Story(limits=more.pop("limits", Limits(deadline_s=None)), **more).attempt(1)


def two() -> Story:
    """Two parallel attempts."""
    story = Story(LENSES, pipeline=PIPELINE, limits=Limits(deadline_s=None)).open(1, stage="one")
    return story.open(2, stage="two").start(1).start(2).move("running")


def gate() -> Story:
    """A chore that judges an attempt."""
    story = Story(pipeline=PIPELINE, limits=Limits(deadline_s=None)).attempt(9).end(9, "success")
    return story.move("completing").open(1, kind="gate", agent="command", session_id=None).start(1)


def intended(story: Story, number: int = 1, intent: str = "stop", **more: Any) -> Story:
    return story.tell(ev.StopIntended(attempt=number, intent=intent, reason="r", **more))


# ── its start ──


def found(reading: Reading, **more: Any) -> ExecutionFacts:
    return ExecutionFacts(reading=reading, **more)


def exited(exec_errno: int | None) -> Exit:
    return Exit(by="recorder", wait_status=None, exit_code=None, exec_errno=exec_errno, at="")


VOID = ev.AttemptVoid(attempt=1, reason="its recorder died before the agent existed")


@pytest.mark.req("SUP-7", "SUP-10")
@pytest.mark.parametrize(
    ("seen", "step"),
    [
        (found(Reading.RUNNING), RecordStart(number=1)),
        (found(Reading.ORPHANED), RecordStart(number=1)),
        (found(Reading.EXITED, exit=exited(None)), RecordStart(number=1)),
        (found(Reading.NEVER_STARTED), Journal(events=(VOID,))),
        # Killed before it became the agent.
        (found(Reading.SPAWN_FAILED, exit=exited(None)), Journal(events=(VOID,))),
        (found(Reading.STARTING, awaited_s=0.4), Watch(wait_s=0.1)),
        (found(Reading.STARTING, awaited_s=0.0), Watch(wait_s=0.0005)),
        (found(Reading.STARTING, awaited_s=60.0), Watch(wait_s=0.25)),
        (found(Reading.STARTING, awaited_s=3.0, is_overdue=True), WakeRecorder(number=1)),
    ],
)
def test_what_its_directory_says_before_its_process_is_watched(seen: ExecutionFacts, step: Step) -> None:
    assert chosen(Story().open(1), seen) == step


def test_a_runner_that_adopts_an_agent_watches_it_first() -> None:
    """Also if the start is journalled and a stop is intended: only the one that watches sends signals."""
    story = intended(running())
    assert chosen(story, found(Reading.RUNNING, signal_in_s=0.0)) == RecordStart(number=1)


# ── void ──


@pytest.mark.parametrize(
    ("intent", "step"),
    [
        ("stop", moving("spawning", "killed", "r", before=(VOID,))),
        ("interrupt", asking("r", before=(VOID,))),
        ("deadline", moving("spawning", "abandoned", "r", before=(VOID,))),
    ],
)
def test_what_was_intended_for_an_execution_that_never_started_still_holds(intent: str, step: Step) -> None:
    story = intended(Story().open(1), intent=intent, request="R")
    assert chosen(story, found(Reading.NEVER_STARTED)) == step


def test_a_stop_of_a_chore_that_never_started_stops_the_task() -> None:
    story = Story(pipeline=PIPELINE).open(1, kind="prepare", agent="command", session_id=None)
    step = chosen(intended(story), found(Reading.NEVER_STARTED))
    assert step == moving("spawning", "killed", "r", before=(VOID,))


def test_a_stop_of_an_execution_that_never_started_passes_to_the_parallel_one() -> None:
    story = (
        Story(LENSES, pipeline=PIPELINE).open(1, stage="one").open(2, stage="two").start(2).move("running")
    )
    intended(story, request="R")
    passed_on = ev.StopIntended(attempt=2, intent="stop", reason="r", request="R")
    assert chosen(story, found(Reading.NEVER_STARTED), alive()) == Journal(events=(VOID, passed_on))
    # To one that has ended as well: it changes what is decided about it.
    story.end(2, "success")
    assert chosen(story, found(Reading.NEVER_STARTED)) == Journal(events=(VOID, passed_on))
    intended(story, 2, "interrupt")
    assert chosen(story, found(Reading.NEVER_STARTED)) == Journal(events=(VOID,))


# ── its end ──


@pytest.mark.req("SUP-10")
@pytest.mark.parametrize(
    ("seen", "step"),
    [
        (ENDED.evolve(has_unread_output=True), ReadOutput(numbers=(1,), final=True)),
        (ENDED, RecordEnd(number=1)),
        # Its process is gone, and the recorder owes the exit record.
        (ExecutionFacts(is_watched=True, awaited_s=0.2), Watch(wait_s=0.05)),
        (ExecutionFacts(is_watched=True, awaited_s=3.0, is_overdue=True), WakeRecorder(number=1)),
    ],
)
def test_a_process_that_is_gone(seen: ExecutionFacts, step: Step) -> None:
    assert chosen(running(), seen) == step
    assert chosen(intended(running()), seen.evolve(signal_in_s=0.0)) == step, "nothing else is signalled"


# ── output, session, heartbeat ──


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        (alive(), Watch(wait_s=5.0)),
        (alive(read_in_s=0.0), ReadOutput(numbers=(1,))),
        (alive(read_in_s=-1.0), ReadOutput(numbers=(1,))),
        (alive(needs_session_lock=True), LockSession(number=1)),
        (alive(poll_in_s=0.5), Watch(wait_s=0.5)),
        (alive(judge_in_s=2.0), Watch(wait_s=2.0)),
        (alive(read_in_s=500.0, judge_in_s=500.0), Watch(wait_s=HEARTBEAT_S)),
    ],
)
def test_an_agent_at_work(seen: ExecutionFacts, step: Step) -> None:
    assert chosen(running(), seen) == step


def test_the_output_of_all_is_read_in_one_step() -> None:
    step = chosen(two(), alive(read_in_s=0.0), alive(read_in_s=0.0))
    assert step == ReadOutput(numbers=(1, 2))
    assert chosen(two(), alive(), alive(read_in_s=0.0)) == ReadOutput(numbers=(2,))
    assert chosen(two(), ExecutionFacts(is_watched=True, awaited_s=1.0), alive()) == Watch(wait_s=0.25)


@pytest.mark.req("INT-1", "INT-3")
@pytest.mark.parametrize("story", [running(), gate()], ids=["attempt", "chore"])
def test_an_interrupt_file_stops_it_whenever_it_is_found(story: Story) -> None:
    assert chosen(story, alive(), heartbeat_in_s=0.0) == Heartbeat()
    stop = IntendStop(numbers=(1,), intent="interrupt", reason="which one?")
    assert chosen(story, alive(), heartbeat_in_s=0.0, interrupt_file="which one?") == stop
    assert chosen(story, alive(), heartbeat_in_s=1.0, interrupt_file="which one?") == stop


def test_an_interrupt_file_stops_all_that_are_not_being_stopped() -> None:
    story, seen = two(), (alive(), alive())
    asked: dict[str, Any] = {"heartbeat_in_s": 0.0, "interrupt_file": "q"}
    assert chosen(story, *seen, **asked) == IntendStop(numbers=(1, 2), intent="interrupt", reason="q")
    intended(story, 1, "hang")
    assert chosen(story, *seen, **asked) == IntendStop(numbers=(2,), intent="interrupt", reason="q")
    intended(story, 2, "stop")
    assert chosen(story, *seen, **asked) == Heartbeat()


# ── a stop ──


def test_a_signal_is_sent_when_it_is_due() -> None:
    story = intended(running())
    assert chosen(story, alive(signal_in_s=0.0)) == Signal(number=1)
    assert chosen(story, alive(signal_in_s=1.5)) == Watch(wait_s=1.5)
    # An execution that is being stopped is not judged.
    hung = alive(signal_in_s=1.5, judgement=judgement(Kind.HUNG))
    assert chosen(story, hung) == Watch(wait_s=1.5)
    assert chosen(story, alive(signal_in_s=8.0, read_in_s=9.0, judge_in_s=0.5)) == Watch(wait_s=8.0)


@pytest.mark.parametrize("kind", ["session", "prompt"])
def test_a_parallel_stage_that_cannot_start_stops_those_that_have_started(kind: str) -> None:
    failure = StartFailure(kind=kind, stage="two", reason="why")
    remembered = memory(start_failure=failure)
    story = Story(LENSES, pipeline=PIPELINE).open(1, stage="one")
    reason = "why" if kind == "session" else "two cannot start: why"
    stop = IntendStop(numbers=(1,), intent="interrupt", reason=reason)
    for seen in (found(Reading.STARTING, awaited_s=0.0), alive(signal_in_s=0.0), ENDED):
        assert chosen(story, seen, remembered=remembered) == stop
    assert chosen(intended(story), ENDED, remembered=remembered) == RecordEnd(number=1)


def test_a_process_that_could_not_be_forked_stops_nothing() -> None:
    failure = StartFailure(kind="process", stage="two", reason="why", again_mono=NOW.mono + 1)
    story = Story(LENSES, pipeline=PIPELINE).open(1, stage="one").start(1).move("running")
    assert chosen(story, alive(), remembered=memory(start_failure=failure)) == Watch(wait_s=5.0)


# ── the judgement ──


def limited(minutes: float, **more: Any) -> Story:
    """The service refuses the agent for this many minutes."""
    resets_at = clock.iso(NOW.wall + 60 * minutes)
    return running(**more).tell(ev.AgentRateLimit(attempt=1, offset=1, resets_at=resets_at))


def over_budget() -> Story:
    story = running(limits=Limits(deadline_s=None, budget_tokens=10))
    return story.tell(ev.AgentUsage(attempt=1, offset=1, input_tokens=10, cumulative=True))


def in_another_session(mode: str = "resume") -> Story:
    story = Story(limits=Limits(deadline_s=None)).attempt(1, mode=mode)
    return story.tell(ev.AgentSession(attempt=1, offset=1, session_id="N"))


def stop(intent: str, reason: str) -> IntendStop:
    return IntendStop(numbers=(1,), intent=intent, reason=reason)


HUNG_AT_INPUT = judgement(Kind.HUNG, waits_for_input=True, last_line="Continue? [y/n]")


@pytest.mark.req("SUP-11", "SUP-13", "SUP-15", "SUP-18", "BUD-1", "BUD-2")
@pytest.mark.parametrize(
    ("story", "judged", "step"),
    [
        (running(), judgement(), Watch(wait_s=5.0)),
        (running(), judgement(Kind.QUIET), Watch(wait_s=5.0)),
        (running(), judgement(Kind.QUIET, waits_for_input=True), Watch(wait_s=5.0)),
        (running(), judgement(Kind.EXCUSED), Watch(wait_s=5.0)),
        (running(), judgement(Kind.HUNG), stop("hang", "it is hung")),
        (running(), judgement(Kind.LINGERING), stop("linger", "it is lingering")),
        (running(), HUNG_AT_INPUT, stop("input", "it waits for input: Continue? [y/n]")),
        # News are recorded before they are followed.
        *((running(), judgement(kind, is_news=True), RecordVerdict(number=1)) for kind in Kind),
        (
            running(limits=Limits(deadline_s=60.0)),
            judgement(lived_s=60.0),
            stop("deadline", "its deadline of 1m00s is over"),
        ),
        (
            running(limits=Limits(deadline_s=None, timeout_s=60.0)),
            judgement(lived_s=60.0),
            stop("timeout", "the attempt exceeded its 1m00s limit"),
        ),
        (
            running(limits=Limits(deadline_s=None, output_bytes=9)),
            judgement(output_bytes=10),
            stop("output", "it printed more than 9 bytes"),
        ),
        # A program may choose the session of a new attempt itself.
        (in_another_session(mode="fresh"), judgement(), Watch(wait_s=5.0)),
        (in_another_session(), judgement(), stop("session", "asked for session S, got N")),
        (limited(3), judgement(silent_s=10.0), stop("limit", "it waits for a rate limit")),
        (limited(3), judgement(silent_s=9.0), Watch(wait_s=1.0)),
        # Soon over: it is not worth a new session.
        (limited(2), judgement(silent_s=10.0), Watch(wait_s=5.0)),
        # It said that it tries again, and not when the limit is lifted.
        (
            running().tell(ev.AgentRetry(attempt=1, offset=1, reason="429", is_limited=True)),
            judgement(silent_s=10.0),
            Watch(wait_s=5.0),
        ),
        (
            limited(3).tell(ev.AgentResult(attempt=1, offset=2, is_error=True)),
            judgement(silent_s=10.0),
            Watch(wait_s=5.0),
        ),
        (
            limited(3).tell(ev.AgentToolStarted(attempt=1, offset=2, tool_id="1", name="Bash")),
            judgement(silent_s=10.0),
            Watch(wait_s=5.0),
        ),
    ],
)
def test_reasons_to_stop_an_agent(story: Story, judged: Judgement, step: Step) -> None:
    assert chosen(story, alive(judgement=judged)) == step


def test_a_budget_that_is_reached_stops_the_agent() -> None:
    story = over_budget()
    assert story.task.budget_reached is not None
    assert chosen(story, alive(judgement=judgement())) == stop("budget", story.task.budget_reached)


def test_a_limit_comes_before_what_the_watch_concludes() -> None:
    story = in_another_session()
    story.task.deadline_s = 60.0
    judged = judgement(Kind.HUNG, lived_s=60.0, is_news=True)
    assert chosen(story, alive(judgement=judged)) == stop("deadline", "its deadline of 1m00s is over")
    story.task.deadline_s = None
    assert chosen(story, alive(judgement=judged)) == stop("session", "asked for session S, got N")
    assert chosen(running(), alive(judgement=judged)) == RecordVerdict(number=1)


def test_a_chore_is_judged_by_its_limits_alone() -> None:
    over = judgement(lived_s=20 * 600.0 + 300.0, silent_s=500.0)
    reason = "the gate of a_run exceeded its 3h25m limit"
    assert chosen(gate(), alive(judgement=over)) == stop("timeout", reason)
    assert chosen(gate(), alive(judgement=judgement(silent_s=500.0))) == Watch(wait_s=5.0)


# ── the order ──


def test_the_rules_in_their_order() -> None:
    """Of two executions the second one is at an earlier rule each time."""
    story = intended(two(), 2)
    hung = alive(read_in_s=0.0, judgement=judgement(Kind.HUNG), needs_session_lock=True)
    due: dict[str, Any] = {"heartbeat_in_s": 0.0, "interrupt_file": "q"}
    assert chosen(story, hung, alive(signal_in_s=0.0, read_in_s=0.0), **due) == Signal(number=2)
    assert chosen(story, hung, found(Reading.RUNNING), **due) == RecordStart(number=2)
    assert chosen(story, hung, ENDED, **due) == RecordEnd(number=2)
    reads = alive(read_in_s=0.0)
    assert chosen(story, hung, reads, **due) == LockSession(number=1)
    assert chosen(story, hung.evolve(needs_session_lock=False), reads, **due) == stop("hang", "it is hung")
    assert chosen(story, reads, reads, **due) == stop("interrupt", "q")
    due["interrupt_file"] = None
    assert chosen(story, reads, reads, **due) == Heartbeat()
    # Last, because a flood of output has always more to read.
    assert chosen(story, reads, reads) == ReadOutput(numbers=(1, 2))
    assert chosen(story, alive(read_in_s=3.0), alive(read_in_s=2.0)) == Watch(wait_s=2.0)


# ── when to judge again ──


@pytest.mark.parametrize(
    ("story", "judged", "again_s"),
    [
        (running(), judgement(), 40.0),
        (running(limits=Limits(deadline_s=60.0)), judgement(lived_s=45.0), 15.0),
        (running(limits=Limits(deadline_s=None, timeout_s=50.0)), judgement(lived_s=45.0), 5.0),
        (limited(3), judgement(silent_s=7.0), 3.0),
        (limited(1), judgement(silent_s=7.0), 40.0),
    ],
)
def test_an_agent_is_judged_again_when_something_may_have_changed(
    story: Story, judged: Judgement, again_s: float
) -> None:
    attempt = story.task.attempt
    assert attempt is not None
    assert judge_again_s(story.task, attempt, judged, NOW) == again_s
