"""STOP_AND_CONFIRM: a reviewer asks for a person's approval before the next stage.

The check always passes. Each such line becomes a remark and an entry of `Check.confirm`.
"""

from __future__ import annotations

import re

from holdfast.gates.base import Case, Check

WORD = "STOP_AND_CONFIRM"
_LINE = re.compile(rf"^[ \t>*`_-]*{WORD}[ \t*`]*(?::(.*))?$", re.MULTILINE)
#: Limits for a report that repeats the line, and for each reason.
_MAX_REMARKS, _REASON_CHARS = 5, 500


def check(case: Case) -> Check:
    """Make a remark of every such line, also inside a code block: one question too many does no harm."""
    reasons = [text.strip(" \t*`_")[:_REASON_CHARS] for text in _LINE.findall(case.report.replace("\r", ""))]
    confirm = tuple(dict.fromkeys(reasons))[:_MAX_REMARKS]
    remarks = tuple(f"{WORD}: {reason}" if reason else WORD for reason in confirm)
    return Check(name="confirm", passed=True, reasons=remarks, confirm=confirm)
