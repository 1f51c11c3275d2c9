"""What the report of a stage concludes about the work. Pure.

A review concludes with its findings, a verification with passed or failed, a static check with go or no-go.
The gate reads it and the journal keeps it, so no view parses a report.
"""

from __future__ import annotations

import re

from holdfast.model import findings, markdown, roles
from holdfast.model.record import Record

_NO_GO = re.compile(r"\bno[\s_-]*go\b|\bnot\s+go\b|\bdo\s+not\s+(?:go|proceed)\b", re.IGNORECASE)
_GO = re.compile(r"\bgo\b|\bproceed\b", re.IGNORECASE)
_FAILED = re.compile(r"\b(?:failed|fails?|not\s+(?:passed|met|accepted)|rejected)\b", re.IGNORECASE)
_PASSED = re.compile(r"\b(?:passed|pass(?:es)?|accepted|met)\b", re.IGNORECASE)
#: The answer that the prompt asks for, `passed, because …`: what follows is the reason, unless it limits it.
_SAYS_PASSED = re.compile(
    r"[\s*_`#:-]*passed\b(?!.*\b(?:but|except|however|although|though)\b)", re.IGNORECASE
)
#: Heading of the section that has the decision → what the decision is if its first line matches; bad news
#: first, because "No-Go" contains "Go" and "not passed" contains "passed".
_DECISIONS = {
    "Go/No-Go": ((_NO_GO, "no_go"), (_GO, "go")),
    "Verdict": ((_FAILED, "failed"), (_PASSED, "passed")),
}
#: Under this heading a judge names a candidate, in the first line and with nothing before it.
CHOICE = "Choice"
_CANDIDATE = re.compile(r"[\s*_`#-]*(?:candidate\b)?[\s*_`:#]*([1-9]\d?)\b", re.IGNORECASE)
_CHOICE_CHARS = 200
#: "0 failed", "none failed": a count is no verdict.
_NONE_FAILED = re.compile(r"\b(?:0|no|none|nothing|without)\s+(?:\w+\s+)?(?:fail\w*|errors?)", re.IGNORECASE)


class Conclusion(Record):
    """The conclusion of one report."""

    #: `go`, `no_go`, `passed`, `failed`, or the number of a candidate; empty if the report does not decide.
    decision: str = ""
    #: Number of findings by severity, worst first; only those that exist.
    findings: dict[str, int] = {}


def read(role: str, report: str) -> Conclusion:
    """The conclusion of a report."""
    row = roles.get(role)
    found = findings.read(report) if row.has_findings else []
    severities = [finding.severity for finding in found]
    counts = {name: severities.count(name) for name in findings.SEVERITIES if name in severities}
    return Conclusion(decision=_decision(report, row.decides_under), findings=counts)


def _decision(report: str, heading: str) -> str:
    section = markdown.find(markdown.sections(report), heading) if heading else None
    if section is None:
        return ""
    if heading == CHOICE:
        first = next((line for line in section.body.split("\n") if line.strip()), "")
        # Only its beginning: the pattern is slow for a long line of marks.
        number = _CANDIDATE.match(first.lstrip()[:_CHOICE_CHARS])
        return number[1] if number is not None else ""
    # The decision is in the heading itself (`## Go/No-Go: go`) or in the first line that has one.
    of_heading = re.sub(re.escape(heading), "", section.title, flags=re.IGNORECASE)
    for line in (of_heading, *section.body.split("\n")):
        line = _NONE_FAILED.sub("", line)
        if heading == "Verdict" and _SAYS_PASSED.match(line):
            return "passed"
        for pattern, decision in _DECISIONS[heading]:
            if pattern.search(line):
                return decision
    return ""


def worse_than(severity: str, counts: dict[str, int]) -> dict[str, int]:
    """The findings that are worse than `severity`."""
    return {name: count for name, count in counts.items() if _rank(name) < _rank(severity)}


def _rank(severity: str) -> int:
    return (
        findings.SEVERITIES.index(severity) if severity in findings.SEVERITIES else len(findings.SEVERITIES)
    )
