"""Findings of reviews: read from reports and merged into one numbered list, worst first. Pure.

No finding is dropped. The same words about the same place, from two reviewers, become one finding of both;
everything else stays separate.
"""

from __future__ import annotations

import re
from itertools import islice

from holdfast.model import markdown
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Worst first. An unrated finding may be bad, so it comes before the minor ones.
SEVERITIES = ("blocker", "major", "unrated", "minor")
_UNRATED = "unrated"
#: A consolidation marks findings that are not true; they are left out.
_DROPPED = "dropped"
_WORDS = {
    "blocker": "blocker", "blocking": "blocker", "critical": "blocker", "fatal": "blocker", "p0": "blocker",
    "🔴": "blocker",
    "major": "major", "high": "major", "severe": "major", "serious": "major", "p1": "major", "🟠": "major",
    "minor": "minor", "medium": "minor", "moderate": "minor", "low": "minor", "trivial": "minor",
    "nit": "minor", "info": "minor", "p2": "minor", "p3": "minor", "🟡": "minor", "🟢": "minor",
    "🔵": "minor",
    "dropped": _DROPPED, "rejected": _DROPPED,
}  # fmt: skip
_WORD = "|".join(_WORDS)
#: `[major]`, `**Major:**`, `major — `, `Severity: major, `. The word must be set apart: `High memory use` is
#: no severity.
_SEVERITY = re.compile(
    rf"(?:severity\s*[:=]\s*)?(?:[\[(*_`]+(?P<marked>{_WORD})\s*:?[\])*_`]+"
    rf"|(?P<plain>{_WORD})(?=\s*[:,;|–—]|\s+-\s|\s*$)"
    r"|(?P<sign>[🔴🟠🟡🟢🔵]))[\s:,;|–—]*(?:-\s)?\s*",
    re.IGNORECASE,
)
_TITLE = re.compile(rf"\W*({_WORD})s?\b", re.IGNORECASE)
_ITEM = re.compile(r"(?P<indent>\s*)(?:[-*+•]|\d{1,4}[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>\S.*)")
_PLACE = re.compile(
    r"(?<![\w/:.@+-])(?P<path>(?=[\d./@+-]*[A-Za-z_])[\w@+-]*[./][\w./@+-]*\w|Makefile|Dockerfile)"
    r"(?::|#L)(?P<line>\d+)"
    r"(?:[-–:]L?\d+)?"
)
#: The maximum number of findings of one report.
MAX_FINDINGS = 1000
#: Characters around a place at the beginning of a finding.
_BEFORE, _AFTER = re.compile(r"[\s(\[*`]*"), re.compile(r"[\s)\]*`]*(?:[:,;|–—]|-\s)*\s*")
_REPORTED_BY = re.compile(r"\s*\((?:reported|said|seen|found) by [^()]*\)", re.IGNORECASE)
_NOTHING = re.compile(r"(?:none|nothing|n/a|no (?:findings?|issues?|problems?))\b.{0,60}", re.IGNORECASE)


class Finding(Record):
    """One finding, and the stages that reported it."""

    severity: str
    #: `path:line`; empty if the report names none.
    place: str
    #: One line, without severity and place.
    text: str
    by: tuple[str, ...] = ()


def read(report: str, by: str = "") -> list[Finding]:
    """The findings of one report, in order. A text without a list is one finding."""
    section = markdown.find(markdown.sections(report), "Findings")
    if section is None:
        return []
    items = list(islice(_items(section.body), MAX_FINDINGS))
    if not items:
        prose = [line for line in section.body.split("\n") if not line.lstrip().startswith("#")]
        items = [(_UNRATED, "\n".join(prose))]
    findings = [_finding(text, severity, by) for severity, text in items]
    return [
        finding
        for finding in findings
        if finding.severity != _DROPPED and finding.text and not _NOTHING.fullmatch(finding.text)
    ]


