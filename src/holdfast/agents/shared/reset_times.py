"""When a limit ends, parsed from a CLI's message."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from holdfast import clock
from holdfast.agents.shared import spans

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

#: `limit reached|1794726612`
_EPOCH = re.compile(r"\|(\d{10})\b")
#: `try again in 1m20s`, `in 2 days 3 hours 5 minutes`, `in 28ms`
_SPAN = re.compile(r"(?:again|resets) in ((?:(?:,|and)?\s*\d+(?:\.\d+)?\s*[a-z]+)+)", re.IGNORECASE)
#: `resets 3pm (Europe/Berlin)`, `try again at 8:00 AM`, `try again at Nov 17th, 2026 8:00 AM`,
#: `resets Nov 17, 3pm (UTC)`
_MOMENT = re.compile(
    r"(?:again|resets?)(?: (?:at|on))? "
    r"(?:(?P<month>[a-z]{3})[a-z]* (?P<day>\d{1,2})(?:st|nd|rd|th)?,?(?: (?P<year>\d{4}),?)?(?: at)? )?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>[ap])m(?: \((?P<zone>[\w/+-]+)\))?",
    re.IGNORECASE,
)


def find(text: str, now: float) -> str | None:
    """The time in `text`, in UTC; None if there is none. A time without a zone is local."""
    try:
        if epoch := _EPOCH.search(text):
            return clock.iso(float(epoch[1]))
        if span := _SPAN.search(text):
            delay_s = spans.seconds(span[1])
            return clock.iso(now + delay_s) if delay_s is not None else None
        if moment := _MOMENT.search(text):
            return _moment(moment, now)
    except (ValueError, OverflowError):
        pass
    return None


def _moment(match: re.Match[str], now: float) -> str:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        zone = ZoneInfo(match["zone"]) if match["zone"] else None
    except ZoneInfoNotFoundError:
        zone = None
    here = datetime.fromtimestamp(now, UTC).astimezone(zone)
    hour = int(match["hour"]) % 12 + (12 if match["half"] in "pP" else 0)
    at = here.replace(hour=hour, minute=int(match["minute"] or 0), second=0, microsecond=0)
    if match["month"]:
        month = _MONTHS.index(match["month"].lower()) + 1
        at = at.replace(year=int(match["year"] or at.year), month=month, day=int(match["day"]))
        if not match["year"] and at < here - timedelta(days=1):
            at = at.replace(year=at.year + 1)
    elif at <= here:
        at += timedelta(days=1)
    return clock.iso(at.timestamp())
