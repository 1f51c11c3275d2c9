"""Checks for the best of N: a candidate can be adopted, and a judge names one that passed its gate."""

from __future__ import annotations

from holdfast.gates.base import Case, Check
from holdfast.model import conclusion, contest
from holdfast.workspace import candidates
from holdfast.workspace.snapshots.changes import few


def check_carry(case: Case) -> Check:
    """All changes can be put into another worktree."""
    workspace = case.workspace
    unable: list[str] = []
    if workspace is not None:
        trees, top = workspace.trees, workspace.base.place.top
        unable = candidates.not_carried(trees, workspace.old_tree, workspace.new_tree, top=top)
    reason = f"cannot be adopted: {few(unable)} (over 64 MiB, or a repository)" if unable else ""
    return Check(name="carry", passed=not unable, reasons=(reason,) if unable else ())


def check_choice(case: Case) -> Check:
    """The report names one of the candidates that passed."""
    numbers = ", ".join(str(stage.candidate) for stage in case.survivors)
    decision = conclusion.read(case.stage.role, case.report).decision
    if contest.named(case.survivors, decision) is not None:
        return Check(name="choice", passed=True, reasons=(f"candidate {decision} of {numbers}",))
    problem = f"candidate {decision} is not one of them" if decision else "it names none"
    reason = f"the first line under the heading 'Choice' must name one of {numbers}; {problem}"
    return Check(name="choice", passed=False, reasons=(reason,))
