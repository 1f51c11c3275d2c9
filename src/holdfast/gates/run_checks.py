"""Run the checks of a stage's gate, and write down the gate result."""

from __future__ import annotations

import importlib

from holdfast import plugins
from holdfast.errors import BadPlugin
from holdfast.gates.base import CHECKS, RUNS_COMMANDS, Case, Check, checks_of, in_scope, is_writer
from holdfast.gates.gather_case import note_tree
from holdfast.model import conclusion
from holdfast.store import atomic
from holdfast.workspace.snapshots.changes import changed, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.gates.base import CheckFunction


def run_checks(case: Case) -> list[Check]:
    """Make the checks in order. No command is run once a check has failed."""
    results: list[Check] = []
    for name in checks_of(case.stage, is_accepting=case.is_accepting, of_packet=case.pipeline.checks):
        if name in RUNS_COMMANDS and not all(result.passed for result in results):
            results.append(Check(name=name, passed=False, reasons=("not run: an earlier check failed",)))
            continue
        if name in RUNS_COMMANDS:
            note_tree(case)
        results.append(redacted(case, _function(name)(case).evolve(name=name)))
    return results


def write_changes(case: Case, path: str) -> int | None:
    """Write what the task has changed within its scope, for reviewers; returns the number of files.

    None if the stage does not write.
    """
    workspace = case.workspace
    if workspace is None or not is_writer(case.stage) or not workspace.base.base_tree:
        return None
    trees, old = workspace.trees, workspace.base.base_tree
    new, _ = in_scope(case, workspace, since=old)
    atomic.write(path, text(trees, old, new), durable=True)
    return len(changed(trees, old, new))


def judged_tree(case: Case) -> dict[str, str]:
    """The tree of a stage that writes: that of the task's start, and the changes in scope.

    For a candidate it is that of its own start; it is adopted if it is chosen.
    """
    workspace = case.workspace
    if workspace is None or not is_writer(case.stage) or not workspace.base.base_tree:
        return {}
    since = workspace.old_tree if case.stage.candidate else workspace.base.base_tree
    tree, _ = in_scope(case, workspace, since=since)
    return {"tree": tree}


def redacted(case: Case, result: Check) -> Check:
    """A check without secrets."""
    return result.evolve(
        reasons=tuple(case.redact(reason) for reason in result.reasons),
        evidence=case.redact(result.evidence),
        confirm=tuple(case.redact(reason) for reason in result.confirm),
    )


def _function(name: str) -> CheckFunction:
    """The function of a check: built in, or of another package (`gate.checks`)."""
    if name in CHECKS:
        module, _, function = CHECKS[name].partition(":")
        return getattr(importlib.import_module(module), function)
    for entry in plugins.find(plugins.CHECKS, name):
        return entry.load()
    raise BadPlugin(
        f"no check named {name!r}",
        hint="install the package that has it, or change gate.checks in the packet",
    )


def result_of(
    case: Case, attempt: int, results: list[Check], *, changed: int | None, at: str
) -> dict[str, Any]:
    """The content of `<stage>.gate_result.json`."""
    failed = next((result for result in results if not result.passed), None)
    shown = [result for result in results if result.passed == (failed is None)]
    return {
        "schema": "holdfast.gate/1",
        "stage": case.stage.name,
        "role": case.stage.role,
        "attempt": attempt,
        "passed": failed is None,
        "failed": failed.name if failed is not None else "",
        "reasons": [reason for result in shown for reason in result.reasons],
        "warnings": [reason for result in results if result.is_warning for reason in result.reasons],
        "changed": changed,
        **judged_tree(case),
        **({"passed_before": True} if any(result.passed_before for result in results) else {}),
        **({"cannot_start": True} if failed is not None and failed.cannot_start else {}),
        **conclusion.read(case.stage.role, case.report).to_json(),
        "confirm": [reason for result in shown for reason in result.confirm],
        "checks": [
            {"name": result.name, "passed": result.passed, "reasons": list(result.reasons)}
            for result in results
        ],
        "evidence": failed.evidence if failed is not None else "",
        "timestamp": at,
    }
