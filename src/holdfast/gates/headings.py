"""Headings that a role's report must have, whatever their case, their number, and however they are wrapped."""

from __future__ import annotations

from holdfast.gates.base import Case, Check
from holdfast.model import markdown, pack

UPDATED_PACK = "Updated Context Pack"
_REVIEW = ("Findings", "Test gaps", "Breaking changes", "Minimal fix")
REQUIRED: dict[str, tuple[str, ...]] = {
    "brief": ("Summary", "Acceptance", "Scope", "Constraints", "Verify Commands", UPDATED_PACK),
    "fix": ("Fixed", "Not fixed", "Checks"),
    "review": _REVIEW,
    "review_consolidate": _REVIEW,
    "runbook": ("Problem", "Plan", "Commands", "Risks"),
    "security_review": _REVIEW,
    "static_verify": ("Pre-execution checks", "Dangerous changes", "Rollback plan", "Go/No-Go"),
    "test_impl": ("Added or Updated Tests", "Unified Diff", "Rationale"),
}
#: A design of tests that is shorter is none.
TEST_DESIGN_LINES = 10


def check(case: Case) -> Check:
    """Every required heading is there; in a brief, the updated pack has its own ten too."""
    found = markdown.sections(case.report)
    updated = markdown.find(found, UPDATED_PACK) if case.stage.role == "brief" else None
    if updated is not None:
        # `2. Scope` of the pack is not the report's own `Scope`.
        found = [some for some in found if some.line <= updated.line or not _is_of_pack(some)]
    wanted = REQUIRED.get(case.stage.role, ())
    missing = [title for title in wanted if markdown.find(found, title) is None]
    reasons = [f"the report has no heading {title!r}" for title in missing]
    if updated is not None:
        lacking = _missing_of_pack(case.report, updated)
        reasons += [f"the updated context pack has no heading {title!r}" for title in lacking]
    return Check(name="headings", passed=not reasons, reasons=tuple(reasons))


def _is_of_pack(section: markdown.Section) -> bool:
    return any(markdown.find([section], title) is not None for title in pack.HEADINGS)


def _missing_of_pack(report: str, section: markdown.Section) -> list[str]:
    """Headings that the pack lacks. It stands below its heading, inside a fence or not; where its headings are on the same level
    it goes on behind that section."""
    behind = "\n".join(report.split("\n")[section.line :])
    shapes = [section.body, behind, *(block.text for block in markdown.code_blocks(behind))]
    return min((pack.missing(shape) for shape in shapes), key=len)


def check_lines(case: Case) -> Check:
    """A design of tests says enough."""
    lines = [line for line in case.report.splitlines() if line.strip()]
    passed = len(lines) >= TEST_DESIGN_LINES
    reason = f"the report has {len(lines)} lines with text, {TEST_DESIGN_LINES} are needed"
    return Check(name="lines", passed=passed, reasons=() if passed else (reason,))
