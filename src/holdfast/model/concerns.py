"""What a person must know about the work of a task, although the task may be completed. Pure.

Reviewers report blockers, verifications fail, a static check says no-go: none of it fails a gate by itself.
"""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from holdfast.model.task import Task

#: Decisions of a report that are bad news.
_BAD = ("no_go", "failed")
#: How a decision reads.
_WORDS = {"go": "go", "no_go": "no-go", "passed": "passed", "failed": "failed"}


class Concern(Record):
    """One thing to know."""

    stage: str
    #: findings, no_go, failed or confirm.
    kind: str
    text: str


def of_task(task: Task) -> tuple[Concern, ...]:
    """The concerns about the work as it is now.

    Reports from before the last change of the work are history, and so are findings that a later stage has
    consolidated.
    """
    if task.spec.pipeline is None:
        return ()
    from holdfast.model import roles  # only pipelines pay for the import

    collected: list[Concern] = []
    last = task.parallel_stages(task.spec.stages[-1].name) if task.spec.stages else ()
    for stage in task.spec.stages:
        state = task.stage_states.get(stage.name)
        gate = state.gate_result if state is not None else None
        if gate is None:
            continue
        if gate.passed and stage.writes:
            collected.clear()
        if roles.get(stage.role).joins_findings:
            collected = [each for each in collected if each.kind != "findings"]
        if gate.findings.get("blocker"):
            collected.append(Concern(stage=stage.name, kind="findings", text=as_text("", gate.findings)))
        if gate.decision in _BAD:
            collected.append(Concern(stage=stage.name, kind=gate.decision, text=as_text(gate.decision)))
        if gate.confirm and stage.name in last:  # a request of an earlier stage was answered
            why = "; ".join(reason for reason in gate.confirm if reason)
            text = "asks to stop and confirm" + (f": {why}" if why else "")
            collected.append(Concern(stage=stage.name, kind="confirm", text=text))
    return tuple(collected)


def as_text(decision: str, findings: dict[str, int] | None = None) -> str:
    """`no-go`, or `1 blocker, 2 major`: what the report of a stage concludes; empty if nothing."""
    counts = ", ".join(f"{count} {severity}" for severity, count in (findings or {}).items())
    decided = f"candidate {decision}" if decision.isdigit() else _WORDS.get(decision, "")
    return "; ".join(part for part in (decided, counts) if part)


def all_as_text(found: Iterable[dict[str, Any]]) -> str:
    """`codex_review: 1 blocker; codex_verify: failed`: concerns as they are in the manifest."""
    return "; ".join(f"{each['stage']}: {each['text']}" for each in found)
