"""Time: the only module that reads the clocks.

Wall time (`now`, seconds since 1970) is for display and for times that survive a reboot. Durations use
`mono`, which stops while the machine sleeps, so a suspended laptop is not a hang. `datetime` and `calendar`
are not used, because importing them is slow.
"""

from __future__ import annotations

import sys
import time

#: The last second that `parse_iso` accepts.
_LAST = 253402300799.0
#: The longest valid duration.
LONGEST_S = 100 * 365 * 86400.0

#: File times come from a kernel clock that is up to one tick behind (CLOCK_REALTIME_COARSE, which has no name
#: here).
FILE_TICK_S = time.clock_getres(5) if sys.platform == "linux" else 0.01
#: The last formatted second and its text: consecutive times are often in the same second.
_second = (0, "1970-01-01T00:00:00")

now = time.time
mono = time.monotonic
sleep = time.sleep


def iso(at: float) -> str:
    """Format a time: `1700000000.5` → `2023-11-14T22:13:20.500Z`.

    Out-of-range values are clamped (an agent may report 1e300).
    """
    if not 0.0 <= at <= _LAST:
        at = _LAST if at > _LAST else 0.0
    whole = int(at)
    millis = int((at - whole) * 1000)
    second = _second
    if second[0] != whole:
        second = _remember(whole)
    return f"{second[1]}.{millis:03d}Z"


def _remember(whole: int) -> tuple[int, str]:
    global _second
    _second = (whole, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)))
    return _second


#: Seconds that were parsed before: a list of tasks has each time twice, and many tasks begin together.
_seconds: dict[str, int] = {}
_MAX_SECONDS = 100


def parse_iso(text: str) -> float:
    """The inverse of `iso`, with or without a fraction. Raises ValueError."""
    if text[-1:] != "Z":
        raise ValueError(f"not a UTC time: {text!r}")
    whole = _seconds.get(text[:19])
    if whole is None:
        whole = _parse_second(text)
    if len(text) <= 20:
        return float(whole)
    # Digits only: `.9e999` would be a number that no other function of time accepts.
    if text[19] != "." or not text[20:-1].isdecimal():
        raise ValueError(f"not a UTC time: {text!r}")
    return whole + float("0" + text[19:-1])


def _parse_second(text: str) -> int:
    if len(text) < 20 or text[10] != "T":
        raise ValueError(f"not a UTC time: {text!r}")
    date, clock = text[:10].split("-"), text[11:19].split(":")
    if len(date) != 3 or len(clock) != 3:
        raise ValueError(f"not a UTC time: {text!r}")
    days = _days_since_1970(int(date[0]), int(date[1]), int(date[2]))
    whole = days * 86400 + int(clock[0]) * 3600 + int(clock[1]) * 60 + int(clock[2])
    if len(_seconds) >= _MAX_SECONDS:
        _seconds.clear()
    _seconds[text[:19]] = whole
    return whole


def _days_since_1970(year: int, month: int, day: int) -> int:
    """Days since 1970 in the proleptic Gregorian calendar.

    The year starts in March, so that a leap day is its last day.
    """
    if month <= 2:
        year -= 1
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return 365 * year + year // 4 - year // 100 + year // 400 + day_of_year - 719468


def parse_hour(text: str) -> int | None:
    """`22:00` → minutes after midnight; None if it is not a time of day."""
    hours, colon, minutes = text.partition(":")
    if not colon or len(minutes) != 2 or not 1 <= len(hours) <= 2 or not (hours + minutes).isascii():
        return None
    if not (hours + minutes).isdigit() or int(hours) > 23 or int(minutes) > 59:
        return None
    return int(hours) * 60 + int(minutes)


def parse_window(text: str) -> tuple[int, int] | None:
    """`22:00-06:00` → minutes after midnight of its begin and end; None if it is not a window."""
    begin, dash, end = text.partition("-")
    first, last = parse_hour(begin.strip()), parse_hour(end.strip())
    return (first, last) if dash and first is not None and last is not None and first != last else None


def opens_in_s(window: tuple[int, int], now: float) -> float:
    """Seconds until local clocks are within the window; 0 if they are. It may span midnight."""
    local = time.localtime(now)
    minute, (first, last) = local.tm_hour * 60 + local.tm_min, window
    is_open = first <= minute < last if first < last else minute >= first or minute < last
    return 0.0 if is_open else local_minute(first, now) - now


def local_day(now: float) -> str:
    """The date of local clocks: `2026-01-31`."""
    return time.strftime("%Y-%m-%d", time.localtime(now))


