"""Patterns of users: what people write can be used, and what could take for ever is refused."""

from __future__ import annotations

import pytest

from holdfast.patterns import objection


@pytest.mark.parametrize(
    "pattern",
    [r"ACME-\d{4}", r"\bint-[a-z0-9]+\b", r"(?:\w++-)+end", r"(?:\d{1,3}\.){3}\d{1,3}", "(?:foo|bar)+", "[a-z]+@corp",
     r"(?i)project\s+\w+", "[[a]b]"],
)  # fmt: skip
def test_what_people_write_can_be_used(pattern: str) -> None:
    assert objection(pattern) is None


@pytest.mark.parametrize("pattern", [r"(.*)(.*)XX", r"\w+\w*x", r"\d*(?:-?)[\d.]+x", r".+?.+:"])
def test_repeats_that_share_a_text_are_refused(pattern: str) -> None:
    assert "two repeats can match the same characters" in (objection(pattern) or "")


@pytest.mark.parametrize(
    "pattern",
    [r"\w+\s*=\s*\S+", r"a.*b.*c", r"[^,]+,[^,]+,[^,]+", r"\b[\w.%+-]+@[\w.-]+\.[a-z]{2,}\b", r"\w{1,40}\w+"],
)
def test_ordinary_patterns_are_taken(pattern: str) -> None:
    assert objection(pattern) is None
