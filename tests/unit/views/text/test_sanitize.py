"""Text for a terminal: the result is the same wherever it is cut, and has no control sequences."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.views.text.sanitize import Sanitizer

pieces = st.lists(
    st.sampled_from(
        ["a", "\n", "\t", "\r", "\r\n", "\x1b", "[", "31", ";", "m", "\x1b[0m", "\x00", "\x9b", "é"]
    )
)


def shown(*texts: str, has_colour: bool) -> str:
    harmless = Sanitizer(has_colour=has_colour)
    return "".join(map(harmless.show, texts)) + harmless.end()


@given(texts=pieces, has_colour=st.booleans())
def test_pieces_come_out_as_the_whole_and_hold_nothing_but_colours(
    texts: list[str], has_colour: bool
) -> None:
    said = shown(*texts, has_colour=has_colour)
    assert said == shown("".join(texts), has_colour=has_colour)
    plain = re.sub(r"\x1b\[[0-9;:]*m", "", said) if has_colour else said
    assert all(char.isprintable() or char in "\n\t" for char in plain)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[1;31mred\x1b[m", "\x1b[1;31mred\x1b[m\x1b[0m"),
        ("a\r\nb\rc", "a\nb^Mc"),
        ("\x1b]0;t\x07", "^[]0;t^G"),
        ("\x7f\x85", "^?\\x85"),
        ("\x1b[", "^[["),
        ("a\u202eb\u2066c\u05d0", "a<U+202E>b<U+2066>c\u05d0"),
    ],
)
def test_text_and_colours_pass_and_nothing_else_does(text: str, wanted: str) -> None:
    assert shown(text, has_colour=True) == wanted


def test_a_sequence_without_end_is_not_waited_for_for_ever() -> None:
    harmless = Sanitizer(has_colour=True)
    assert harmless.show("\x1b[" + "1" * 100).startswith("^[[1")
