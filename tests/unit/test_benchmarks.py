"""The benchmarks' own arithmetic: a wrong table would be worse than none."""

from __future__ import annotations

import pytest

from benchmarks import stats, table
from benchmarks.rows import ROWS, measure
from benchmarks.table import Baseline, Line


@pytest.mark.parametrize(("percent", "expected"), [(0, 1.0), (50, 3.0), (75, 4.0), (100, 5.0), (90, 4.6)])
def test_percentile_interpolates(percent: float, expected: float):
    assert stats.percentile([5.0, 1.0, 4.0, 2.0, 3.0], percent) == pytest.approx(expected)


def test_percentile_of_one_value_is_that_value():
    assert stats.percentile([7.0], 99) == 7.0


def test_percentile_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="no values"):
        stats.percentile([], 50)


@pytest.mark.parametrize(
    ("value", "expected"), [(0.2134, "0.213"), (1.256, "1.26"), (16.44, "16.4"), (1250.4, "1250"), (0.0, "0")]
)
def test_numbers_have_three_digits(value: float, expected: str):
    assert stats.number(value) == expected


def _line(value: float = 2.0, **more) -> Line:
    return Line(row=2, what="a thing", value=value, unit="ms", **more)


def test_the_ratio_is_ours_to_theirs():
    assert _line(baseline=Baseline(name="C", value=1.0)).ratio() == "2×"


def test_a_small_ratio_is_turned_round():
    assert _line(baseline=Baseline(name="bash", value=2000.0)).ratio() == "1/1000"


@pytest.mark.parametrize("value", [None, 0.0])
def test_there_is_no_ratio_to_nothing(value: float | None):
    assert _line(baseline=Baseline(name="bash", value=value)).ratio() == "–"


def test_nothing_against_something_is_zero():
    assert _line(0.0, baseline=Baseline(name="bash", value=4)).ratio() == "0×"


def test_a_missed_target_is_shouted():
    cells = _line(baseline=Baseline(name="bash", value=None), target="≤ 1 ms", met=False).cells()
    assert cells == ["2", "a thing", "2 ms", "bash: never", "–", "≤ 1 ms", "MISSED"]


def test_columns_line_up():
    lines = table.as_text([_line(), _line(123.0, target="≤ 1000 ms", met=True)]).splitlines()
    assert len(lines) == 4
    assert lines[2].index("2 ms") == lines[3].index("123 ms")


def test_markdown_has_one_row_per_line():
    assert table.as_markdown([_line(), _line()]).count("\n| 2 |") == 2


def test_notes_are_printed_once():
    assert table.notes([_line(notes=("a", "b")), _line(notes=("a",))]) == ["Row 2: a", "Row 2: b"]


@pytest.mark.parametrize("row", ROWS)
def test_every_row_can_be_measured(row: int):
    assert callable(measure(row))
