"""A machine that sleeps, and a clock that is set: nothing ends, hangs or happens twice because of it.

Wall time jumps in both cases. Monotonic time stands still during a sleep, and never goes back.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from holdfast import clock, spawn
from holdfast.keeper import delivery, loop_state
from holdfast.model import events as ev
from holdfast.model.spec import Limits
from holdfast.queue import schedule
from holdfast.queue.engine import Item
from holdfast.queue.local import LocalQueue
from holdfast.redact import Redactor
from holdfast.runner.ledger import Ledger
from holdfast.runner.plan import limits
from holdfast.runner.plan.step import Watch
from holdfast.store import admitted, atomic
from holdfast.store.journal import Journal
from holdfast.store.layout import Home
from tests.support.performing import Driver, context_of
from tests.support.story import BEGIN, Story

HOUR = 3600.0


class Clock:
    """Both clocks, as a test sets them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.mono = BEGIN, 1000.0
        monkeypatch.setattr(clock, "now", lambda: self.wall)
        monkeypatch.setattr(clock, "mono", lambda: self.mono)

    def pass_by(self, seconds: float) -> None:
        """Time passes normally."""
        self.wall += seconds
        self.mono += seconds

    def sleep(self, seconds: float) -> None:
        """The machine sleeps."""
        self.wall += seconds

    def step_back(self, seconds: float) -> None:
        """A person or NTP sets the clock."""
        self.wall -= seconds


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


# ── the loop ──


def failed(times: int, *, now: float) -> loop_state.LoopState:
    state = loop_state.LoopState()
    for _ in range(times):
        state = loop_state.after_end(state, "failed", now=now)
    return state


@pytest.mark.req("BUD-6")
@pytest.mark.parametrize(("times", "pause_s"), [(1, 2), (3, 8), (8, 256), (9, 300), (100, 300)])
def test_the_pause_behind_failures_is_as_long_as_it_was_meant_to_be(times: int, pause_s: float) -> None:
    state = failed(times, now=BEGIN)
    assert loop_state.left_s(state, now=BEGIN) == pytest.approx(pause_s, abs=0.01)
    assert loop_state.left_s(state, now=BEGIN + pause_s) == 0
    assert loop_state.left_s(state, now=BEGIN + HOUR) == 0
    # Set back by an hour, or by less than the pause: the loop continues and does not wait for the old time.
    assert loop_state.left_s(state, now=BEGIN - HOUR) == 0
    assert loop_state.left_s(state, now=BEGIN - 1) == 0


def test_an_item_that_is_due_after_a_sleep_is_claimed_once(home: str, hands: Clock) -> None:
    with LocalQueue(Home(home)) as queue:
        queue.add(Item(task_id="it", not_before=clock.iso(BEGIN + HOUR)))
        assert queue.claim("me") is None
        hands.sleep(HOUR + 1)
        assert queue.claim("me") is not None
        # Its time is to come again: it is claimed already, and stays so.
        hands.step_back(HOUR)
        assert queue.claim("me") is None
        assert [(item.state, item.attempts) for item in queue.items()] == [("claimed", 1)]
        assert queue.ack("it", status="completed")


# ── a task that waits ──


@pytest.fixture
def waiting(home: str, hands: Clock):
    """A task that waits for ten minutes, and its next step."""
    packet = Home(home).packet("t")
    os.makedirs(packet.path)
    os.mkfifo(packet.bell)
    with open(packet.journal, "ab"):
        pass
    admitted.adopt(packet)
    story = Story(status="spawning")
    story.now = BEGIN - 3
    story.open(1).start(1)
    story.move("running").tell(_ended(1)).move("crashed")
    story.now = BEGIN - 1
    story.move("waiting", wake_at=clock.iso(BEGIN + 600))
    journal = Journal(packet.journal)
    with context_of(Ledger(packet, story.task, journal, Redactor({}))) as context:
        driver = Driver(context)

        def take_step() -> float:
            """Take one step; returns how long the runner sleeps after it."""
            step = driver.take_step()
            return step.wait_s if isinstance(step, Watch) else 0.0

        yield story.task, take_step
    journal.close()


def _ended(number: int) -> ev.AttemptEnded:
    return ev.AttemptEnded(
        attempt=number,
        outcome="crashed",
        detail="",
        exit_code=1,
        exit_signal=None,
        by="recorder",
        lived_s=1.0,
        noticed_at=clock.iso(BEGIN),
    )


def test_a_wait_is_over_in_time(waiting: Any, hands: Clock) -> None:
    task, take_step = waiting
    assert 0 < take_step() <= 60
    hands.pass_by(599)
    assert 0 < take_step() <= 1
    hands.pass_by(1.01)
    assert take_step() == 0
    assert task.status == "spawning"


