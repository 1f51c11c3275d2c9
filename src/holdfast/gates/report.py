"""Checks of a stage's report: it exists, it has the headings of its role, it is long enough.

The case and the number of a heading do not matter, nor how it is wrapped.
"""

from __future__ import annotations

from holdfast.errors import HoldfastError
from holdfast.gates.base import Case, Check
from holdfast.model import concerns, conclusion, markdown, pack, roles
from holdfast.store import atomic


def check(case: Case) -> Check:
    """`.out` is not empty, and `.meta.json` exists."""
    reasons: list[str] = []
    if not case.report.strip():
        reasons.append(f"outputs/{case.stage.name}.{case.agent}.out is missing or empty")
    try:
        meta = atomic.read_json(case.packet.output(case.stage.name, case.agent, "meta.json"))
        if meta is None:
            reasons.append(f"outputs/{case.stage.name}.{case.agent}.meta.json is missing")
    except HoldfastError as error:
        reasons.append(str(error))
    return Check(name="report", passed=not reasons, reasons=tuple(reasons))


def check_headings(case: Case) -> Check:
    """Every required heading is there. In a brief, the updated context pack needs its ten headings too."""
    role = roles.get(case.stage.role)
    sections = markdown.sections(case.report)
    updated_pack = markdown.find(sections, roles.UPDATED_PACK) if role.is_brief else None
    if updated_pack is not None:
        # `2. Scope` of the pack is not the `Scope` of the report.
        sections = [each for each in sections if each.line <= updated_pack.line or not _is_of_pack(each)]
    missing = [title for title in role.headings if markdown.find(sections, title) is None]
    reasons = [f"the report has no heading {title!r}" for title in missing]
    if updated_pack is not None:
        missing = _missing_in_pack(case.report, updated_pack)
        reasons += [f"the updated context pack has no heading {title!r}" for title in missing]
    return Check(name="headings", passed=not reasons, reasons=tuple(reasons))


def check_severity(case: Case) -> Check:
    """No finding is worse than the packet allows (`gate.max_severity`)."""
    limit = case.pipeline.max_severity
    if not limit:
        return Check(name="severity", passed=True)
    counts = conclusion.read(case.stage.role, case.report).findings
    bad = conclusion.worse_than(limit, counts)
    reason = f"the review has findings worse than {limit}: {concerns.as_text('', bad)}"
    return Check(name="severity", passed=not bad, reasons=(reason,) if bad else ())


def _is_of_pack(section: markdown.Section) -> bool:
    return any(markdown.find([section], title) is not None for title in pack.HEADINGS)


def _missing_in_pack(report: str, section: markdown.Section) -> list[str]:
    """Headings that the context pack lacks.

    The pack is below its heading, with or without a code fence. If its headings are on the same level, it
    continues after that section.
    """
    rest = "\n".join(report.split("\n")[section.line :])
    candidates = [section.body, rest, *(block.text for block in markdown.code_blocks(rest))]
    return min((pack.missing(candidate) for candidate in candidates), key=len)


def check_lines(case: Case) -> Check:
    """The report has enough lines of text."""
    needed = roles.get(case.stage.role).min_lines
    count = sum(1 for line in case.report.splitlines() if line.strip())
    reason = f"the report has {count} lines of text; it needs {needed}"
    return Check(name="lines", passed=count >= needed, reasons=() if count >= needed else (reason,))
