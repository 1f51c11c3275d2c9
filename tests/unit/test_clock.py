"""Times and durations as written in files and on command lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from holdfast import clock


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (0.0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000.5, "2023-11-14T22:13:20.500Z"),
        (1_709_210_096.0, "2024-02-29T12:34:56.000Z"),
        (4_102_444_799.999, "2099-12-31T23:59:59.999Z"),
    ],
)
def test_a_time_is_written_in_utc_and_read_again(at: float, text: str) -> None:
    assert clock.iso(at) == text
    assert clock.parse_iso(text) == pytest.approx(at, abs=0.001)


@pytest.mark.parametrize("at", [0.001, 0.9999, 1.25, 1_790_000_000.123, 1_790_000_000.9996])
def test_a_time_survives_its_text_to_the_millisecond_and_never_goes_forward(at: float) -> None:
    back = clock.parse_iso(clock.iso(at))
    assert -0.0011 < back - at < 0.0001


@pytest.mark.parametrize(
    "text", ["2024-02-29T12:34:56Z", "2024-02-29T12:34:56.0Z", "2024-02-29T12:34:56.000000Z"]
)
def test_seconds_may_have_a_fraction_or_not(text: str) -> None:
    assert clock.parse_iso(text) == 1_709_210_096.0


@pytest.mark.parametrize(
    "text",
    ["", "Z", "now", "2024-02-29", "2024-02-29T12:34:56", "2024-02-29T12:34:56+00:00", "2024-02-29 12:34:56Z",
     "2024-aa-29T12:34:56Z"],
)  # fmt: skip
def test_anything_else_is_no_time(text: str) -> None:
    with pytest.raises(ValueError):
        clock.parse_iso(text)


def test_now_is_written_with_z() -> None:
    before = clock.now()
    assert before - 0.002 <= clock.parse_iso(clock.iso_now()) <= clock.now()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("0", 0),
        ("0.5", 0.5),
        ("15m", 900),
        ("1.5h", 5400),
        ("1h30m", 5400),
        ("2d", 172800),
        ("1d1h1m1s", 90061),
        (" 5m ", 300),
        ("1m30", 90),
    ],
)
def test_a_duration_reads_as_people_write_it(text: str, seconds: float) -> None:
    assert clock.parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", " ", "h", "5x", "five", "-3", "1h-3m", "1..5", "1,5h", "s5"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError):
        clock.parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0s"),
        (4.21, "4.2s"),
        # The same time reads the same in every view, rounded to milliseconds or not.
        (1.65, "1.7s"),
        (1.6500001, "1.7s"),
        (1.6499999, "1.7s"),
        (59.94, "59.9s"),
        (59.9499, "1m00s"),
        (59.97, "1m00s"),
        (60, "1m00s"),
        (109.97, "1m50s"),
        (200, "3m20s"),
        (3599, "59m59s"),
        (3600, "1h00m"),
        (18120, "5h02m"),
        (172800, "2d00h"),
        (180000, "2d02h"),
    ],
)
def test_readable_durations(seconds: float, text: str) -> None:
    assert clock.duration_text(seconds) == text


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (float("nan"), "1970-01-01T00:00:00.000Z"),
        (float("-inf"), "1970-01-01T00:00:00.000Z"),
        (-5.0, "1970-01-01T00:00:00.000Z"),
        (float("inf"), "9999-12-31T23:59:59.000Z"),
        (1e300, "9999-12-31T23:59:59.000Z"),
        (1e15, "9999-12-31T23:59:59.000Z"),
    ],
)
def test_every_number_is_some_time(at: float, text: str) -> None:
    assert clock.iso(at) == text
    clock.parse_iso(text)


@pytest.mark.parametrize("text", ["9" * 30, "9" * 400, "1" + "0" * 20 + "d", "36501d"])
def test_an_absurd_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="100 years"):
        clock.parse_duration(text)


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.delenv("TZ")
    time.tzset()


@pytest.mark.usefixtures("in_berlin")
def test_people_read_local_time() -> None:
    assert clock.local("2026-01-31T12:00:00.000Z", "%Y-%m-%d %H:%M %Z") == "2026-01-31 13:00 CET"
    assert clock.local("2026-07-31T12:00:00.000Z", "%H:%M") == "14:00"
    assert clock.local("nonsense", "%H:%M") == "nonsense"


@pytest.mark.usefixtures("in_berlin")
@pytest.mark.parametrize(
    ("text", "now", "next_at"),
    [
        ("22:00", "2026-01-31T12:00:00Z", "2026-01-31T21:00:00.000Z"),
        ("12:59", "2026-01-31T12:00:00Z", "2026-02-01T11:59:00.000Z"),
        ("13:00", "2026-01-31T12:00:00Z", "2026-02-01T12:00:00.000Z"),
        # The night in which clocks go forward at 02:00: 02:30 does not exist.
        ("02:30", "2026-03-28T22:00:00Z", "2026-03-29T01:30:00.000Z"),
        ("04:00", "2026-03-28T22:00:00Z", "2026-03-29T02:00:00.000Z"),
    ],
)
def test_the_next_time_that_local_clocks_show(text: str, now: str, next_at: str) -> None:
    at = clock.next_local(text, clock.parse_iso(now))
    assert at is not None
    assert clock.iso(at) == next_at


@pytest.mark.parametrize("text", ["", "22", "24:00", "22:60", "2:5", "22:00:00", "ab:cd", "+1:00", "²2:00"])
def test_what_is_no_time_of_day(text: str) -> None:
    assert clock.next_local(text, 0.0) is None


@pytest.mark.parametrize("text", ["5", "1h30", "0.5"])
def test_a_duration_needs_a_unit_where_people_type_it(text: str) -> None:
    with pytest.raises(ValueError, match=f"{text}s, {text}m, {text}h or {text}d"):
        clock.parse_duration(text, needs_unit=True)
    assert clock.parse_duration("0", needs_unit=True) == 0.0


@pytest.fixture
def zones(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Set the time zone; it is put back."""

    def enter(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield enter
    monkeypatch.delenv("TZ", raising=False)
    time.tzset()


#: Zones with the day on which their clocks go back, and an hour that they then show twice.
_BACK = [
    ("Europe/Berlin", "2026-10-25", 150),
    ("America/New_York", "2026-11-01", 90),
    ("Australia/Lord_Howe", "2026-04-05", 105),
    ("Antarctica/Troll", "2026-10-25", 90),
]


@pytest.mark.parametrize("season", ["winter", "summer"])
@pytest.mark.parametrize(("zone", "day", "minute"), _BACK)
def test_an_hour_that_comes_twice_counts_once(
    zones: Callable[[str], None], zone: str, day: str, minute: int, season: str
) -> None:
    """Whatever time of the year was asked for before: mktime guesses by that."""
    zones(zone)
    month = 1 if season == "winter" else 7
    due = clock.parse_iso(f"{day}T12:00:00Z") - 3 * 86400
    shown = []
    for _ in range(6):
        time.mktime((2026, month, 15, 12, 0, 0, 0, 0, -1))
        due = clock.local_minute(minute, due + 1)
        shown.append(time.strftime("%Y-%m-%d %H:%M", time.localtime(due)))
    assert len({text[:10] for text in shown}) == 6, shown
    assert {text[11:] for text in shown} == {f"{minute // 60:02}:{minute % 60:02}"}


@pytest.mark.parametrize("season", [1, 7])
def test_an_hour_that_is_skipped_comes_an_hour_later(zones: Callable[[str], None], season: int) -> None:
    zones("Europe/Berlin")
    time.mktime((2026, season, 15, 12, 0, 0, 0, 0, -1))
    due = clock.local_minute(150, clock.parse_iso("2026-03-28T12:00:00Z"))
    assert time.strftime("%Y-%m-%d %H:%M", time.localtime(due)) == "2026-03-29 03:30"
