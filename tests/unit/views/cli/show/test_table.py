"""Tables fit, and say the most important."""

from __future__ import annotations

import pytest

from holdfast.views.cli.show import amounts, fit_text, table, terminal

HEAD = ("TASK", "STATE", "AGENT", "COST", "LAST")
ROW = ("20260131-fix-the-tests-k3qa", "completed", "command", "-", "a last line that is rather long")


def test_wide_enough_is_everything() -> None:
    assert table.fitting_columns(HEAD, [ROW], room=100, dropped_first=(2, 3)) == [0, 1, 2, 3, 4]


def test_what_says_nothing_goes_first() -> None:
    assert table.fitting_columns(HEAD, [ROW], room=66, dropped_first=(2, 3)) == [0, 1, 2, 4]


def test_then_the_columns_in_their_order() -> None:
    assert table.fitting_columns(HEAD, [ROW], room=57, dropped_first=(2, 3)) == [0, 1, 4]
    assert table.fitting_columns(HEAD, [ROW], room=10, dropped_first=(2, 3)) == [0, 1, 4]


LONG = ("a-name-that-is-as-long-as-an-id-may-be-" + "x" * 25, *ROW[1:])


def test_a_long_id_leaves_its_place_before_columns_go() -> None:
    assert table.fitting_columns(HEAD, [LONG], room=66, dropped_first=(2, 3)) == [0, 1, 4]
    assert table.fitting_columns(HEAD, [LONG], room=66, dropped_first=(2, 3), shortest=24) == [0, 1, 2, 4]
    assert table.fitting_columns(HEAD, [LONG], room=50, dropped_first=(2, 3), shortest=24) == [0, 1, 4]


def test_what_says_nothing_goes_before_an_id_leaves_its_place() -> None:
    assert table.fitting_columns(HEAD, [ROW], room=66, dropped_first=(2, 3), shortest=10) == [0, 1, 2, 4]


def test_a_shortened_text_keeps_its_beginning_and_says_so() -> None:
    assert fit_text.shorten("abcdef", 6) == "abcdef"
    assert fit_text.shorten("abcdef", 5) == "abcd…"


@pytest.mark.parametrize(
    ("room", "widths"),
    [(100, [64, 9, 20]), (94, [64, 9, 17]), (80, [51, 9, 16]), (50, [24, 9, 13]), (30, [16, 9, 1])],
)
def test_the_last_column_gives_way_then_the_id(room: int, widths: list[int]) -> None:
    found = [64, 9, 20]
    table.squeeze(found, room, shortest=24)
    assert found == widths


@pytest.mark.parametrize(
    ("text", "room", "kept"),
    [("abc", 3, "abc"), ("abcd", 3, "abc"), ("漢字", 3, "漢"), ("漢字", 4, "漢字"), ("", 0, "")],
)
def test_a_text_is_cut_by_its_width(text: str, room: int, kept: str) -> None:
    assert fit_text.cut(text, room) == kept


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0"), (999, "999"), (1000, "1.0k"), (12345, "12.3k"), (999_960, "1.0M"), (4_500_000, "4.5M")],
)
def test_numbers_are_short(count: int, shown: str) -> None:
    assert amounts.short(count) == shown


def test_a_cost_that_nobody_told_is_unknown_not_zero() -> None:
    assert amounts.cost({"usage": {"cost_usd": None}}) == ""
    assert amounts.cost({"usage": {"cost_usd": 0.0}}) == "$0.00"


def test_every_state_has_a_colour() -> None:
    from holdfast.model.status import Status

    assert set(terminal.STATE_COLOURS) == set(Status)
