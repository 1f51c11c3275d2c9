"""The check `scope`: a stage that writes stays in its scope, and a stage that only reads changes nothing.

The working tree now is compared with its tree at the start of the stage. The report does not matter here.
Neither do edits made before the stage, because the first tree contains them. Patterns are those of
.gitignore, relative to the project. Files that git ignores do not count, unless a pattern of `scope.deny`
matches them or the stage added the rule that hides them.

In place, a person or another task can work in the same directory. A change during a stage that only reads is
then a warning: who made it is unknown. In a worktree only the task works.
"""

from __future__ import annotations

import os

from holdfast.errors import GitFailed
from holdfast.gates.base import Case, Check, in_scope, is_writer
from holdfast.model.record import Record
from holdfast.workspace.current_tree import current_tree
from holdfast.workspace.scope import Scope, project_path
from holdfast.workspace.snapshots.changes import changed, few, links
from holdfast.workspace.snapshots.git_files import is_neutral
from holdfast.workspace.snapshots.newly_ignored import newly_ignored
from holdfast.workspace.snapshots.revert import revert
from holdfast.workspace.snapshots.snapshot import BIG_BYTES, is_large

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.gates.base import Workspace
    from holdfast.workspace.snapshots.changes import Change

#: How many reasons are given.
_MAX_REASONS = 20


class Violation(Record):
    """A change that is out of scope."""

    change: Change
    reason: str


def check(case: Case) -> Check:
    """Judge the changes of the working tree."""
    return _check_writer(case) if is_writer(case.stage) else _check_reader(case)


# ── a stage that writes ─────────────────────────────────────────────────────


def _check_writer(case: Case) -> Check:
    workspace = case.workspace
    if workspace is None:
        raise GitFailed(
            f"cannot check the scope: no tree was recorded before {case.stage.name}",
            hint="a stage must be prepared before its agent starts",
        )
    scope, project = case.scope, workspace.base.place

    def find(changes: Iterable[Change]) -> list[Violation]:
        return violations(changes, scope, top=project.top, prefix=project.prefix)

    refused, warnings = _git_file_changes(case, workspace)
    warnings += workspace.remarks
    # Hooks, settings and hidden files are never reverted.
    refused += _newly_ignored(workspace, scope)
    result = _refuse_or_revert(case, workspace, refused, find) or _passed(case, _links_out(workspace))
    return _with_warnings(result, warnings)


def violations(changes: Iterable[Change], scope: Scope, *, top: str, prefix: str) -> list[Violation]:
    """The changes that are out of scope. Only the targets of symbolic links are looked up on disk."""
    out_of_scope: list[Violation] = []
    for change in changes:
        # To patterns, a nested repository that is named as a whole is a directory.
        slash = "/" if change.kind == "submodule" else ""
        ends = [project_path(prefix, end) + slash for end in change.ends]
        reason = next((why for end in ends if (why := scope.objection(end)) is not None), None)
        if reason is None and change.is_symlink:
            reason = _link_objection(change, scope, top=top, prefix=prefix)
        if reason is not None:
            out_of_scope.append(Violation(change=change, reason=f"{_described(change, prefix)}: {reason}"))
    return out_of_scope


def _link_objection(change: Change, scope: Scope, *, top: str, prefix: str) -> str | None:
    """A link must not lead out of the project, nor to a denied path."""
    target = change.target
    if target is None:
        return "it is a symbolic link whose target cannot be read"
    project = os.path.realpath(os.path.join(top, prefix))
    full = os.path.join(top, os.path.dirname(change.path), target)
    # Check the path as written and the path it resolves to: each can change while the other stays.
    for end in (os.path.normpath(full), os.path.realpath(full)):
        inside = os.path.relpath(end, project)
        if inside == ".." or inside.startswith("../"):
            return f"it is a symbolic link to {target}, outside the project"
        if ".git" in inside.split("/"):
            return f"it is a symbolic link to {target}, inside .git"
        if scope.denies(inside) or scope.denies(inside + "/"):
            return f"it is a symbolic link to {target}, which scope.deny matches"
    return None


def _newly_ignored(workspace: Workspace, scope: Scope) -> list[str]:
    """New files out of scope that are hidden by an ignore rule of the same stage."""
    project = workspace.base.place
    hidden = newly_ignored(project, workspace.trees, workspace.old_tree, workspace.changes)
    out_of_scope = violations(hidden, scope, top=project.top, prefix=project.prefix)
    return [f"{violation.reason}, and a new ignore rule hides it" for violation in out_of_scope]


def _links_out(workspace: Workspace) -> tuple[str, ...]:
    """A remark on older links to writable places outside the tree: what is written there is not checked."""
    top = os.path.realpath(workspace.base.place.top)
    outward: list[str] = []
    for path, target in links(workspace.trees, workspace.old_tree):
        end = os.path.realpath(os.path.join(top, os.path.dirname(path), target))
        if not end.startswith(top + os.sep) and end != top and os.access(end, os.W_OK):
            outward.append(f"{path} → {target}")
    if not outward:
        return ()
    return (f"symbolic links lead out of the project; writes through them are not checked: {few(outward)}",)


# ── a stage that only reads ─────────────────────────────────────────────────


