"""A stage that writes: what really changed in the working tree lies inside `scope.allow` and outside `scope.deny`.

What the report says does not matter here, nor what was dirty before the stage, which is in the tree of its start. Patterns are
those of gitignore, relative to the project. What git ignores is nobody's work, unless a pattern of `deny` names it, or the rule
came with it.
"""

from __future__ import annotations

import os

from holdfast.errors import GitFailed
from holdfast.gates.base import Case, Check
from holdfast.gates.violations import Violation, few, of_git, remarked, shortened, take_back, warned, words
from holdfast.workspace.scope import Scope, seen_from
from holdfast.workspace.snapshots.changes import links
from holdfast.workspace.snapshots.newly_ignored import newly_ignored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.gates.base import Workspace
    from holdfast.workspace.snapshots.changes import Change


def check(case: Case) -> Check:
    """Look at the working tree. Where the packet says so, and in a worktree only, what is out of scope is taken back."""
    workspace = case.workspace
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
            found.append(Violation(change=change, reason=f"{words(change, prefix)}: {reason}"))
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


def _ignored(workspace: Workspace, scope: Scope) -> list[str]:
    """New files out of scope that a rule of ignoring hides which came with them."""
    place = workspace.base.place
    hidden = newly_ignored(place, workspace.trees, workspace.old_tree, workspace.changes)
    found = violations(hidden, scope, top=place.top, prefix=place.prefix)
    return [f"{violation.reason}, and ignored only since then" for violation in found]


def _ways_out(workspace: Workspace) -> tuple[str, ...]:
    """Links that were there before, lead out of the tree, and can be written through: what is done there is not seen."""
    top = os.path.realpath(workspace.base.place.top)
    found: list[str] = []
    for path, target in links(workspace.trees, workspace.old_tree):
        end = os.path.realpath(os.path.join(top, os.path.dirname(path), target))
        if not end.startswith(top + os.sep) and end != top and os.access(end, os.W_OK):
            found.append(f"{path} → {target}")
    if not found:
        return ()
    return (f"links lead out of the project, and what is written through them is not seen: {few(found)}",)