def next_local(text: str, now: float) -> float | None:
    """The next time that local clocks show `22:00`; None if the text is not a time of day.

    An hour that is skipped by daylight saving time comes an hour later.
    """
    minute = parse_hour(text)
    return None if minute is None else local_minute(minute, now)


def local_minute(minute: int, now: float, *, weekday: int | None = None) -> float:
    """The first time after `now` that is this minute of the day, and this weekday (Monday is 0).

    A minute that clocks show twice, because they go back, is the first of both.
    """
    local = time.localtime(now)
    for days in range(9):
        at = _local_time((local.tm_year, local.tm_mon, local.tm_mday + days), minute)
        if at > now and weekday in (None, time.localtime(at).tm_wday):
            return at
    raise ValueError(f"no such minute: {minute}")  # not reached: every weekday is within eight days


#: How far clocks go back where they do.
_BACK_S = (7200.0, 3600.0, 1800.0)


def _local_time(day: tuple[int, int, int], minute: int) -> float:
    """When local clocks show this minute on a day. If they never do, as much later as they were put forward.

    For both cases, mktime depends on what it was asked before.
    """
    # -1: mktime finds out whether daylight saving time applies.
    at = time.mktime((*day, minute // 60, minute % 60, 0, 0, 0, -1))
    shown = time.localtime(at)
    # It may be before midnight.
    skipped = (minute - shown.tm_hour * 60 - shown.tm_min) % 1440
    if 0 < skipped < 720:
        return at + 60.0 * skipped
    return next((at - back_s for back_s in _BACK_S if time.localtime(at - back_s)[:5] == shown[:5]), at)


def iso_now() -> str:
    """The current time, in the format used in files."""
    return iso(now())


def local(at: str, form: str) -> str:
    """A time of a file in the local time zone, formatted as by strftime; unchanged if it is not a time."""
    try:
        return time.strftime(form, time.localtime(parse_iso(at)))
    except (ValueError, OverflowError, OSError):
        return at


def duration_text(seconds: float) -> str:
    """A duration for display: `4.2s`, `3m20s`, `5h02m`. Seconds are rounded."""
    # By milliseconds, as in JSON: 1.65 and 1.6500001 would differ from view to view.
    tenths = (round(seconds * 1000) + 50) // 100
    if tenths < 600:
        return f"{tenths / 10:.1f}s"
    minutes, secs = divmod(int(seconds + 0.5), 60)
    if minutes < 60:
        return f"{minutes}m{secs:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours < 48 else f"{hours // 24}d{hours % 24:02d}h"


def whole_seconds(seconds: float) -> str:
    """As `duration_text`, but `4s`: for a line that is drawn again while the time passes."""
    return duration_text(int(seconds + 0.5)).replace(".0s", "s")


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
#: Other spellings of a unit, for the error message.
_SPELLINGS = {
    "s": ("sec", "secs", "second", "seconds"),
    "m": ("min", "mins", "minute", "minutes"),
    "h": ("hr", "hrs", "hour", "hours"),
    "d": ("day", "days"),
}


def unit_of(word: str) -> str:
    """`minutes` → `m`; empty if the word is not a unit."""
    word = word.lower()
    return next((unit for unit, others in _SPELLINGS.items() if word == unit or word in others), "")


def parse_duration(text: str, *, needs_unit: bool = False) -> float:
    """Parse a duration: `90`, `90s`, `1.5h`, `1h30m` → seconds. Raises ValueError.

    With `needs_unit`, a number without a unit is refused, unless it is 0: people mean days or minutes.
    """
    total, number = 0.0, ""
    for char in text.strip():
        if char.isdigit() or char == ".":
            number += char
        elif char in _UNITS and number:
            total += float(number) * _UNITS[char]
            number = ""
        else:
            raise ValueError(f"not a duration: {text!r} ({_written_right(text)})")
    if number and needs_unit and float(number):
        units = [f"{text.strip()}{unit}" for unit in _UNITS]
        raise ValueError(f"a duration needs a unit: {', '.join(units[:-1])} or {units[-1]}")
    if number:
        total += float(number)
    elif not text.strip():
        raise ValueError("an empty duration")
    if total > LONGEST_S:
        raise ValueError(f"longer than 100 years: {text!r}")
    return total


def _written_right(text: str) -> str:
    """`write 5m` for `5 minutes`; else examples."""
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    word = text.strip()[len(number) :].lower()
    number = number.strip()
    if number.isdigit() and word in ("w", "week", "weeks"):
        return f"write {int(number) * 7}d"
    unit = unit_of(word)
    return f"write {number}{unit}" if unit and number.isdigit() else "write 90s, 15m, 1h30m or 7d"
