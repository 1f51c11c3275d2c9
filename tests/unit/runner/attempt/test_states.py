"""The pure decisions in the states of an observer."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.agents import registry
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.attempt_table import Reading
from holdfast.model.execution import Chore
from holdfast.model.process import Exit, ProcessIdentity
from holdfast.model.spec import Limits, TaskSpec
from holdfast.runner.attempt import dying, judging, outcome, record_wait, starting, subject
from holdfast.runner.attempt.judging import Basis
from holdfast.runner.attempt.reading import AttemptRecords
from holdfast.watch.verdict import Kind

AGENT = ProcessIdentity(boot_id="b", pid=7, start_time=1)
EXITED = Exit(by="recorder", wait_status=0, exit_code=0, at="2027-01-01T00:00:10.000Z")
NO_EXEC = Exit(by="recorder", wait_status=None, exit_code=None, exec_errno=2, at=EXITED.at)


def records(reading: Reading, exit_record: Exit | None = None) -> AttemptRecords:
    return AttemptRecords(reading=reading, identity=AGENT, born=None, exit=exit_record)


@pytest.mark.parametrize(
    ("reading", "exit_record", "is_writing", "expected"),
    [
        (Reading.EXITED, EXITED, False, True),
        # The record is there, whatever else the recorder does.
        (Reading.EXITED, EXITED, True, True),
        # The recorder lives and owes the record.
        (Reading.RUNNING, None, False, False),
        # No process is left that could write it.
        (Reading.ORPHANED, None, False, True),
        (Reading.NEVER_STARTED, None, False, True),
        # The directory was removed; the recorder makes it again.
        (Reading.ORPHANED, None, True, False),
        (Reading.NEVER_STARTED, None, True, False),
    ],
)
def test_a_death_is_over_when_nothing_more_will_be_recorded(
    reading: Reading, exit_record: Exit | None, is_writing: bool, expected: bool
) -> None:
    assert dying.is_over(records(reading, exit_record), is_recorder_writing=is_writing) is expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (records(Reading.SPAWN_FAILED, NO_EXEC), True),
        # It was executed, and identity.json was removed.
        (records(Reading.SPAWN_FAILED, EXITED), False),
        (records(Reading.EXITED, EXITED), False),
        (records(Reading.STARTING), False),
        (records(Reading.NEVER_STARTED), False),
    ],
)
def test_only_an_error_of_exec_means_that_there_was_no_agent(state: AttemptRecords, expected: bool) -> None:
    assert starting.could_not_execute(state) is expected


@pytest.mark.parametrize(
    ("awaited_s", "since_woken_s", "expected"),
    [(0.0, 9.0, False), (2.0, 9.0, False), (2.1, 9.0, True), (9.0, 2.0, False), (9.0, 2.1, True)],
)
def test_a_recorder_is_woken_when_its_record_is_overdue_and_not_at_every_look(
    awaited_s: float, since_woken_s: float, expected: bool
) -> None:
    assert record_wait.is_overdue(awaited_s, since_woken_s) is expected


OLD = Basis(journal_length=5, progress_mono=1.0)


@pytest.mark.parametrize(
    ("new", "verdict", "room_bytes", "expected"),
    [
        (OLD, Kind.WORKING, None, False),
        (OLD, Kind.QUIET, 1, False),
        # An event.
        (OLD.evolve(journal_length=6), Kind.WORKING, None, True),
        # Output of an agent that works anyway.
        (OLD.evolve(progress_mono=2.0), Kind.WORKING, None, False),
        # Output of one that was silent.
        (OLD.evolve(progress_mono=2.0), Kind.QUIET, None, True),
        (OLD.evolve(progress_mono=2.0), Kind.HUNG, None, True),
        (OLD.evolve(progress_mono=2.0), Kind.EXCUSED, None, True),
        # It printed all that it may.
        (OLD, Kind.WORKING, 0, True),
    ],
)
def test_what_outdates_a_judgement(new: Basis, verdict: Kind, room_bytes: int | None, expected: bool) -> None:
    assert judging.is_outdated(OLD, new, verdict, room_bytes=room_bytes) is expected


def test_the_first_judgement_is_due_at_once() -> None:
    assert judging.is_outdated(Basis(), Basis(journal_length=0), Kind.WORKING, room_bytes=None)


@pytest.mark.parametrize(
    ("seen_mono", "due_mono", "now_mono", "expected"),
    [
        # It slept until its time, or was woken before.
        (10.0, 40.0, 40.1, 0.0),
        (10.0, 40.0, 20.0, 0.0),
        # Load.
        (10.0, 40.0, 41.0, 0.0),
        # It was stopped while it slept.
        (10.0, 40.0, 45.0, 5.0),
        # It was stopped between a judgement and what follows from it: it was late for nothing.
        (45.0, 40.0, 50.0, 5.0),
        (45.0, 0.0, 50.0, 5.0),
    ],
)
def test_time_in_which_the_runner_was_stopped(
    seen_mono: float, due_mono: float, now_mono: float, expected: float
) -> None:
    assert judging.stopped_s(seen_mono, due_mono, now_mono) == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [("", ""), ("a\nb\n", "b"), ("a\n \n\t\n", "a"), ("x" * 300, "x" * 200), ("  go on? ", "go on?")],
)
def test_the_last_line_that_says_something(text: str, line: str) -> None:
    assert judging.last_line(text) == line


def opened(**more: Any) -> ev.AttemptOpened:
    values = {"attempt": 1, "attempt_id": "ses_1", "stage": "a_run", "agent": "claude", "mode": "fresh"}
    return ev.AttemptOpened(**{**values, **more})


def test_silence_is_judged_by_the_agent_that_runs() -> None:
    limits = Limits(stale_s=77.0)
    spec = TaskSpec(
        task_id="t", task_name="t", goal="", agent="claude", project_dir="/", stages=(), limits=limits
    )
    claude, codex = registry.adapter("claude"), registry.adapter("codex")
    assert subject.limits_of(spec, Attempt(opened()), claude) == limits
    other = subject.limits_of(spec, Attempt(opened(agent="codex")), codex)
    assert other == limits.evolve(stale_s=codex.capabilities.stale_s)
    assert subject.limits_of(spec, Chore(opened(kind="gate")), claude).stale_s is None


def lived(exit_record: Exit | None, checked_at: str | None = None) -> float:
    execution = Attempt(opened())
    execution.started = ev.AttemptStarted(
        attempt=1, pid=7, boot_id="b", start_time=1, mono_s=100.0, started_at="2027-01-01T00:00:00.000Z"
    )
    return outcome.life_s(execution, records(Reading.EXITED, exit_record), "/no/such/log", checked_at)


@pytest.mark.parametrize(
    ("exit_record", "checked_at", "lived_s"),
    [
        (EXITED.evolve(boot_id="b", mono_s=130.0), None, 30.0),
        # The clock of another boot says nothing: it lived until it was last seen.
        (EXITED.evolve(boot_id="c", mono_s=5.0), "2027-01-01T00:00:04.000Z", 4.0),
        (None, "2027-01-01T00:00:04.000Z", 4.0),
        (None, None, 0.0),
    ],
)
def test_how_long_it_lived(exit_record: Exit | None, checked_at: str | None, lived_s: float) -> None:
    assert lived(exit_record, checked_at) == lived_s


def test_what_never_started_has_not_lived() -> None:
    assert (
        outcome.life_s(Attempt(opened()), records(Reading.SPAWN_FAILED, NO_EXEC), "/no/such/log", None) == 0.0
    )
