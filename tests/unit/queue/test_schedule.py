"""Schedules: when a run is due, which ones were missed, and what it is called."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from holdfast import clock
from holdfast.queue import schedule
from holdfast.queue.schedule import Schedule


@pytest.fixture(autouse=True)
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.delenv("TZ")
    time.tzset()


def at(local: str) -> float:
    return time.mktime((*time.strptime(local, "%Y-%m-%d %H:%M")[:8], -1))


def local(when: float) -> str:
    return clock.local(clock.iso(when), "%Y-%m-%d %H:%M")


def made(every: str, created: str = "2026-01-30 12:00", last: str | None = None) -> Schedule:
    last_at = None if last is None else clock.iso(at(last))
    return Schedule(name="deps", every=every, created_at=clock.iso(at(created)), last_at=last_at)


@pytest.mark.parametrize(
    ("every", "last", "due"),
    [
        ("day@02:00", None, "2026-01-31 02:00"),
        ("day@13:00", None, "2026-01-30 13:00"),
        ("day@02:00", "2026-01-31 02:00", "2026-02-01 02:00"),
        ("friday@13:00", None, "2026-01-30 13:00"),
        ("fri@11:00", None, "2026-02-06 11:00"),
        ("monday@09:00", None, "2026-02-02 09:00"),
        ("6h", None, "2026-01-30 18:00"),
        ("6h", "2026-01-30 18:00", "2026-01-31 00:00"),
        ("day@02:30", "2026-03-28 02:30", "2026-03-29 03:30"),
        ("day@02:30", "2026-03-29 03:30", "2026-03-30 02:30"),
    ],
)
def test_when_the_next_run_is_due(every: str, last: str | None, due: str) -> None:
    assert local(schedule.next_at(made(every, last=last))) == due


@pytest.mark.parametrize(
    ("every", "now", "missed"),
    [
        ("day@02:00", "2026-01-31 01:59", None),
        ("day@02:00", "2026-01-31 02:00", "2026-01-31 02:00"),
        # A machine that was off for three days, or a year: one run.
        ("day@02:00", "2026-02-03 09:00", "2026-02-03 02:00"),
        ("day@02:00", "2027-02-03 09:00", "2027-02-03 02:00"),
        ("monday@09:00", "2026-03-01 09:00", "2026-02-23 09:00"),
        ("6h", "2026-02-03 09:00", "2026-02-03 06:00"),
        ("1m", "2027-02-03 09:00", "2027-02-03 09:00"),
    ],
)
def test_missed_runs_are_one_run(every: str, now: str, missed: str | None) -> None:
    due = schedule.missed_at(made(every), at(now))
    assert (None if due is None else local(due)) == missed


@pytest.mark.parametrize("millis", range(0, 1000, 7))
def test_a_run_that_is_recorded_is_not_due_again(millis: int) -> None:
    created = at("2026-01-30 12:00") + millis / 1000
    one = made("1h").evolve(created_at=clock.iso(created))
    due = schedule.missed_at(one, created + 3700.0)
    assert due is not None
    assert schedule.missed_at(one.evolve(last_at=clock.iso(due)), created + 3700.0) is None


def test_the_id_of_a_run_is_always_the_same() -> None:
    one = made("day@02:00")
    assert schedule.run_id(one, schedule.next_at(one)) == "deps-20260131-0200"
    long = made("day@02:00").evolve(name="x" * 64)
    assert len(schedule.run_id(long, schedule.next_at(long))) <= 64


@pytest.mark.parametrize(
    ("every", "said"),
    [
        ("day", "write day@02:00"),
        ("monday", "write monday@02:00"),
        ("day@25:00", "not a time of day"),
        ("5", "needs a unit"),
        ("30s", "at least 60s"),
        ("someday@02:00", "not a day"),
        ("0 2 * * *", "a schedule is day@02:00"),
        ("", "a schedule is"),
    ],
)
def test_what_is_no_schedule(every: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        schedule.check(every)
