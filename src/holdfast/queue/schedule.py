"""Schedules: tasks that are added to the queue again and again (`submit --every day@02:00`).

A schedule is one file in the home, with all that a task needs. The id of each run is made from the time at
which it was due, so a keeper that is killed between creating a run and recording it creates no second one.
"""

from __future__ import annotations

import os

from holdfast import clock, ids
from holdfast.errors import HoldfastError
from holdfast.model.record import Record
from holdfast.store import admitted, atomic
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The shortest interval.
LEAST_S = 60.0
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
EXAMPLES = "day@02:00, monday@09:00 or 6h"
#: A calendar time comes back within this time.
_WEEK_S = 8 * 86400.0
#: Characters of a schedule's name in the ids of its runs.
_NAME_CHARS = 48


class Schedule(Record):
    """One schedule."""

    schema: str = "holdfast.schedule/1"
    name: str
    #: `day@02:00`, `monday@09:00` (local time), or an interval such as `6h`.
    every: str
    created_at: str
    #: When the last run was due; null before the first.
    last_at: str | None = None
    #: The task: its spec, prompt (text, or null) and captured environment.
    spec: dict[str, Any] = {}
    prompt: str | None = None
    env: dict[str, Any] = {}


def check(every: str) -> None:
    """Raise ValueError if the text is not a schedule."""
    _parse(every)


def _parse(every: str) -> float | tuple[int | None, int]:
    """An interval in seconds, or (weekday or None, minute of the day)."""
    day, at, hour = every.strip().lower().partition("@")
    if not at:
        if day in ("day", "week") or any(name.startswith(day) for name in _WEEKDAYS if len(day) >= 3):
            raise ValueError(f"at what time? write {day}@02:00")
        try:
            interval_s = clock.parse_duration(day, needs_unit=True)
        except ValueError as error:
            raise ValueError(f"{error}; a schedule is {EXAMPLES}") from None
        if interval_s < LEAST_S:
            raise ValueError(f"must be at least {LEAST_S:g}s, not {every}")
        return interval_s
    minute = clock.parse_hour(hour)
    if minute is None:
        raise ValueError(f"not a time of day: {hour!r} (write {day}@02:00)")
    if day == "day":
        return None, minute
    for number, name in enumerate(_WEEKDAYS):
        if len(day) >= 3 and name.startswith(day):
            return number, minute
    raise ValueError(f"not a day: {day!r} (write {EXAMPLES})")


def due_after(schedule: Schedule, after: float) -> float:
    """The first time after `after` at which a run is due."""
    parsed = _parse(schedule.every)
    if isinstance(parsed, tuple):
        return clock.local_minute(parsed[1], after, weekday=parsed[0])
    begin = _begin(schedule)
    return begin + ((after - begin) // parsed + 1) * parsed


def _begin(schedule: Schedule) -> float:
    """When intervals start: a whole second, because a file's time is cut to milliseconds and would be due
    again."""
    return float(int(clock.parse_iso(schedule.created_at)))


def next_at(schedule: Schedule, now: float | None = None) -> float:
    """When the next run is due; in the past if it was missed.

    If the last run, or the schedule, is of a time when the clock was far ahead, it is what was missed in the
    last days: else it would not run for years. The same due time has the same id, and is not run twice.
    """
    now = clock.now() if now is None else now
    last = clock.parse_iso(schedule.last_at or schedule.created_at)
    # Up to the second due time: the clock was set back a little, perhaps over the first one.
    is_possible = last <= due_after(schedule, due_after(schedule, now))
    return due_after(schedule, last if is_possible else now - _WEEK_S)


def missed_at(schedule: Schedule, now: float) -> float | None:
    """The last due time that has no run yet; None if none is due. Earlier ones are skipped."""
    due = next_at(schedule, now)
    if due > now:
        return None
    parsed = _parse(schedule.every)
    if not isinstance(parsed, tuple):
        begin = _begin(schedule)
        return max(due, begin + (now - begin) // parsed * parsed)
    # Calendar times are not equally far apart: go forward from a week ago.
    due = max(due, due_after(schedule, now - _WEEK_S))
    while (later := due_after(schedule, due)) <= now:
        due = later
    return due


def run_id(schedule: Schedule, due: float) -> str:
    """The task id of the run that is due at a time: always the same."""
    return f"{schedule.name[:_NAME_CHARS]}-{clock.local(clock.iso(due), '%Y%m%d-%H%M')}"


def of_run(home: Home, task_id: str) -> Schedule | None:
    """The schedule of which a task is a run, by its id; None if it is none, or the schedule was removed."""
    name, *due = task_id.rsplit("-", 2)
    if [len(part) for part in due] != [8, 4] or not all(part.isdecimal() for part in due):
        return None
    return read(home, name)


def read_all(home: Home) -> list[Schedule]:
    """All schedules, by name. An unreadable one is left out."""
    try:
        names = sorted(os.listdir(home.schedules))
    except OSError:
        return []
    found = [read(home, name.removesuffix(".json")) for name in names if name.endswith(".json")]
    return [schedule for schedule in found if schedule is not None]


def read(home: Home, name: str) -> Schedule | None:
    """The schedule with this name; None if there is none, or it cannot be read."""
    try:
        ids.check_task_id(name)
        data = atomic.read_json(home.schedule(name))
        schedule = Schedule.from_json(data) if data and isinstance(data["spec"], dict) else None
        if schedule is None or schedule.name != name:
            return None
        # Whatever a step computes from it.
        clock.iso(next_at(schedule))
        if schedule.last_at is not None:
            clock.parse_iso(schedule.last_at)
        return schedule
    except (HoldfastError, TypeError, ValueError, KeyError, AttributeError, OverflowError, OSError):
        return None


def create(home: Home, schedule: Schedule) -> None:
    """Write a new schedule, durably. Raises OSError, StorageError."""
    admitted.admit_schedule(home, schedule.name, schedule.to_json())
    write(home, schedule)


def write(home: Home, schedule: Schedule) -> None:
    """Write a schedule, durably. Raises StorageError."""
    atomic.make_directory(home.schedules)
    atomic.write_json(home.schedule(schedule.name), schedule.to_json(), durable=True)


def is_admitted(home: Home, schedule: Schedule) -> bool:
    """Whether a command of holdfast made it, and not another process that can write to the home."""
    return admitted.is_schedule_admitted(home, schedule.name, schedule.to_json())


def remove(home: Home, name: str) -> None:
    """Remove a schedule; its runs stay."""
    atomic.forget(home.schedule_admission(name))
    atomic.remove(home.schedule(name))


def summary(schedule: Schedule) -> dict[str, Any]:
    """A schedule for `queue ls --json`, without prompt and environment."""
    return {
        "name": schedule.name,
        "every": schedule.every,
        "agent": str(schedule.spec.get("agent", "")),
        "next_at": clock.iso(next_at(schedule)),
        "last_at": schedule.last_at,
    }
