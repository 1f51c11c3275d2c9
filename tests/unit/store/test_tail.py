"""The ends of files."""

from __future__ import annotations

import os

import pytest

from holdfast.store import tail
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
    assert tail.last_lines(path, count) == (wanted, len(data))


def test_a_file_that_does_not_exist_has_no_lines(place: Place) -> None:
    path = os.path.join(place.root, "nothing")
    assert tail.last_lines(path, 5) == (b"", 0)
    assert tail.last_line(path) == ""


def test_the_last_line_that_says_something(place: Place) -> None:
    path = os.path.join(place.root, "log")
    with open(path, "wb") as file:
        file.write(b"one\n  two  \n\n   \n\xff\n\n"[:-4])
    assert tail.last_line(path) == "two"


def test_an_endless_line_is_read_up_to_the_limit(place: Place) -> None:
    path = os.path.join(place.root, "log")
    with open(path, "wb") as file:
        file.write(b"x" * 200_000)
    data, end = tail.last_lines(path, 3, 50_000)
    assert (50_000 <= len(data) < 150_000, end) == (True, 200_000)


def test_the_last_bytes(place: Place) -> None:
    path = os.path.join(place.root, "log")
    with open(path, "wb") as file:
        file.write(b"abc\xff")
    assert (tail.end_bytes(path, 2), tail.end_bytes(path, 9)) == (b"c\xff", b"abc\xff")
    assert tail.end_text(path, 2) == "c\ufffd"
    assert tail.end_bytes(os.path.join(place.root, "nothing"), 2) == b""


ASKED = "--- interrupted: over budget ---\n--- resumed by ada@host, no message ---\n"


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("[session 0a1b]\n212 passed\n--- attempt 2 (resume) ---\n[session 0a1b]\n", "212 passed"),
        (f"212 passed\n{ASKED}--- attempt 2 (resume) ---\n", "212 passed"),
        (f"212 passed\n{ASKED}--- attempt 2 (again) ---\n--- attempt 2 ended: hung ---\n"
         "--- retry: now ---\n--- attempt 3 (again) ---\n", "212 passed"),
        (f"--- the gate refused the work: {'x' * 3000} ---\n--- attempt 2 (resume) ---\n", ""),
        (f"{ASKED}--- attempt 2 (resume) ---\n", ""),
        # Printed by the agent: no heading of an attempt follows, or holdfast writes no such line.
        (f"212 passed\n{ASKED}", "--- resumed by ada@host, no message ---"),
        ("--- done ---\n--- attempt 1 ended: hung ---\n--- attempt 2 (again) ---\n", "--- done ---"),
    ],
)  # fmt: skip
def test_a_separator_is_not_what_was_said_last(place: Place, log: str, said: str) -> None:
    path = os.path.join(place.root, "log")
    with open(path, "w", encoding="utf-8") as file:
        file.write(log)
    assert tail.last_line(path) == said
