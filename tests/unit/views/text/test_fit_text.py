"""Lines fit, and what is to be copied stays whole."""

from __future__ import annotations

import pytest

from holdfast.views.text import fit_text

HINT = "hint: nothing is lost; 'holdfast queue retry 20260131-fix' lets it go again, when you like"
PATH = "/a/path/that/is/longer/than/the/line/may/be"


@pytest.mark.parametrize(
    ("text", "columns", "lines"),
    [
        ("short", 20, ["short"]),
        ("one two three", 7, ["one two", "  three"]),
        ("one two three", None, ["one two three"]),
        (f"see {PATH} for more", 30, ["see", PATH, "  for more"]),
        (PATH, 30, [PATH]),
        ("a   b     c", 8, ["a   b", "  c"]),
        ("漢字漢字 漢字", 10, ["漢字漢字", "  漢字"]),
        ("", 20, [""]),
    ],
)
def test_a_text_is_broken_at_spaces_only(text: str, columns: int | None, lines: list[str]) -> None:
    assert fit_text.wrap(text, columns, rest="  ") == lines


@pytest.mark.parametrize("columns", range(20, 90))
def test_a_command_in_quotes_stays_whole(columns: int) -> None:
    lines = fit_text.wrap(HINT, columns, rest="  ")
    assert any("'holdfast queue retry 20260131-fix'" in line for line in lines)
    assert all(len(line) <= max(columns, 37) for line in lines)
    assert " ".join(line.strip() for line in lines) == HINT


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("0" * 20, ["| 00000000", "| 00000000", "| 0000"]),
        ("ab " + "0" * 9, ["| ab", "| 00000000", "| 0"]),
        ("漢字漢字漢", ["| 漢字漢字", "| 漢"]),
        ("it says 'holdfast ls -a'", ["| it says", "| 'holdfas", "| t ls -a'"]),
    ],
)
def test_what_a_task_printed_is_broken_where_it_must_be(text: str, lines: list[str]) -> None:
    assert fit_text.wrap(text, 10, first="| ", rest="| ", is_quoted=True) == lines


def test_a_fact_goes_on_in_its_column() -> None:
    assert fit_text.wrap("one two three", 14, first="name  ", rest=" " * 6) == [
        "name  one two",
        "      three",
    ]
    # As far in as it can be.
    assert fit_text.wrap("x" * 12, 14, first="name  ", rest=" " * 6) == ["name", "  " + "x" * 12]


def test_a_shortened_text_keeps_its_beginning_and_says_so() -> None:
    assert fit_text.shorten("abcdef", 6) == "abcdef"
    assert fit_text.shorten("abcdef", 5) == "abcd…"


@pytest.mark.parametrize(
    ("text", "room", "kept"),
    [("abc", 3, "abc"), ("abcd", 3, "abc"), ("漢字", 3, "漢"), ("漢字", 4, "漢字"), ("", 0, "")],
)
def test_a_text_is_cut_by_its_width(text: str, room: int, kept: str) -> None:
    assert fit_text.cut(text, room) == kept
