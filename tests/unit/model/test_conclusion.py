"""What the report of a stage concludes."""

from __future__ import annotations

import pytest

from holdfast.model import conclusion


def verdict(text: str) -> str:
    return conclusion.read("verify", f"## Commands\n\nmake test: 3 failed\n\n## Verdict\n\n{text}\n").decision


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("passed", "passed"),
        ("**Passed.** All criteria are met.", "passed"),
        ("failed: test_a does not pass", "failed"),
        ("Not passed: two tests are red", "failed"),
        ("passed, 0 failed", "passed"),
        ("One criterion is not met.", "failed"),
        ("Passed: the test fails before the change and passes after it.", "passed"),
        ("- **passed**, the reported bug no longer fails a test", "passed"),
        ("Passed, but one criterion is not met.", "failed"),
        ("I cannot tell.", ""),
    ],
)
def test_a_verification_passes_or_fails_by_its_verdict(text: str, decision: str) -> None:
    assert verdict(text) == decision


@pytest.mark.parametrize(
    ("report", "decision"),
    [
        ("3 of 10 tests are red.\n\nVerdict: failed\n", "failed"),
        ("make test: 0 failed\n\n**Verdict:** passed", "passed"),
        ("- **Verdict**: not passed, two tests are red", "failed"),
        ("Verdict: passed\n\nThat was too early.\n\nVerdict: failed", "failed"),
        ("My verdict: hard to tell, but no test failed", ""),
        ("It printed:\n\n```\nVerdict: failed\n```\n\nI cannot tell.\n", ""),
        ("Verdict: failed\n\n## Verdict\n\npassed\n", "passed"),
    ],
)
def test_a_verdict_without_a_heading_is_one_too(report: str, decision: str) -> None:
    assert conclusion.read("verify", report).decision == decision


@pytest.mark.parametrize(
    ("section", "decision"),
    [
        ("## Go/No-Go\n\nGo. Nothing is dangerous.", "go"),
        ("## Go/No-Go\n\n**No-Go**: the rollback is missing", "no_go"),
        ("## Go/No-Go: no go\n\nwords", "no_go"),
        ("## Go/No-Go: go\n", "go"),
        ("## 4. Go/No-Go\n\nDo not proceed.", "no_go"),
        ("## Go/No-Go\n\nnothing to say", ""),
        ("no heading at all: go", ""),
    ],
)
def test_a_static_check_says_go_or_no_go(section: str, decision: str) -> None:
    assert conclusion.read("static_verify", section).decision == decision


def test_a_review_counts_its_findings_worst_first() -> None:
    report = (
        "## Findings\n\n- minor — a.py:1 — a typo\n- blocker — b.py:2 — data loss\n- minor — c.py:3 — x\n"
    )
    assert list(conclusion.read("review", report).findings.items()) == [("blocker", 1), ("minor", 2)]
    assert conclusion.read("review", "## Findings\n\nNone.\n").findings == {}
    assert conclusion.read("impl", report).findings == {}


@pytest.mark.parametrize(
    ("limit", "left"),
    [
        ("major", {"blocker": 1}),
        ("unrated", {"blocker": 1, "major": 2}),
        ("minor", {"blocker": 1, "major": 2, "unrated": 3}),
        ("none", {"blocker": 1, "major": 2, "unrated": 3, "minor": 4}),
    ],
)
def test_what_is_worse_than_a_limit(limit: str, left: dict[str, int]) -> None:
    assert conclusion.worse_than(limit, {"blocker": 1, "major": 2, "unrated": 3, "minor": 4}) == left
