"""The scope gate: a stage that writes keeps to its scope, and one that only reads changes nothing."""

from __future__ import annotations

from holdfast.gates import reading, writing
from holdfast.gates.base import Case, Check, is_writer


def check(case: Case) -> Check:
    """Look at the working tree, whatever the report says."""
    return writing.check(case) if is_writer(case.stage) else reading.check(case)