def test_a_wait_that_was_slept_through_is_over(waiting: Any, hands: Clock) -> None:
    task, take_step = waiting
    take_step()
    hands.sleep(8 * HOUR)
    assert take_step() == 0
    assert task.status == "spawning"


def test_a_clock_that_is_set_back_makes_no_wait_longer(waiting: Any, hands: Clock) -> None:
    task, take_step = waiting
    take_step()
    hands.step_back(8 * HOUR)
    assert take_step() > 0
    hands.pass_by(601)
    assert take_step() == 0
    assert task.status == "spawning"


def test_nor_where_the_next_runner_finds_it_so(waiting: Any, hands: Clock) -> None:
    task, take_step = waiting
    hands.step_back(8 * HOUR)
    assert take_step() > 0
    hands.pass_by(603)
    assert take_step() == 0
    assert task.status == "spawning"


# ── limits of time ──


def test_a_limit_counts_what_the_attempt_lived_and_not_what_the_clock_says() -> None:
    story = Story(limits=Limits(deadline_s=100.0, timeout_s=50.0)).open(1).start(1).move("running")
    attempt = story.task.attempt
    assert attempt is not None
    assert limits.reached(story.task, attempt, lived_s=49.0, output_bytes=0) is None
    over = limits.reached(story.task, attempt, lived_s=50.0, output_bytes=0)
    assert over is not None
    assert over.intent == "timeout"


# ── the keeper ──


@pytest.mark.starts_processes
def test_starts_of_the_keeper_in_the_future_are_forgotten(
    home: str, hands: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many starts, then the clock is set back: they would forbid the next one for hours."""
    monkeypatch.delenv("HOLDFAST_KEEPER")
    # As with a unit: it is started from outside.
    programs = os.path.join(os.path.dirname(home), "bin")
    os.makedirs(programs)
    os.symlink("/bin/true", os.path.join(programs, "systemctl"))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    atomic.write_json(Home(home).service, {"unit": "holdfast.service"}, durable=False)
    for _ in range(12):
        hands.pass_by(61)
        assert spawn.ensure_keeper(Home(home), by_person=False) is not None
    assert spawn.ensure_keeper(Home(home), by_person=False) is None
    hands.step_back(8 * HOUR)
    assert spawn.ensure_keeper(Home(home), by_person=False) is not None


def test_a_notice_is_tried_again_after_its_pause_wherever_the_clock_went(hands: Clock) -> None:
    next_at = clock.iso(BEGIN + 25)
    assert delivery.time_left_s(next_at, 25) == pytest.approx(25, abs=0.01)
    hands.sleep(HOUR)
    assert delivery.time_left_s(next_at, 25) < 0
    hands.step_back(8 * HOUR)
    assert delivery.time_left_s(next_at, 25) == 25


# ── schedules ──


@pytest.mark.parametrize("every", ["day@02:00", "6h"])
@pytest.mark.parametrize("field", ["last_at", "created_at"])
def test_a_schedule_that_ran_while_the_clock_was_ahead_runs_again(
    hands: Clock, home: str, every: str, field: str
) -> None:
    times = {"created_at": clock.iso(hands.wall), "last_at": None}
    times[field] = clock.iso(hands.wall + 10 * 365 * 24 * HOUR)
    made = schedule.Schedule(name="it", every=every, **times)
    due = schedule.missed_at(made, hands.wall)
    assert due is not None
    assert hands.wall - 25 * HOUR < due <= hands.wall
    ran = made.evolve(last_at=clock.iso(due))
    assert schedule.missed_at(ran, hands.wall) is None
    assert 0 < schedule.next_at(ran) - hands.wall <= 25 * HOUR


@pytest.mark.parametrize("every", ["1h", "day@02:00"])
def test_a_new_schedule_does_not_run_at_once_because_the_clock_is_set_back_over_a_due_time(
    hands: Clock, home: str, every: str
) -> None:
    some_day = schedule.Schedule(name="it", every="day@02:00", created_at=clock.iso(BEGIN))
    hands.wall = schedule.due_after(some_day, BEGIN) + 0.7
    made = some_day.evolve(every=every, created_at=clock.iso(hands.wall))
    next_at = schedule.next_at(made)
    assert next_at >= hands.wall + HOUR - 1
    hands.step_back(0.9)
    assert schedule.missed_at(made, hands.wall) is None
    assert schedule.next_at(made) == next_at


def test_a_clock_that_is_set_back_a_little_runs_nothing_twice(hands: Clock, home: str) -> None:
    made = schedule.Schedule(name="it", every="6h", created_at=clock.iso(hands.wall - 24 * HOUR))
    ran = made.evolve(last_at=clock.iso(hands.wall))
    hands.step_back(HOUR)
    assert schedule.missed_at(ran, hands.wall) is None
    assert schedule.next_at(ran) == hands.wall + 7 * HOUR
