"""Changes that are not in a stage's scope: told in words, taken back where that may be done. For `writing` and `reading`."""

from __future__ import annotations

import os

from holdfast.gates.base import Case, Check
from holdfast.model.record import Record
from holdfast.workspace.prepare import now
from holdfast.workspace.scope import Scope, seen_from
from holdfast.workspace.snapshots.changes import changed, within
from holdfast.workspace.snapshots.git_files import is_neutral
from holdfast.workspace.snapshots.revert import revert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.gates.base import Workspace
    from holdfast.workspace.snapshots.changes import Change

#: Reasons that are given, and paths that are named in one; more would only be noise.
_NAMED, _FEW = 20, 5


class Violation(Record):
    """A change that is not in the scope."""

    change: Change
    reason: str


def words(change: Change, prefix: str) -> str:
    """What happened to a path, as seen from the project."""
    path = seen_from(prefix, change.path)
    if change.old_path is not None:
        return f"{seen_from(prefix, change.old_path)} was renamed to {path}"
    return (
        f"{path} was {change.kind}" if change.kind != "submodule" else f"{path} was moved to another commit"
    )


def shortened(reasons: list[str]) -> tuple[str, ...]:
    """As many as anybody reads."""
    if len(reasons) <= _NAMED:
        return tuple(reasons)
    return (*reasons[:_NAMED], f"and {len(reasons) - _NAMED} more changes that are out of scope")


def few(paths: list[str] | tuple[str, ...]) -> str:
    """The first of them, in one line."""
    return ", ".join(paths[:_FEW]) + (", …" if len(paths) > _FEW else "")


def of_git(case: Case, workspace: Workspace) -> tuple[list[str], list[str]]:
    """Hooks and settings of the repository are in nobody's scope: they run, or decide what runs, at a person's next command. Returns
    what is a violation, and what is only told: in place nobody knows who did it, and some settings a neighbour may write."""
    refused: list[str] = []
    told: list[str] = []
    for change in workspace.own_files:
        what = f"{change.path} was {change.kind}"
        if workspace.base.kind != "worktree" or is_neutral(change):
            told.append(f"{what} while {case.stage.name} ran; nobody can tell by whom")
        else:
            refused.append(f"{what}: it is git's own, and in no scope")
    return refused, told


def warned(check: Check, told: list[str]) -> Check:
    """A check with what a person should know as well, whatever its answer is."""
    if not told:
        return check
    # Where it did not pass, its reasons are told already.
    return check.evolve(reasons=(*check.reasons, *shortened(told)), is_warning=check.passed)


def remarked(case: Case, told: tuple[str, ...], *, is_warning: bool = False) -> Check:
    """A check that passes, with what a person should know: behind the last stage, also what else changed outside the scope since
    the task began. Nobody can say who did that: a command of acceptance, a process that an agent left, a person."""
    workspace = case.workspace
    since: tuple[str, ...] = ()
    if workspace is not None and case.is_last and workspace.base.base_tree:
        base = workspace.base
        scope = Scope(case.pipeline.scope_allow, case.pipeline.scope_deny)
        _, since = within(
            workspace.trees, base.base_tree, workspace.new_tree, scope=scope, prefix=base.place.prefix
        )
        known = {end for change in workspace.changes for end in change.ends}
        since = tuple(path for path in since if path not in known or not told)
    if since:
        told = (*told, f"outside the scope, and changed since the task began: {few(since)}")
    return Check(name="scope", passed=True, reasons=told, is_warning=is_warning or bool(since))


def take_back(
    case: Case,
    workspace: Workspace,
    found: list[Violation],
    *,
    again: Callable[[Iterable[Change]], list[Violation]],
) -> Check:
    """Take back what was `found`, and look `again`: only what the working tree shows then counts."""
    paths = [end for violation in found for end in violation.change.ends]
    revert(
        workspace.trees,
        workspace.base,
        workspace.old_tree,
        workspace.new_tree,
        paths=paths,
        keep_at=case.reverted_at,
    )
    after = changed(workspace.trees, workspace.old_tree, now(case.packet, workspace.base))
    if left := again(after):
        return Check(name="scope", passed=False, reasons=shortened([violation.reason for violation in left]))
    told = f"{len(found)} changes out of scope were taken back; they are kept in {os.path.basename(case.reverted_at)}"
    reasons = shortened([violation.reason for violation in found])
    return Check(name="scope", passed=True, reasons=(told, *reasons), is_warning=True)
