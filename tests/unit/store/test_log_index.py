"""output.idx: when which part of the log was printed."""

from __future__ import annotations

import os

import pytest

from holdfast.store.log_index import LogIndex, LogIndexWriter, Point


@pytest.fixture
def path(home: str) -> str:
    os.makedirs(home, exist_ok=True)
    return os.path.join(home, "output.idx")


def point(at: float, log_bytes: int, attempt: int = 1) -> Point:
    return Point(at=at, log_bytes=log_bytes, journal_bytes=10 * log_bytes, attempt=attempt)


def write(path: str, *points: Point, before: int | None = None) -> None:
    writer = LogIndexWriter(path)
    for each in points:
        writer.add(each, before=each.log_bytes - 1 if before is None else before)
    writer.close()


def test_points_are_found_by_time_and_by_byte(path: str) -> None:
    write(path, point(100.0, 10), point(200.5, 30), point(300.0, 90, attempt=2))
    index = LogIndex(path)
    assert index.first() == point(100.0, 10)
    assert index.at_time(99.0) is None
    assert index.at_time(200.5) == point(200.5, 30)
    assert index.at_time(1e9) == point(300.0, 90, attempt=2)
    assert [index.at_byte(byte) for byte in (0, 9, 10, 89, 90)] == [
        point(100.0, 10),
        point(100.0, 10),
        point(200.5, 30),
        point(300.0, 90, attempt=2),
        None,
    ]
    index.close()


def test_without_an_index_everything_is_unknown(path: str) -> None:
    index = LogIndex(path)
    assert (index.first(), index.at_time(1.0), index.at_byte(0)) == (None, None, None)
    index.close()


def test_one_record_per_second_and_attempt(path: str) -> None:
    write(path, *(point(100.0 + step / 10, step + 1) for step in range(25)), point(102.45, 26, attempt=2))
    assert os.path.getsize(path) == 32 * 4
    index = LogIndex(path)
    assert index.at_time(102.4) == point(102.4, 25)
    index.close()


def test_times_stay_in_order(path: str) -> None:
    write(path, point(300.0, 10), point(200.0, 20))
    index = LogIndex(path)
    assert index.at_time(300.0) == point(300.0, 20)
    index.close()


def test_what_is_not_in_the_log_and_a_torn_record_are_dropped(path: str) -> None:
    write(path, point(100.0, 10), point(200.0, 20), point(300.0, 30))
    with open(path, "ab") as file:
        file.write(b"torn")
    write(path, point(400.0, 25), before=15)
    index = LogIndex(path)
    assert os.path.getsize(path) == 32 * 2
    assert index.at_time(399.0) == point(100.0, 10)
    assert index.at_time(400.0) == point(400.0, 25)
    index.close()


@pytest.mark.parametrize("field", [0, 1, 2])
def test_a_number_that_cannot_be_is_not_believed(path: str, field: int) -> None:
    numbers = [0, 0, 0, (0x4846 << 48) | 1]
    numbers[field] = 2**64 - 1
    with open(path, "wb") as file:
        file.write(b"".join(number.to_bytes(8, "little") for number in numbers))
    index = LogIndex(path)
    assert index.first() is None
    index.close()
    write(path, point(100.0, 10), before=5)
    index = LogIndex(path)
    assert index.first() == point(100.0, 10)
    index.close()


@pytest.mark.timeout(20)
def test_an_endless_index_is_dropped(path: str) -> None:
    with open(path, "wb") as file:
        file.truncate(1 << 42)
    write(path, point(100.0, 10), before=5)
    assert os.path.getsize(path) == 32


def test_what_is_not_ours_is_not_believed(path: str) -> None:
    with open(path, "wb") as file:
        file.write(b"\xff" * 320)
    index = LogIndex(path)
    assert (index.first(), index.at_time(1e12), index.at_byte(0)) == (None, None, None)
    index.close()
    os.unlink(path)
    os.symlink("/dev/zero", path)
    assert LogIndex(path).first() is None
