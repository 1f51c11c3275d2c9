"""STOP_AND_CONFIRM: a reviewer asks that a person looks before anything else happens. It fails nothing; it is a remark that the
runner heeds."""

from __future__ import annotations

import re

from holdfast.gates.base import Case, Check

WORD = "STOP_AND_CONFIRM"
_LINE = re.compile(rf"^[ \t>*`_-]*{WORD}[*`]*(?:[ \t]*:[ \t]*(.*?))?[ \t*`_]*$", re.MULTILINE)


def check(case: Case) -> Check:
    """Every such line of the report is a remark. Inside a code block too: to ask once too often does no harm."""
    reasons = [
        f"{WORD}: {reason}" if reason else WORD for reason in _LINE.findall(case.report.replace("\r", ""))
    ]
    return Check(name="confirm", passed=True, reasons=tuple(dict.fromkeys(reasons)))
