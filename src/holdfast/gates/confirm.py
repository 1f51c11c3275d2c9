"""STOP_AND_CONFIRM: a reviewer asks for a person's approval before the next stage.

The check always passes. Each such line becomes a remark; `requests` finds them again in the result of the
gate.
"""

from __future__ import annotations

import re

from holdfast.gates.base import Case, Check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

WORD = "STOP_AND_CONFIRM"
_LINE = re.compile(rf"^[ \t>*`_-]*{WORD}[ \t*`]*(?::(.*))?$", re.MULTILINE)
#: Limits for a report that repeats the line, and for each reason.
_MAX_REMARKS, _REASON_CHARS = 5, 500


def check(case: Case) -> Check:
    """Make a remark of every such line, also inside a code block: one question too many does no harm."""
    reasons = [text.strip(" \t*`_")[:_REASON_CHARS] for text in _LINE.findall(case.report.replace("\r", ""))]
    remarks = dict.fromkeys(f"{WORD}: {reason}" if reason else WORD for reason in reasons)
    return Check(name="confirm", passed=True, reasons=tuple(remarks)[:_MAX_REMARKS])


def requests(remarks: Iterable[str]) -> list[str]:
    """The reasons of the requests among a gate's remarks; a request without a reason is an empty string."""
    return [remark.removeprefix(WORD).lstrip(": ") for remark in remarks if remark.startswith(WORD)]
