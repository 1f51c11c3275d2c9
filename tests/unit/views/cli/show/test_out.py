"""Lines fit, what is to be copied stays whole, and the locale decides on the characters."""

from __future__ import annotations

import pytest

from holdfast.views.cli.show import amounts, fallback_glyphs, fit_text, out

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


@pytest.mark.parametrize(
    ("environ", "is_utf8"),
    [
        ({}, False),
        ({"LC_ALL": "C", "LANG": "en_US.UTF-8"}, False),
        ({"LC_ALL": "", "LANG": "en_US.UTF-8"}, True),
        ({"LC_CTYPE": "POSIX", "LANG": "en_US.UTF-8"}, False),
        ({"LC_CTYPE": "UTF-8"}, True),
        ({"LANG": "C.utf8"}, True),
        ({"LANG": "de_DE"}, False),
        ({"LANG": "de_DE.ISO-8859-1"}, False),
        ({"LANG": "de_DE.UTF-8@euro"}, True),
    ],
)
def test_the_locale_that_was_asked_for(environ: dict[str, str], is_utf8: bool) -> None:
    assert out.is_utf8(environ) is is_utf8


def test_signs_have_stand_ins_and_letters_are_escaped() -> None:
    def shown(text: str, encoding: str = "ascii") -> bytes:
        bad = UnicodeEncodeError(encoding, text, 0, len(text), "")
        return fallback_glyphs.replace(bad)[0].encode(encoding)

    assert shown("…→“”–─") == b'...->""--'
    assert shown("ü漢\udcff😀") == rb"\xfc\u6f22\xff\U0001f600"
    assert all(plain.isascii() and plain.isprintable() for plain in fallback_glyphs.GLYPHS.values())


@pytest.mark.parametrize(
    ("count", "noun", "said"),
    [
        (0, "retry", "0 retries"),
        (1, "retry", "1 retry"),
        (1, "interrupt", "1 interrupt"),
        (2_000_000, "task", "2000000 tasks"),
        (0.25, "task", "0.25 tasks"),
        (1.0, "task", "1 task"),
    ],
)
def test_counts_have_their_plural(count: float, noun: str, said: str) -> None:
    assert amounts.plural(count, noun) == said


def test_what_nobody_told_is_unknown() -> None:
    assert amounts.usage(None) == "tokens unknown, cost unknown"
    assert amounts.usage({"input_tokens": 0, "output_tokens": 0, "cost_usd": None}) == amounts.usage({})
    told = {"input_tokens": 12_300, "output_tokens": 5, "cost_usd": 1.2}
    assert amounts.usage(told) == "12.3k tokens in, 5 out, cost $1.20"