def _check_reader(case: Case) -> Check:
    workspace = case.workspace
    if workspace is None:
        return Check(name="scope", passed=True)
    prefix, name = workspace.base.place.prefix, case.stage.name
    refused, warnings = _git_file_changes(case, workspace)
    warnings += workspace.remarks
    if workspace.base.kind != "worktree":
        remarks = [
            f"{_described(change, prefix)} while {name} ran, which must not change files"
            for change in workspace.changes
        ]
        return _with_warnings(_passed(case, _shortened(remarks), is_warning=bool(remarks)), warnings)
    scope = case.scope

    def find(changes: Iterable[Change]) -> list[Violation]:
        return [
            Violation(
                change=change,
                reason=f"{_described(change, prefix)} by {name}, which must not change files",
            )
            for change in changes
            if not _is_byproduct(change, scope, prefix)
        ]

    byproducts = [
        f"{_described(change, prefix)} by {name}, outside the scope; 'diff' and 'apply' leave it out"
        for change in workspace.changes
    ]
    result = _refuse_or_revert(case, workspace, refused, find) or _passed(case, _shortened(byproducts))
    return _with_warnings(result, warnings)


def _is_byproduct(change: Change, scope: Scope, prefix: str) -> bool:
    """A new file outside the scope, such as the cache of a test run. It is never merged."""
    path = project_path(prefix, change.path)
    return change.kind == "added" and not scope.has(change.path, prefix) and not scope.denies(path)


# ── both ────────────────────────────────────────────────────────────────────


def _described(change: Change, prefix: str) -> str:
    """What happened to a path, relative to the project."""
    path = project_path(prefix, change.path)
    if change.old_path is not None:
        return f"{project_path(prefix, change.old_path)} was renamed to {path}"
    return f"{path} moved to another commit" if change.kind == "submodule" else f"{path} was {change.kind}"


def _shortened(reasons: list[str]) -> tuple[str, ...]:
    if len(reasons) <= _MAX_REASONS:
        return tuple(reasons)
    return (*reasons[:_MAX_REASONS], f"and {len(reasons) - _MAX_REASONS} more changes out of scope")


def _git_file_changes(case: Case, workspace: Workspace) -> tuple[list[str], list[str]]:
    """Changed hooks and settings of the repository: violations, and warnings.

    They are in no scope, because they run code at a person's next git command, or decide which code runs. In
    place it is unknown who changed them, and some settings are shared with other worktrees: those changes are
    warnings.
    """
    refused: list[str] = []
    warnings: list[str] = []
    for change in workspace.git_files:
        described = f"{change.path} was {change.kind}"
        if workspace.base.kind != "worktree" or is_neutral(change):
            warnings.append(f"{described} while {case.stage.name} ran; it is unknown by whom")
        else:
            refused.append(f"{described}: hooks and settings of the repository are never in scope")
    return refused, warnings


def _with_warnings(result: Check, warnings: list[str]) -> Check:
    if not warnings:
        return result
    # If the check failed, its reasons are shown anyway.
    return result.evolve(reasons=(*result.reasons, *_shortened(warnings)), is_warning=result.passed)


def _refuse_or_revert(
    case: Case,
    workspace: Workspace,
    refused: list[str],
    find: Callable[[Iterable[Change]], list[Violation]],
) -> Check | None:
    """The check of a tree with something refused or out of scope; None if there is nothing."""
    out_of_scope = find(workspace.changes)
    if refused or (out_of_scope and not _may_revert(case, workspace)):
        reasons = [*refused, *(violation.reason for violation in out_of_scope)]
        return Check(name="scope", passed=False, reasons=_shortened(reasons))
    return _revert(case, workspace, out_of_scope, find=find) if out_of_scope else None


def _passed(case: Case, remarks: tuple[str, ...], *, is_warning: bool = False) -> Check:
    """A check that passed, with its remarks.

    After the last stage, one more remark names everything else that changed outside the scope since the task
    began. The cause is unknown: an acceptance command, a process that an agent left running, or a person.
    """
    workspace = case.workspace
    outside: tuple[str, ...] = ()
    if workspace is not None and case.is_last and workspace.base.base_tree:
        _, outside = in_scope(case, workspace, since=workspace.base.base_tree)
        known = {end for change in workspace.changes for end in change.ends}
        outside = tuple(path for path in outside if path not in known or not remarks)
    if outside:
        remarks = (*remarks, f"changed outside the scope since the task began: {few(outside)}")
    return Check(name="scope", passed=True, reasons=remarks, is_warning=is_warning or bool(outside))


def _may_revert(case: Case, workspace: Workspace) -> bool:
    is_wanted = case.pipeline.revert_out_of_scope and bool(case.reverted_at)
    return is_wanted and workspace.base.kind == "worktree"


def _revert(
    case: Case,
    workspace: Workspace,
    out_of_scope: list[Violation],
    *,
    find: Callable[[Iterable[Change]], list[Violation]],
) -> Check:
    """Revert the violations, then compare again: only what the working tree shows afterwards counts."""
    paths = [end for violation in out_of_scope for end in violation.change.ends]
    if large := [path for path in paths if is_large(os.path.join(workspace.base.place.top, path))]:
        # A snapshot has only a note of them, so the patch would, too, and the only copy would be deleted.
        limit = f"{BIG_BYTES >> 20} MiB"
        reason = f"nothing was reverted: {few(large)} is larger than {limit}, which a patch cannot contain"
        reasons = _shortened([violation.reason for violation in out_of_scope])
        return Check(name="scope", passed=False, reasons=(reason, *reasons))
    revert(
        workspace.trees,
        workspace.base,
        workspace.old_tree,
        workspace.new_tree,
        paths=paths,
        keep_at=case.reverted_at,
    )
    after = changed(workspace.trees, workspace.old_tree, current_tree(case.packet, workspace.base))
    if left := find(after):
        return Check(name="scope", passed=False, reasons=_shortened([violation.reason for violation in left]))
    changes = "1 change" if len(out_of_scope) == 1 else f"{len(out_of_scope)} changes"
    remark = f"{changes} out of scope reverted and saved in {os.path.basename(case.reverted_at)}"
    reasons = _shortened([violation.reason for violation in out_of_scope])
    return Check(name="scope", passed=True, reasons=(remark, *reasons), is_warning=True)
