"""The ends of logs."""

from __future__ import annotations

import os

import pytest

from holdfast.views.text import log_tail
from tests.conftest import Place


@pytest.mark.parametrize(
    ("data", "count", "wanted"),
    [
        (b"", 3, b""),
        (b"a\nb\nc\n", 2, b"b\nc\n"),
        (b"a\nb\nc", 2, b"b\nc"),
        (b"a\n\n\n", 2, b"\n\n"),
        (b"1\rp\r2\nx\r\n", 1, b"x\r\n"),
        (b"a\nb\n", 0, b""),
        (b"a\nb\n", 9, b"a\nb\n"),
        (b"x" * 40000 + b"\nlast\n", 1, b"last\n"),
        (b"first\n" + b"x" * 40000 + b"\nlast\n", 2, b"x" * 40000 + b"\nlast\n"),
    ],
)
def test_the_last_lines(place: Place, data: bytes, count: int, wanted: bytes) -> None:
    path = os.path.join(place.root, "log")
    with open(path, "wb") as file:
        file.write(data)
    assert log_tail.read_last_lines(path, count) == (wanted, len(data))


def test_no_log_has_no_lines(place: Place) -> None:
    path = os.path.join(place.root, "nothing")
    assert log_tail.read_last_lines(path, 5) == (b"", 0)
    assert log_tail.last_lines(path, 5) == []
    assert log_tail.last_line(path) == ""


def test_the_last_line_that_says_something(place: Place) -> None:
    path = os.path.join(place.root, "log")
    with open(path, "wb") as file:
        file.write(b"one\n  two  \n\n   \n\xff\n\n"[:-4])
    assert log_tail.last_line(path) == "two"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("x" * 400, "x" * 400),
        ("x" * 401, "x" * 400 + " …"),
        ("x" * 4000 + " … (5000000 bytes)", "x" * 400 + " … (5000000 bytes)"),
    ],
)
def test_a_line_that_is_quoted_fills_no_screen(place: Place, line: str, wanted: str) -> None:
    path = os.path.join(place.root, "log")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"before\n{line}\n")
    assert log_tail.last_lines(path, 5) == ["before", wanted]
