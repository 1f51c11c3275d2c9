"""The scope gate: what really changed in the working tree lies inside `scope.allow` and outside `scope.deny`.

What the report says does not matter here, nor what was dirty before the stage, which is in the tree of its start. Patterns are
those of gitignore, relative to the project. What git ignores is nobody's work, unless a pattern of `deny` names it, or the rule
came with it. A stage that only reads must change nothing (`reading`).
"""

from __future__ import annotations

import os

from holdfast.errors import GitFailed
from holdfast.gates.base import Case, Check, is_writer
from holdfast.model.record import Record
from holdfast.workspace.own_files import is_neutral
from holdfast.workspace.scope import Scope, seen_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.gates.base import Workspace
    from holdfast.workspace.changes import Change

#: Reasons that are given, and paths that are named in one; more would only be noise.
_NAMED, _FEW = 20, 5


class Violation(Record):
    """A change that is not in the scope."""

    change: Change
    reason: str


def violations(changes: Iterable[Change], scope: Scope, *, top: str, prefix: str) -> list[Violation]:
    """Every change that is out of scope, with its reason. Pure, but for where symbolic links on the way lead."""
    found: list[Violation] = []
    for change in changes:
        # A repository inside, named without what is in it, is a directory to patterns.
        slash = "/" if change.kind == "submodule" else ""
        ends = [seen_from(prefix, end) + slash for end in change.ends]
        reason = next((why for end in ends if (why := scope.objection(end)) is not None), None)
        if reason is None and change.is_symlink:
            reason = _link_objection(change, scope, top=top, prefix=prefix)
        if reason is not None:
            found.append(Violation(change=change, reason=f"{_words(change, prefix)}: {reason}"))
    return found


def _link_objection(change: Change, scope: Scope, *, top: str, prefix: str) -> str | None:
    """A link must stay in the project, and must not be another name for what is denied."""
    target = change.target
    if target is None:
        return "it is a symbolic link whose target cannot be read"
    project = os.path.realpath(os.path.join(top, prefix))
    full = os.path.join(top, os.path.dirname(change.path), target)
    # Both what it says and where that leads: the one can be changed while the other stays.
    for end in (os.path.normpath(full), os.path.realpath(full)):
        inside = os.path.relpath(end, project)
        if inside == ".." or inside.startswith("../"):
            return f"it is a symbolic link out of the project, to {target}"
        if ".git" in inside.split("/"):
            return f"it is a symbolic link to {target}, which is git's own"
        if scope.denies(inside) or scope.denies(inside + "/"):
            return f"it is a symbolic link to {target}, which is denied by scope.deny"
    return None


def _words(change: Change, prefix: str) -> str:
    path = seen_from(prefix, change.path)
    if change.old_path is not None:
        return f"{seen_from(prefix, change.old_path)} was renamed to {path}"
    return f"{path} was {change.kind}" if change.kind != "submodule" else f"{path} is at another commit"


def check(case: Case) -> Check:
    """Look at the working tree. Where the packet says so, and in a worktree only, what is out of scope is taken back."""
    workspace = case.workspace
    if not is_writer(case.stage):
        from holdfast.gates import reading

        return reading.check(case)
    if workspace is None:
        raise GitFailed(
            f"the state of the workspace before {case.stage.name} is not on record, so its scope cannot be judged",
            hint="the stage must be prepared before its agent starts",
        )
    scope = Scope(case.pipeline.scope_allow, case.pipeline.scope_deny)
    place = workspace.base.place
    found = violations(workspace.changes, scope, top=place.top, prefix=place.prefix)
    refused, told = of_git(case, workspace)
    for_good = [*refused, *_ignored(workspace, scope)]
    if not found and not for_good:
        return warned(remarked(case, _ways_out(workspace)), told)
    can_revert = case.pipeline.revert_out_of_scope and workspace.base.kind == "worktree" and case.reverted_at
    if can_revert and not for_good:
        after = take_back(
            case,
            workspace,
            found,
            again=lambda changes: violations(changes, scope, top=place.top, prefix=place.prefix),
        )
        return warned(after, told)
    reasons = [*for_good, *(violation.reason for violation in found)]
    return warned(Check(name="scope", passed=False, reasons=shortened(reasons)), told)


def shortened(reasons: list[str]) -> tuple[str, ...]:
    """As many as anybody reads."""
    if len(reasons) <= _NAMED:
        return tuple(reasons)
    return (*reasons[:_NAMED], f"and {len(reasons) - _NAMED} more changes that are out of scope")


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


def _ignored(workspace: Workspace, scope: Scope) -> list[str]:
    """New files out of scope that a rule of ignoring hides which came with them."""
    from holdfast.workspace.hidden import newly_ignored

    place = workspace.base.place
    hidden = newly_ignored(place, workspace.trees, workspace.old_tree, workspace.changes)
    found = violations(hidden, scope, top=place.top, prefix=place.prefix)
    return [f"{violation.reason}, and ignored only since then" for violation in found]


def _ways_out(workspace: Workspace) -> tuple[str, ...]:
    """Links that were there before, lead out of the tree, and can be written through: what is done there is not seen."""
    from holdfast.workspace.changes import links

    top = os.path.realpath(workspace.base.place.top)
    found: list[str] = []
    for path, target in links(workspace.trees, workspace.old_tree):
        end = os.path.realpath(os.path.join(top, os.path.dirname(path), target))
        if not end.startswith(top + os.sep) and end != top and os.access(end, os.W_OK):
            found.append(f"{path} → {target}")
    if not found:
        return ()
    names = ", ".join(found[:_FEW]) + (", …" if len(found) > _FEW else "")
    return (f"links lead out of the project, and what is written through them is not seen: {names}",)


def remarked(case: Case, told: tuple[str, ...], *, is_warning: bool = False) -> Check:
    """A check that passes, with what a person should know: behind the last stage, also what else changed outside the scope since
    the task began. Nobody can say who did that: a command of acceptance, a process that an agent left, a person."""
    workspace = case.workspace
    since: tuple[str, ...] = ()
    if workspace is not None and case.is_last and workspace.base.base_tree:
        from holdfast.workspace.changes import within

        base = workspace.base
        scope = Scope(case.pipeline.scope_allow, case.pipeline.scope_deny)
        _, since = within(
            workspace.trees, base.base_tree, workspace.new_tree, scope=scope, prefix=base.place.prefix
        )
        known = {end for change in workspace.changes for end in change.ends}
        since = tuple(path for path in since if path not in known or not told)
    if since:
        names = ", ".join(since[:_FEW]) + (", …" if len(since) > _FEW else "")
        told = (*told, f"outside the scope, and changed since the task began: {names}")
    return Check(name="scope", passed=True, reasons=told, is_warning=is_warning or bool(since))


def take_back(
    case: Case,
    workspace: Workspace,
    found: list[Violation],
    *,
    again: Callable[[Iterable[Change]], list[Violation]],
) -> Check:
    """Take back what was `found`, and look `again`: only what the working tree shows then counts."""
    from holdfast.workspace.changes import changed
    from holdfast.workspace.prepare import now
    from holdfast.workspace.revert import revert

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
