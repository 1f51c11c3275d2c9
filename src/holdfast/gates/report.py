"""The common gate: the stage left its report and the record of its call."""

from __future__ import annotations

from holdfast.errors import HoldfastError
from holdfast.gates.base import Case, Check
from holdfast.store import atomic


def check(case: Case) -> Check:
    """`.out` has something in it, and `.meta.json` is there."""
    reasons: list[str] = []
    if not case.report.strip():
        reasons.append(
            f"outputs/{case.stage.name}.{case.agent}.out is missing or empty: the stage reported nothing"
        )
    try:
        meta = atomic.read_json(case.packet.output(case.stage.name, case.agent, "meta.json"))
        if meta is None:
            reasons.append(f"outputs/{case.stage.name}.{case.agent}.meta.json is missing")
    except HoldfastError as error:
        reasons.append(str(error))
    return Check(name="report", passed=not reasons, reasons=tuple(reasons))
