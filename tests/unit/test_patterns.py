"""Patterns of users: ordinary ones work, invalid ones are refused, and none of them is slow."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import clock
from holdfast.errors import InvalidPattern
from holdfast.patterns import Pattern, objection


@pytest.mark.parametrize(
    "pattern",
    [
        r"ACME-\d{4}",
        r"\bint-[a-z0-9]+\b",
        r"(?:\d{1,3}\.){3}\d{1,3}",
        "(?:foo|bar)+",
        "[a-z]+@corp",
        r"(?i)project\s+\w+",
        "[[a]b]",
        r"\w+\s*=\s*\S+",
        r"\b[\w.%+-]+@[\w.-]+\.[a-z]{2,}\b",
        r"\w{1,40}\w+",
        r"(?P<name>x)y",
        r"\pL+-secret",
    ],
)
def test_ordinary_patterns_are_accepted(pattern: str) -> None:
    assert objection(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?<=token=)\w+",
        r"x(?=y)",
        r"(?!x)y",
        r"(a)\1",
        r"(?:\w++-)+end",
        "(",
        "[a",
        "*x",
        "a{2,1}",
        "\ud800",
    ],
)
def test_what_the_engine_does_not_know_is_refused_with_the_syntax(pattern: str) -> None:
    with pytest.raises(InvalidPattern, match="is not a regular expression") as raised:
        Pattern(pattern)
    assert "RE2 syntax" in (raised.value.hint or "")


@pytest.mark.parametrize("pattern", ["", "x*", "^", "$", r"\b", r"\B", "a?", "(?m)^", "x|", r"(.*\s)*"])
def test_a_pattern_that_matches_the_empty_string_is_refused(pattern: str) -> None:
    assert "matches the empty string" in (objection(pattern) or "")


def test_every_match_is_masked_and_nothing_else() -> None:
    masked = Pattern(r"ACME-\d{4}").mask("für ACME-1234, ACME-12 und ACME-9999\udc80", "***")
    assert masked == "für ***, ACME-12 und ***\udc80"
    assert Pattern("ö+").mask("wöörld", "***") == "w***rld"


def test_a_pattern_of_bytes_does_not_break_the_text() -> None:
    assert Pattern(r"a\C").mask("aé aö", "*").count("*") == 2


@given(st.text(), st.sampled_from([r"\w+", "[^a]", "(?s).x", "é|[0-9]+", r"\s"]))
def test_any_text_is_masked_without_an_error(text: str, pattern: str) -> None:
    masked = Pattern(pattern).mask(text, "")
    assert Pattern(pattern).mask(masked, "") == masked or pattern == "(?s).x"


@pytest.mark.req("CTX-3")
@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("a.*b.*c", "ab" * 1_000_000),
        (r"(\w+)+x", "a" * 2_000_000),
        (r"(.*)(.*)XX", "a" * 2_000_000),
        (r"(a|aa)+z", "a" * 2_000_000),
        (r"(a?){40}a{40}z", "a" * 2_000_000),
        (r"[a-z]+@corp", "a" * 2_000_000),
    ],
)
def test_no_pattern_is_slow_on_a_very_long_line(pattern: str, line: str) -> None:
    began_mono = clock.mono()
    assert Pattern(pattern).mask(line, "***") == line
    assert clock.mono() - began_mono < 5


@pytest.mark.req("CTX-3")
def test_matching_is_cut_off_and_the_rest_is_masked() -> None:
    """Each match searches for a `b` up to the end of the line and fails: quadratic in any engine."""
    began_mono = clock.mono()
    masked = Pattern("a.*b|a").mask("a" * 1_000_000 + " the end", "*")
    assert clock.mono() - began_mono < 20
    assert set(masked) == {"*"}


@pytest.mark.starts_processes
def test_redaction_without_patterns_does_not_load_the_engine() -> None:
    code = (
        "import sys\n"
        "from holdfast.redact import Redactor\n"
        "assert Redactor({}, patterns=())('password=hunter2') == 'password=***'\n"
        "assert 're2' not in sys.modules and 'holdfast.patterns' not in sys.modules\n"
        "assert Redactor({}, patterns=['x+'])('axxb') == 'a***b'\n"
        "assert 're2' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
