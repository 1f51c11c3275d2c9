"""A stage that only reads changes nothing: what changed while it ran is told, and in a worktree it is refused.

In place, others work in the same directory: a person, another task. Who changed a file while a review ran cannot be told, and a
review must not fail for it: there it is a warning. In a worktree nobody else is at work.
"""

from __future__ import annotations

from holdfast.gates.base import Case, Check
from holdfast.gates.violations import Violation, of_git, remarked, shortened, take_back, warned, words
from holdfast.workspace.scope import Scope, seen_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.workspace.snapshots.changes import Change


def check(case: Case) -> Check:
    """Compare the workspace with what it was when the stage, or those beside it, began."""
    workspace = case.workspace
    if workspace is None:
        return Check(name="scope", passed=True)
    prefix, name = workspace.base.place.prefix, case.stage.name
    refused, told_of_git = of_git(case, workspace)
    if workspace.base.kind != "worktree":
        told = [f"{words(change, prefix)} while {name} ran, which only reads" for change in workspace.changes]
        return warned(remarked(case, shortened(told), is_warning=bool(told)), told_of_git)
    scope = Scope(case.pipeline.scope_allow, case.pipeline.scope_deny)

    def blamed(changes: Iterable[Change]) -> list[Violation]:
        return [
            Violation(change=change, reason=f"{words(change, prefix)} by {name}, which only reads")
            for change in changes
            if not _is_left_behind(change, scope, prefix)
        ]

    found = blamed(workspace.changes)
    left = [
        f"{words(change, prefix)} by {name}, outside the scope; diff and apply leave it out"
        for change in workspace.changes
        if _is_left_behind(change, scope, prefix)
    ]
    if refused or (found and not (case.pipeline.revert_out_of_scope and case.reverted_at)):
        reasons = [*refused, *(violation.reason for violation in found)]
        return warned(Check(name="scope", passed=False, reasons=shortened(reasons)), told_of_git)
    if found:
        return warned(take_back(case, workspace, found, again=blamed), told_of_git)
    return warned(remarked(case, shortened(left)), told_of_git)


def _is_left_behind(change: Change, scope: Scope, prefix: str) -> bool:
    """A new file outside the scope, such as a cache of the tests that a verifier ran: it comes home with nothing."""
    path = seen_from(prefix, change.path)
    return change.kind == "added" and not scope.has(change.path, prefix) and not scope.denies(path)
