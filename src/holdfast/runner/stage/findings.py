"""What the reviewers of a task found, as one list: `outputs/_findings.md`, and the attachment of who joins or fixes it."""

from __future__ import annotations

from holdfast.model import roles
from holdfast.pipeline.results import findings
from holdfast.runner.ledger import Ledger
from holdfast.store import atomic

_REPORT_BYTES = 4 * 1024 * 1024


def text(ledger: Ledger, *, passed: str | None = None) -> str | None:
    """The list, of the stages that are done, and of one that just passed its gate; None where no reviewer is among them."""
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
    """After the gate of a reviewer. Derived from the reports: written again after a kill."""
    found = text(ledger, passed=stage)
    if found is not None:
        atomic.write(ledger.packet.findings, found.encode("utf-8", "backslashreplace"), durable=False)
