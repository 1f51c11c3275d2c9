"""Time: the only module that asks the machine what time it is.

Wall time (`now`, seconds since 1970) is for people and for times that survive a reboot. Durations use `mono`, which
stands still while the machine sleeps, so a suspended laptop is not a hang. Neither `datetime` nor `calendar` is used:
their import costs more than everything here.
"""

from __future__ import annotations

import sys
import time

#: The last second that `parse_iso` can read.
_LAST = 253402300799.0
#: The longest duration that anybody can mean.
LONGEST_S = 100 * 365 * 86400.0

#: The times of files come from a clock of the kernel that is up to one tick behind: CLOCK_REALTIME_COARSE, which has no name here.
FILE_TICK_S = time.clock_getres(5) if sys.platform == "linux" else 0.01
#: The second that was asked for last, and its text: whoever writes many times writes them within few seconds.
_second = (0, "1970-01-01T00:00:00")

now = time.time
mono = time.monotonic
sleep = time.sleep


def iso(at: float) -> str:
    """`1700000000.5` → `2023-11-14T22:13:20.500Z`. Total: a time that has no year of four digits becomes the nearest one
    that has (numbers come from agents, and an agent may say 1e300)."""
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


def parse_iso(text: str) -> float:
    """The inverse of `iso`; accepts seconds with or without a fraction. Raises ValueError."""
    body = text.removesuffix("Z")
    if body == text or len(body) < 19 or body[10] != "T":
        raise ValueError(f"not a UTC time: {text!r}")
    date, clock = body[:10].split("-"), body[11:19].split(":")
    days = _days_since_1970(int(date[0]), int(date[1]), int(date[2]))
    seconds = int(clock[0]) * 3600 + int(clock[1]) * 60 + int(clock[2])
    return days * 86400 + seconds + (float("0" + body[19:]) if body[19:] else 0.0)


def _days_since_1970(year: int, month: int, day: int) -> int:
    """Days of the proleptic Gregorian calendar; the year is made to begin in March, so that a leap day is its last."""
    if month <= 2:
        year -= 1
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return 365 * year + year // 4 - year // 100 + year // 400 + day_of_year - 719468


def iso_now() -> str:
    """The present as it stands in files."""
    return iso(now())


def words(seconds: float) -> str:
    """A duration for people: `4.2s`, `3m20s`, `5h02m`."""
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, secs = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{secs:02d}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours < 48 else f"{hours // 24}d{hours % 24:02d}h"


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str) -> float:
    """`90`, `90s`, `1.5h`, `1h30m` → seconds. Raises ValueError."""
    total, number = 0.0, ""
    for char in text.strip():
        if char.isdigit() or char == ".":
            number += char
        elif char in _UNITS and number:
            total += float(number) * _UNITS[char]
            number = ""
        else:
            raise ValueError(f"not a duration: {text!r} (write 90, 90s, 15m, 1h30m)")
    if number:
        total += float(number)
    elif not text.strip():
        raise ValueError("an empty duration")
    if total > LONGEST_S:
        raise ValueError(f"longer than a hundred years: {text!r}")
    return total
