"""The merged findings of all reviewers: `outputs/_findings.md`, also attached to prompts of later stages."""

from __future__ import annotations

from holdfast.model import findings, roles
from holdfast.runner.ledger import Ledger
from holdfast.store import atomic

_REPORT_BYTES = 4 * 1024 * 1024


def text(ledger: Ledger, *, passed: str | None = None) -> str | None:
    """The merged findings of finished stages and of the stage `passed`; None if none of them is a review."""
    task, reports = ledger.task, list[tuple[str, str]]()
    for stage in task.spec.stages:
        role = roles.get(stage.role)
        if not role.has_findings or (stage.name not in task.stages_done and stage.name != passed):
            continue
        path = ledger.packet.output(stage.name, task.stage_state(stage.name).agent, "out")
        report = (atomic.read_small(path, _REPORT_BYTES) or b"").decode("utf-8", "replace")
        if role.joins_findings:
            reports.clear()
        reports.append((stage.name, report))
    if not reports:
        return None
    return ledger.redact(findings.render(findings.merge(reports), [stage for stage, _ in reports]))


def write(ledger: Ledger, stage: str) -> None:
    """Write the file after `stage` passed its gate. Safe to repeat after a kill."""
    merged = text(ledger, passed=stage)
    if merged is not None:
        atomic.write(ledger.packet.findings, merged.encode("utf-8", "backslashreplace"), durable=False)
