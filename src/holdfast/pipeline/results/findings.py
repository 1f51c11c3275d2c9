"""Findings of reviews: read from their reports, made one numbered list, worst first. Pure.

No finding is thrown away: what two reviewers say of the same place in the same words becomes one finding of both;
everything else stays apart, side by side, for whoever reads the list.
"""

from __future__ import annotations

import re
from itertools import islice

from holdfast.model import markdown
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Worst first. One without a word may be bad, and is looked at before those that are said not to be.
SEVERITIES = ("blocker", "major", "unrated", "minor")
_UNRATED = "unrated"
#: A consolidation says so of what is not true: it is no finding.
_DROPPED = "dropped"
_WORDS = {
    "blocker": "blocker", "blocking": "blocker", "critical": "blocker", "fatal": "blocker", "p0": "blocker", "🔴": "blocker",
    "major": "major", "high": "major", "severe": "major", "serious": "major", "p1": "major", "🟠": "major",
    "minor": "minor", "medium": "minor", "moderate": "minor", "low": "minor", "trivial": "minor", "nit": "minor",
    "info": "minor", "p2": "minor", "p3": "minor", "🟡": "minor", "🟢": "minor", "🔵": "minor",
    "dropped": _DROPPED, "rejected": _DROPPED,
}  # fmt: skip
_WORD = "|".join(_WORDS)
#: `[major]`, `**Major:**`, `major — `, `Severity: major, `: marked off in some way, for `High memory use` is no severity.
_SEVERITY = re.compile(
    rf"(?:severity\s*[:=]\s*)?(?:[\[(*_`]+(?P<marked>{_WORD})\s*:?[\])*_`]+|(?P<plain>{_WORD})(?=\s*[:,;|–—]|\s+-\s|\s*$)"
    r"|(?P<sign>[🔴🟠🟡🟢🔵]))[\s:,;|–—]*(?:-\s)?\s*",
    re.IGNORECASE,
)
_TITLE = re.compile(rf"\W*({_WORD})s?\b", re.IGNORECASE)
_ITEM = re.compile(r"(?P<indent>\s*)(?:[-*+•]|\d{1,4}[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>\S.*)")
_PLACE = re.compile(
    r"(?<![\w/:.@+-])(?P<path>(?=[\d./@+-]*[A-Za-z_])[\w@+-]*[./][\w./@+-]*\w|Makefile|Dockerfile)(?::|#L)(?P<line>\d+)"
    r"(?:[-–:]L?\d+)?"
)
#: Of one report. One that has more is no review, and whoever reads the list would not come to its end.
MOST = 1000
#: What stands around a place at the begin of a finding.
_BEFORE, _AFTER = re.compile(r"[\s(\[*`]*"), re.compile(r"[\s)\]*`]*(?:[:,;|–—]|-\s)*\s*")
_REPORTED_BY = re.compile(r"\s*\((?:reported|said|seen|found) by [^()]*\)", re.IGNORECASE)
_NOTHING = re.compile(r"(?:none|nothing|n/a|no (?:findings?|issues?|problems?))\b.{0,60}", re.IGNORECASE)


class Finding(Record):
    """One thing that is wrong, and who says so."""

    severity: str
    #: `path:line`; empty where none is told.
    place: str
    #: In one line, without severity and place.
    text: str
    #: The stages that reported it.
    by: tuple[str, ...] = ()


def read(report: str, by: str = "") -> list[Finding]:
    """The findings of one report, in its order. Text in which no list can be seen is one finding, not none."""
    section = markdown.find(markdown.sections(report), "Findings")
    if section is None:
        return []
    items = list(islice(_items(section.body), MOST))
    if not items:
        prose = [line for line in section.body.split("\n") if not line.lstrip().startswith("#")]
        items = [(_UNRATED, "\n".join(prose))]
    found = [_finding(text, severity, by) for severity, text in items]
    return [
        each
        for each in found
        if each.severity != _DROPPED and each.text and not _NOTHING.fullmatch(each.text)
    ]


def merge(reports: Sequence[tuple[str, str]]) -> tuple[Finding, ...]:
    """The findings of several reports, each with the stage that wrote it: worst first, then by place, doubles made one."""
    by_words: dict[str, list[Finding]] = {}
    for stage, report in reports:
        for finding in read(report, stage):
            alike = by_words.setdefault(_plain(finding.text), [])
            at = next((at for at, old in enumerate(alike) if _is_same_place(old, finding)), None)
            if at is None:
                alike.append(finding)
            else:
                alike[at] = _joined(alike[at], finding)
    return tuple(sorted((each for alike in by_words.values() for each in alike), key=_order))


def render(found: Sequence[Finding], stages: Sequence[str]) -> str:
    """`_findings.md`: the list, numbered. `stages` are those that were asked."""
    asked = ", ".join(stages)
    if not found:
        return f"# Findings\n\nNone. (Asked: {asked})\n"
    lines = [f"# Findings\n\n{len(found)}, worst first. (Asked: {asked})\n"]
    for number, each in enumerate(found, start=1):
        place = f" `{each.place}`" if each.place else ""
        lines.append(f"{number}. **{each.severity}**{place} — {each.text} ({', '.join(each.by)})")
    return "\n".join(lines) + "\n"


def _items(body: str) -> Iterator[tuple[str, str]]:
    """Items of the outermost list, with all that belongs to each; before them the severity of the heading above. A line that
    begins with a severity is an item without a bullet."""
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
            said = _TITLE.match(bare)
            severity = _WORDS[said[1].casefold()] if said is not None else _UNRATED
        elif is_item and item is not None:
            base, text = len(item["indent"]), item["text"]
        elif text or _SEVERITY.match(bare):
            text += f"\n{bare}"
        is_apart = not bare
    if text:
        yield severity, text


def _finding(text: str, severity: str, by: str) -> Finding:
    text = " ".join(text.split())
    if (said := _SEVERITY.match(text)) is not None:
        word = said["marked"] or said["plain"] or said["sign"]
        severity, text = _WORDS[word.casefold()], text[said.end() :]
    place = ""
    if (found := _PLACE.search(text)) is not None:
        place = f"{found['path'].removeprefix('./')}:{found['line']}"
        begin = _BEFORE.match(text)
        if begin is not None and begin.end() == found.start():
            rest = _AFTER.match(text, found.end())
            text = text[rest.end() :] if rest is not None and rest.end() < len(text) else text
    return Finding(severity=severity, place=place, text=text, by=(by,) if by else ())


def _is_same_place(one: Finding, other: Finding) -> bool:
    return one.place == other.place or not one.place or not other.place


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", _REPORTED_BY.sub("", text).casefold()))


def _joined(one: Finding, other: Finding) -> Finding:
    # A word of one beats the silence of the other.
    rated = [each for each in (one.severity, other.severity) if each != _UNRATED]
    return one.evolve(
        severity=min(rated or [_UNRATED], key=SEVERITIES.index),
        place=one.place or other.place,
        by=tuple(dict.fromkeys((*one.by, *other.by))),
    )


def _order(finding: Finding) -> tuple[int, bool, str, int]:
    path, _, line = finding.place.rpartition(":")
    return SEVERITIES.index(finding.severity), not path, path, int(line or 0)
