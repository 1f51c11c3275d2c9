"""A raw log, read in chunks: every line once, or in a flood every line that may be an event."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.runner.output import raw_log
from holdfast.runner.output.raw_log import RawLog, skip_pattern

DELTA = b'{"type":"delta","text":"a"}'
DELTAS = ('{"type":"delta"', '{"type":"more.of.it"')
SKIP = skip_pattern(DELTAS)
LINES = st.lists(
    st.sampled_from(
        [
            DELTA,
            b'{"type":"delta"',
            b'{"type":"more.of.it"}',
            b'{"type":"deltas"}',
            b'{"type":"event","n":1}',
            b"{",
            b"",
            b"plain",
            b" {",
            b"\xff\xfe",
            b"{x" * 300,
        ]
    ),
    max_size=60,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("log") / "stdout.log")


def write(path: str, data: bytes) -> RawLog:
    with open(path, "wb") as file:
        file.write(data)
    log = RawLog(path, 0)
    log.measure()
    return log


def read_all(log: RawLog, *, skip: bool) -> list[tuple[int, bytes]]:
    read: list[tuple[int, bytes]] = []
    reached = -1
    while reached < log.reached:
        reached = log.reached
        read += log.read_lines(final=True, skip=SKIP if skip else None)
    log.close()
    return read


@settings(deadline=None, max_examples=200)
@given(lines=LINES, is_torn=st.booleans(), chunk_bytes=st.sampled_from([1, 7, 64, 1000]))
def test_every_line_is_read_once_and_placed_behind_its_last_byte(path, lines, is_torn, chunk_bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raw_log, "_CHUNK_BYTES", chunk_bytes)
        data = b"".join(line + b"\n" for line in lines)
        data = data[:-1] if is_torn else data
        log = write(path, data)
        read = read_all(log, skip=False)
    expected = data.split(b"\n")
    expected = expected if expected[-1] else expected[:-1]
    assert [line for _, line in read] == expected
    assert all(data[:offset].removesuffix(b"\n").endswith(line) for offset, line in read)
    assert log.position == len(data)
    assert log.left_out == 0


@settings(deadline=None, max_examples=200)
@given(lines=LINES, chunk_bytes=st.sampled_from([1, 7, 64, 1000, 100_000]))
def test_a_flood_costs_no_line_that_may_be_an_event(path, lines, chunk_bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raw_log, "_FLOOD_CHUNK_BYTES", chunk_bytes)
        data = b"".join(line + b"\n" for line in lines)
        log = write(path, data)
        read = read_all(log, skip=True)
    prefixes = tuple(prefix.encode() for prefix in DELTAS)
    must = [line for line in lines if line.startswith(b"{") and not line.startswith(prefixes)]
    assert [line for _, line in read if line.startswith(b"{") and not line.startswith(prefixes)] == must
    assert all(data[:offset].endswith(line + b"\n") for offset, line in read)
    assert [offset for offset, _ in read] == sorted({offset for offset, _ in read})
    assert log.position == len(data)


def test_deltas_are_skipped_and_only_other_lines_count_as_left_out(path: str) -> None:
    plain = b"printed by a child\n"
    log = write(path, b"{}\n" + (DELTA + b"\n") * 5 + plain * 3 + (DELTA + b"\n") * 2 + b'{"type":"event"}\n')
    assert [line for _, line in read_all(log, skip=True)] == [b"{}", b'{"type":"event"}']
    assert log.left_out == 3 * len(plain)


def test_a_reader_without_deltas_is_shown_every_object(path: str) -> None:
    log = write(path, b"{}\nx\n" + DELTA + b"\n{}\n")
    assert [line for _, line in log.read_lines(skip=skip_pattern(()))] == [b"{}", DELTA, b"{}"]
    log.close()


def test_a_line_that_is_too_long_is_noted_and_the_next_is_read(path, monkeypatch) -> None:
    monkeypatch.setattr(raw_log, "_LINE_BYTES", 5000)
    monkeypatch.setattr(raw_log, "_CHUNK_BYTES", 1000)
    log = write(path, b"{}\n" + b"x" * 20_000 + b"\nafter it\n")
    lines = [line for _, line in read_all(log, skip=False)]
    assert lines == [b"{}", b"[line longer than 32 MB left out]", b"after it"]
    assert log.position == os.path.getsize(path)
