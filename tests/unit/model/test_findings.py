"""Findings: read from the reports of agents, and merged into one list."""

from __future__ import annotations

import pytest

from holdfast import clock
from holdfast.model import findings
from holdfast.model.findings import merge, read, render

REST = "\n\n## Test gaps\n\n- blocker — x.py:1 — not a finding\n"


def report(body: str) -> str:
    return f"# Review\n\n## Findings\n\n{body}{REST}"


def only(line: str) -> tuple[str, str, str]:
    (found,) = read(report(line))
    return found.severity, found.place, found.text


@pytest.mark.req("PIP-13")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        (
            "- major — src/a.py:12 — it loses the last line",
            ("major", "src/a.py:12", "it loses the last line"),
        ),
        (
            "1. **Major**: `src/a.py:12`: it loses the last line",
            ("major", "src/a.py:12", "it loses the last line"),
        ),
        ("* [critical] ./a.py:3-7 - it is wrong", ("blocker", "a.py:3", "it is wrong")),
        ("- [ ] **HIGH** (a.py:3) it is wrong", ("major", "a.py:3", "it is wrong")),
        ("- Severity: low, a.py#L3 — it is wrong", ("minor", "a.py:3", "it is wrong")),
        ("- 🔴 a.py:3 — it is wrong", ("blocker", "a.py:3", "it is wrong")),
        ("- P1: Makefile:3 is wrong", ("major", "Makefile:3", "is wrong")),
        ("minor — a.py:3 — it is wrong", ("minor", "a.py:3", "it is wrong")),
        ("- High memory use in a.py:3", ("unrated", "a.py:3", "High memory use in a.py:3")),
        ("- low-level calls fail", ("unrated", "", "low-level calls fail")),
        (
            "- it is down at http://host:80 since 12:30",
            ("unrated", "", "it is down at http://host:80 since 12:30"),
        ),
        ("- `a.py:3`", ("unrated", "a.py:3", "`a.py:3`")),
        ("Everything is bad.\nReally.", ("unrated", "", "Everything is bad. Really.")),
        ("### Blockers\n\n- a.py:3: it is wrong", ("blocker", "a.py:3", "it is wrong")),
        ("### Blockers\n\n- minor — it is not so bad", ("minor", "", "it is not so bad")),
    ],
)
def test_an_item_is_read_however_it_is_written(line: str, found: tuple[str, str, str]) -> None:
    assert only(line) == found


@pytest.mark.parametrize(
    "body",
    ["None.", "- None", "No findings.", "N/A", "", "### Blockers\n\nNone.", "- No issues found in the diff."],
)
def test_no_findings(body: str) -> None:
    assert read(report(body)) == []
    assert read("# Review\n\nno such section\n") == []


def test_what_belongs_to_an_item_goes_with_it() -> None:
    body = (
        "I looked at all of it.\n\n"
        "- major — a.py:3 — first\n  and more\n\n  - nested\n  ```sh\n- not an item\n# nor a heading\n  ```\n"
        "- minor — second\ngoes on\n\nThat is all."
    )
    assert [each.text for each in read(report(body))] == [
        "first and more - nested ```sh - not an item # nor a heading ```",
        "second goes on",
    ]


@pytest.mark.req("PIP-13")
def test_what_a_consolidation_dropped_is_no_finding() -> None:
    found = read(
        report("- major — a.py:3 — true\n- dropped — b.py:4 — not so\n\n### Dropped\n\n- c.py:5: nor this")
    )
    assert [each.place for each in found] == ["a.py:3"]


@pytest.mark.req("PIP-13")
def test_several_reports_become_one_list() -> None:
    one = "- minor — b.py:10 — slow\n- major — b.py:9 — races\n- a thing without a place"
    other = (
        "- [blocker] b.py:9 — Races!\n- major: a.py:100 — leaks (reported by x)\n- minor: "
        "a.py:20 — leaks\n- slow"
    )
    found = merge([("codex_review", report(one)), ("gemini_review", report(other))])
    assert [(each.severity, each.place, each.by) for each in found] == [
        ("blocker", "b.py:9", ("codex_review", "gemini_review")),
        ("major", "a.py:100", ("gemini_review",)),
        ("unrated", "", ("codex_review",)),
        ("minor", "a.py:20", ("gemini_review",)),
        ("minor", "b.py:10", ("codex_review", "gemini_review")),
    ]
    text = render(found, ["codex_review", "gemini_review"])
    assert text.startswith("# Findings\n\n5, worst first. (Reviewers: codex_review, gemini_review)\n")
    assert "1. **blocker** `b.py:9` — races (codex_review, gemini_review)\n" in text
    assert "3. **unrated** — a thing without a place (codex_review)\n" in text


def test_a_list_of_nothing_says_who_was_asked() -> None:
    assert render(merge([("codex_review", report("None."))]), ["codex_review"]) == (
        "# Findings\n\nNone. (Reviewers: codex_review)\n"
    )


def test_lines_of_one_file_are_in_their_order() -> None:
    found = merge([("r", report("- a.py:100 x\n- a.py:9 y\n- z"))])
    assert [each.place for each in found] == ["a.py:9", "a.py:100", ""]
    assert {each.severity for each in found} <= set(findings.SEVERITIES)


@pytest.mark.parametrize(
    "body",
    [
        "- " + "-a" * 200_000,
        "- " + "a/" * 200_000,
        "- x\n" * 200_000,
        "- (reported by " * 50_000,
        "[*_" * 100_000,
        "- " + "a.py:1 " * 50_000,
        "".join(f"- a.py:{number} — x\n" for number in range(20_000)),
    ],
)
def test_a_report_that_is_no_review_is_read_in_time(body: str) -> None:
    before = clock.mono()
    assert len(merge([("one", report(body)), ("other", report(body))])) <= 2 * findings.MAX_FINDINGS
    assert clock.mono() - before < 5
