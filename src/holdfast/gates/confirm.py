"""STOP_AND_CONFIRM: a reviewer asks that a person looks before anything else happens. It fails nothing; it is a remark that the
runner heeds."""

from __future__ import annotations

import re

from holdfast.gates.base import Case, Check

WORD = "STOP_AND_CONFIRM"
_LINE = re.compile(rf"^[ \t>*`_-]*{WORD}[ \t*`]*(?::(.*))?$", re.MULTILINE)
#: Of a report that says it again and again, and of each reason.
_MOST, _REASON_CHARS = 5, 500


def check(case: Case) -> Check:
    """Every such line of the report is a remark. Inside a code block too: to ask once too often does no harm."""
    said = [reason.strip(" \t*`_")[:_REASON_CHARS] for reason in _LINE.findall(case.report.replace("\r", ""))]
    reasons = dict.fromkeys(f"{WORD}: {reason}" if reason else WORD for reason in said)
    return Check(name="confirm", passed=True, reasons=tuple(reasons)[:_MOST])