def merge(reports: Sequence[tuple[str, str]]) -> tuple[Finding, ...]:
    """The findings of (stage, report) pairs: worst first, then by place, without duplicates."""
    by_words: dict[str, list[Finding]] = {}
    for stage, report in reports:
        for finding in read(report, stage):
            same_words = by_words.setdefault(_plain(finding.text), [])
            at = next((at for at, old in enumerate(same_words) if _is_same_place(old, finding)), None)
            if at is None:
                same_words.append(finding)
            else:
                same_words[at] = _joined(same_words[at], finding)
    return tuple(sorted((each for same_words in by_words.values() for each in same_words), key=_order))


def render(findings: Sequence[Finding], stages: Sequence[str]) -> str:
    """The content of `_findings.md`: the numbered list of the findings of these stages."""
    reviewers = ", ".join(stages)
    if not findings:
        return f"# Findings\n\nNone. (Reviewers: {reviewers})\n"
    lines = [f"# Findings\n\n{len(findings)}, worst first. (Reviewers: {reviewers})\n"]
    for number, finding in enumerate(findings, start=1):
        place = f" `{finding.place}`" if finding.place else ""
        lines.append(f"{number}. **{finding.severity}**{place} — {finding.text} ({', '.join(finding.by)})")
    return "\n".join(lines) + "\n"


def _items(body: str) -> Iterator[tuple[str, str]]:
    """The items of the outermost list, each with the severity of the heading above it.

    A line that begins with a severity is an item without a bullet.
    """
    severity, text, base, fence, is_apart = _UNRATED, "", 0, "", False
    for line in body.split("\n"):
        bare = line.strip()
        if fence or bare.startswith(("```", "~~~")):
            fence = "" if fence and bare.startswith(fence) else fence or bare[:3]
            text += f"\n{line}" if text else ""
            continue
        item = _ITEM.match(line)
        is_item = item is not None and (not text or len(item["indent"]) <= base + 1)
        is_heading = bare.startswith("#")
        if is_item or is_heading or (bare and _SEVERITY.match(bare)) or (is_apart and bare == line):
            if text:
                yield severity, text
            text = ""
        if is_heading:
            title = _TITLE.match(bare)
            severity = _WORDS[title[1].casefold()] if title is not None else _UNRATED
        elif is_item and item is not None:
            base, text = len(item["indent"]), item["text"]
        elif text or _SEVERITY.match(bare):
            text += f"\n{bare}"
        is_apart = not bare
    if text:
        yield severity, text


def _finding(text: str, severity: str, by: str) -> Finding:
    text = " ".join(text.split())
    if (rating := _SEVERITY.match(text)) is not None:
        word = rating["marked"] or rating["plain"] or rating["sign"]
        severity, text = _WORDS[word.casefold()], text[rating.end() :]
    place = ""
    if (match := _PLACE.search(text)) is not None:
        place = f"{match['path'].removeprefix('./')}:{match['line']}"
        begin = _BEFORE.match(text)
        if begin is not None and begin.end() == match.start():
            rest = _AFTER.match(text, match.end())
            text = text[rest.end() :] if rest is not None and rest.end() < len(text) else text
    return Finding(severity=severity, place=place, text=text, by=(by,) if by else ())


def _is_same_place(one: Finding, other: Finding) -> bool:
    return one.place == other.place or not one.place or not other.place


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", _REPORTED_BY.sub("", text).casefold()))


def _joined(one: Finding, other: Finding) -> Finding:
    # A rating by one reviewer overrides a missing one.
    rated = [each for each in (one.severity, other.severity) if each != _UNRATED]
    return one.evolve(
        severity=min(rated or [_UNRATED], key=SEVERITIES.index),
        place=one.place or other.place,
        by=tuple(dict.fromkeys((*one.by, *other.by))),
    )


def _order(finding: Finding) -> tuple[int, bool, str, int]:
    path, _, line = finding.place.rpartition(":")
    return SEVERITIES.index(finding.severity), not path, path, int(line or 0)
