"""Where the results of a task are: links by phase, an index over tasks, and copies under the names people know."""

from __future__ import annotations

import os

from holdfast.model.roles import ROLES
from holdfast.model.spec import StageSpec, TaskSpec
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any

    from holdfast.store.layout import Packet

#: Purpose of a role → phase of the work.
_PHASES = {"plan": "plan", "impl": "impl", "one_shot": "impl", "review": "review", "verify": "verify"}
#: Roles whose result is what their checks found.
_CHECKED = ("verify",)
#: Stage → the name of its result outside the packet; other stages are called after themselves.
_NAMES = {
    "gemini_test_design": "test_matrix.md",
    "gemini_static_verify": "verification_checklist.md",
    "codex_test_impl": "test_implementation_report.md",
    "codex_verify": "verification_report.md",
    "copilot_review_consolidate": "consolidated_review.md",
}


def phase(role: str) -> str:
    """plan, impl, review or verify."""
    return _PHASES[ROLES[role].purpose] if role in ROLES else "impl"


def artifact(stage: StageSpec) -> str:
    """The path of a stage's main result in the packet."""
    if stage.role in _CHECKED:
        return f"outputs/{stage.name}.artifact.md"
    return f"outputs/{stage.name}.{stage.agent}.out"


def phase_links(
    task_id: str,
    stages: Iterable[StageSpec],
    done: Collection[str],
    *,
    at: str,
    sessions: Mapping[str, str | None] | None = None,
) -> dict[str, Any]:
    """state/phase-links.json: for each phase its stages, and its canonical result, which is that of the last one done. The
    agents of `stages` are those that played them, `sessions` are their own ids."""
    phases: dict[str, dict[str, Any]] = {}
    for stage in stages:
        entry = phases.setdefault(phase(stage.role), {"canonical": None, "stages": {}})
        is_done = stage.name in done
        entry["stages"][stage.name] = {"artifact": artifact(stage) if is_done else None, "done": is_done}
        if sessions is not None:
            entry["stages"][stage.name].update(agent=stage.agent, session_id=sessions.get(stage.name))
        if is_done:
            entry["canonical"] = artifact(stage)
    return {"schema": "holdfast.phase-links/1", "task_id": task_id, "updated_at": at, "phases": phases}


def task_entry(
    spec: TaskSpec, manifest: Mapping[str, Any], sessions: Mapping[str, str | None]
) -> dict[str, Any]:
    """One task of task-index.json. `manifest` is its manifest.json, `sessions` are the agents' own ids by stage."""
    phases: dict[str, list[dict[str, Any]]] = {}
    for stage in spec.stages:
        row = {"stage": stage.name, "agent": stage.agent, "session_id": sessions.get(stage.name)}
        phases.setdefault(phase(stage.role), []).append(row)
    pipeline = spec.pipeline
    return {
        "status": manifest.get("status"),
        "run": manifest.get("run"),
        "started_at": manifest.get("started_at"),
        "finished_at": manifest.get("finished_at"),
        "intent": pipeline.intent if pipeline is not None else None,
        "profile": pipeline.profile if pipeline is not None else None,
        "policies": {}
        if pipeline is None
        else {
            "retry_budget": pipeline.retry_budget,
            "paid_call_budget": pipeline.paid_call_budget,
            "max_wallclock_s": pipeline.max_wallclock_s,
            "digest_policy": pipeline.digest_policy,
        },
        "phases": phases,
        "links": f"tasks/{spec.task_id}/state/phase-links.json",
    }


def task_index(entries: Mapping[str, dict[str, Any]], *, at: str) -> dict[str, Any]:
    """<home>/task-index.json: derived from the packets, and made anew from them."""
    return {"schema": "holdfast.task-index/1", "updated_at": at, "tasks": dict(sorted(entries.items()))}


def result_name(stage: str, intent: str) -> str:
    """What the copy of a stage's result is called."""
    if stage == "codex_review" and intent == "post_impl_review":
        return "codex_precision_review.md"
    return _NAMES.get(stage, f"{stage}.md")


def export(packet: Packet, target: str) -> list[str]:
    """Copy what the stages wrote, and the summary, to a folder; returns the names. What is not there is passed over."""
    from holdfast.packet import load

    spec = load.fold(packet).spec
    intent = spec.pipeline.intent if spec.pipeline is not None else ""
    os.makedirs(target, exist_ok=True)
    copied: list[str] = []
    lines = [f"# {spec.goal}", "", f"Task {spec.task_id}, {intent}.", ""]
    for stage in spec.stages:
        name = result_name(stage.name, intent)
        places = (artifact(stage), f"outputs/{stage.name}.{stage.agent}.out")
        is_there = any(_copy(os.path.join(packet.path, path), os.path.join(target, name)) for path in places)
        copied += [name] if is_there else []
        lines.append(f"- {stage.name}: {name if is_there else 'no result'}")
    if _copy(packet.summary, os.path.join(target, "dispatch_summary.md")):
        copied.append("dispatch_summary.md")
        lines.append("- how it went: dispatch_summary.md")
    atomic.write(os.path.join(target, "summary.md"), ("\n".join(lines) + "\n").encode(), durable=False)
    return [*copied, "summary.md"]


def _copy(source: str, target: str) -> bool:
    try:
        with open(source, "rb") as file:
            data = file.read()
    except OSError:
        return False
    atomic.write(target, data, durable=False)
    return True
