"""Lines of a log that are quoted."""

from __future__ import annotations

import os

import pytest

from holdfast.views.text import log_tail
from tests.conftest import Place


def test_no_log_has_no_lines(place: Place) -> None:
    assert log_tail.last_lines(os.path.join(place.root, "nothing"), 5) == []


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
