"""Copying the results of a task to a folder, under well-known names."""

from __future__ import annotations

import os

from holdfast import files
from holdfast.packet import load
from holdfast.pipeline.results.stage_files import artifact
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.layout import Packet

#: Stage → the file name of its result; any other stage's result is named after the stage.
_NAMES = {
    "gemini_test_design": "test_matrix.md",
    "gemini_static_verify": "verification_checklist.md",
    "codex_test_impl": "test_implementation_report.md",
    "codex_verify": "verification_report.md",
    "copilot_review_consolidate": "consolidated_review.md",
}


def result_name(stage: str, intent: str) -> str:
    """The file name for the result of a stage."""
    if stage == "codex_review" and intent == "post_impl_review":
        return "codex_precision_review.md"
    return _NAMES.get(stage, f"{stage}.md")


def export(packet: Packet, target: str) -> list[str]:
    """Copy the results of the stages, and the summary, to a folder.

    Returns the names of the files written.
    """
    spec = load.fold(packet).spec
    intent = spec.pipeline.intent if spec.pipeline is not None else ""
    os.makedirs(target, exist_ok=True)
    copied: list[str] = []
    lines = [f"# {spec.goal}", "", f"Task {spec.task_id}, {intent}.", ""]
    for stage in spec.stages:
        name = result_name(stage.name, intent)
        sources = (artifact(stage), f"outputs/{stage.name}.{stage.agent}.out")
        is_copied = any(
            _copy(os.path.join(packet.path, path), os.path.join(target, name)) for path in sources
        )
        copied += [name] if is_copied else []
        lines.append(f"- {stage.name}: {name if is_copied else 'no result'}")
    if _copy(packet.summary, os.path.join(target, "dispatch_summary.md")):
        copied.append("dispatch_summary.md")
        lines.append("- summary of the run: dispatch_summary.md")
    atomic.write(os.path.join(target, "summary.md"), ("\n".join(lines) + "\n").encode(), durable=False)
    return [*copied, "summary.md"]


def _copy(source: str, target: str) -> bool:
    try:
        with files.stream(source) as file:
            data = file.read()
    except OSError:
        return False
    atomic.write(target, data, durable=False)
    return True
