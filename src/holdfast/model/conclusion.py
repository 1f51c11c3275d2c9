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
#: A line that has both the heading and the decision. It has at most a few marks: a long row of them is slow.
_INLINE = re.compile(r"[\s*_`-]{0,8}verdict[*_`]{0,4}\s?:", re.IGNORECASE)
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
        return _inline_verdict(report) if heading == "Verdict" else ""
    if heading == CHOICE:
        first = next((line for line in section.body.split("\n") if line.strip()), "")
        # Only its beginning: the pattern is slow for a long line of marks.
        number = _CANDIDATE.match(first.lstrip()[:_CHOICE_CHARS])
        return number[1] if number is not None else ""
    # The decision is in the heading itself (`## Go/No-Go: go`) or in the first line that has one.
    of_heading = re.sub(re.escape(heading), "", section.title, flags=re.IGNORECASE)
    lines = (of_heading, *section.body.split("\n"))
    return next((decision for line in lines if (decision := _decided(line, heading))), "")


def _inline_verdict(report: str) -> str:
    """The verdict of the last line `Verdict: …` outside of code, for a report without this heading."""
    blocks = [(block.line, block.line + block.text.count("\n") + 1) for block in markdown.code_blocks(report)]
    for number, line in reversed(list(enumerate(report.split("\n"), 1))):
        found = _INLINE.match(line)
        if found is not None and not any(first <= number <= last for first, last in blocks):
            return _decided(line[found.end() :], "Verdict")
    return ""


def _decided(line: str, heading: str) -> str:
    """The decision of one line; empty if it has none."""
    line = _NONE_FAILED.sub("", line)
    if heading == "Verdict" and _SAYS_PASSED.match(line):
        return "passed"
    return next((decision for pattern, decision in _DECISIONS[heading] if pattern.search(line)), "")


def worse_than(severity: str, counts: dict[str, int]) -> dict[str, int]:
    """The findings that are worse than `severity`."""
    return {name: count for name, count in counts.items() if _rank(name) < _rank(severity)}


def _rank(severity: str) -> int:
    return (
        findings.SEVERITIES.index(severity) if severity in findings.SEVERITIES else len(findings.SEVERITIES)
    )
