"""Long texts lose their middle, with a note."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.pipeline.prompt.shorten import LINE_CHARS, line_middle, middle


@pytest.mark.req("CTX-5", "W-B6")
@given(st.integers(1, 10_000), st.booleans(), st.sampled_from(["", "é", "x" * 90]))
def test_a_log_keeps_head_and_tail_and_says_what_was_cut(count: int, has_newline: bool, filler: str) -> None:
    lines = [f"{number} {filler}" for number in range(count)]
    text = "\n".join(lines) + ("\n" if has_newline else "")
    trimmed = middle(text)
    if count <= 400:
        assert trimmed.text == text
        assert (trimmed.cut_lines, trimmed.cut_bytes) == (0, 0)
        return
    shown = trimmed.text.rstrip("\n").split("\n") if has_newline else trimmed.text.split("\n")
    assert shown[:200] == lines[:200]
    assert shown[201:] == lines[-200:]
    gone = "".join(f"{line}\n" for line in lines[200:-200])
    assert shown[200] == f"[… {count - 400} lines ({len(gone.encode())} bytes) cut here …]"
    assert (trimmed.cut_lines, trimmed.cut_bytes) == (count - 400, len(gone.encode()))
    assert trimmed.text.endswith("\n") is has_newline


@pytest.mark.req("W-B6")
@pytest.mark.parametrize("count", [200, 201, 399, 400])
def test_two_to_four_hundred_lines_lose_nothing(count: int) -> None:
    text = "\n".join(str(number) for number in range(count)) + "\n"
    assert middle(text).text == text


@given(st.text(max_size=30), st.integers(0, 30))
def test_a_long_line_keeps_both_ends_and_counts_what_it_lost(line: str, limit: int) -> None:
    short = line_middle(line, limit)
    if len(line) <= limit:
        assert short is line
    else:
        assert f"[… {len(line) - limit} characters cut here …]" in short
        half = limit // 2
        assert short.startswith(line[:half])
        assert short.endswith(line[len(line) - limit + half :])


def test_a_line_without_end_is_bounded_and_counted() -> None:
    trimmed = middle("a\n" + "x" * 10**6 + "\nb\n")
    assert len(trimmed.text) < LINE_CHARS + 100
    assert trimmed.long_lines == 1
    assert trimmed.text.startswith("a\nxxx")
    assert trimmed.text.endswith("xxx\nb\n")


def test_nothing_stays_nothing() -> None:
    assert middle("").text == ""
    assert middle("\n").text == "\n"
