"""The check `patch`: the patch of a report applies to the stage's first tree, or its files were written.

A stage that writes must have written something; a patch in its report is then a suggestion, which fails
nothing. If it has written nothing, the patch fails the stage: it would not be applied, so the work would
be lost. A stage that may not write proposes its patch, so that patch must apply.
"""

from __future__ import annotations

import os
import re

from holdfast.errors import GitFailed
from holdfast.gates.base import Case, Check, is_writer
from holdfast.model import markdown
from holdfast.workspace.scope import project_path
from holdfast.workspace.snapshots.changes import few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.gates.base import Workspace

_LANGUAGES = ("diff", "patch", "udiff")
_LOOKS_LIKE_DIFF = re.compile(r"^(?:diff --git |--- \S.*\n\+\+\+ \S.*\n@@ )", re.MULTILINE)
_NO_CHANGES = re.compile(
    r"\bno changes? (?:is |are |was |were )?(?:required|needed|necessary)\b", re.IGNORECASE
)
#: The lines that a patch outside a code fence consists of.
_PATCH_LINE = re.compile(
    r"diff --git |index [0-9a-f]+\.\.|(?:old|new|deleted file|new file) mode |(?:rename|copy) (?:from|to) "
    r"|similarity index |dissimilarity index |Binary files |GIT binary patch|--- |\+\+\+ |@@ |[-+ \\]|$"
)
_FILE = re.compile(r"^(?:---|\+\+\+) (?:[ab]/)?([^\t\n]+)|^diff --git a/(.+) b/(.+)$", re.MULTILINE)
#: No later step applies the patch of a report, so the work would be lost.
_NOT_WRITTEN = (
    "the report has a patch, but no file of the working tree changed: the stage must write the files"
)


def check(case: Case) -> Check:
    """Judge the patches of a report."""
    diffs = patches(case.report)
    if not diffs:
        return _without_patch(case)
    if case.workspace is None:
        raise GitFailed(f"cannot check the patch: no tree was recorded before {case.stage.name}")
    if not is_writer(case.stage):
        why = refusal(case.workspace, "".join(diffs))
        reasons = () if why is None else (f"the patch in the report does not apply: {why}",)
        return Check(name="patch", passed=why is None, reasons=reasons)
    if case.workspace.changes:
        suggested = _suggested(case.workspace, diffs)
        return Check(name="patch", passed=True, reasons=suggested, is_warning=True)
    if _NO_CHANGES.search(case.report):
        return Check(name="patch", passed=True, reasons=("the report says that no changes are required",))
    return Check(name="patch", passed=False, reasons=(_NOT_WRITTEN,))


def _suggested(workspace: Workspace, diffs: list[str]) -> tuple[str, ...]:
    """A remark on files that the report shows a patch of, but that were not changed."""
    prefix = workspace.base.place.prefix
    written = {project_path(prefix, end) for change in workspace.changes for end in change.ends}
    named = {path for diff in diffs for path in files_of(diff)}
    missing = sorted(path for path in named if path not in written)
    return (f"suggested in the report, but not written: {few(missing)}",) if missing else ()


def _without_patch(case: Case) -> Check:
    if case.workspace is not None and case.workspace.changes:
        return Check(
            name="patch", passed=True, reasons=("the report has no patch; the working tree changed",)
        )
    if _NO_CHANGES.search(case.report):
        return Check(name="patch", passed=True, reasons=("the report says that no changes are required",))
    reason = (
        "the report has no unified diff, the working tree did not change, "
        "and the report does not say 'No changes required.'"
    )
    return Check(name="patch", passed=False, reasons=(reason,))


def patches(report: str) -> list[str]:
    """The unified diffs of a report, with a final newline: all fenced ones, or the first unfenced one."""
    fenced = [
        block.text.strip("\n") + "\n"
        for block in markdown.code_blocks(report)
        if block.text.strip() and (block.language in _LANGUAGES or _LOOKS_LIKE_DIFF.search(block.text))
    ]
    if fenced:
        return fenced
    opening = _LOOKS_LIKE_DIFF.search(report)
    if opening is None:
        return []
    lines: list[str] = []
    for line in report[opening.start() :].split("\n"):
        if not _PATCH_LINE.match(line):
            break
        lines.append(line)
    while lines and not lines[-1]:
        lines.pop()
    return ["\n".join(lines) + "\n"]


def files_of(patch: str) -> list[str]:
    """The files that a patch names, even if it is incomplete."""
    paths: list[str] = []
    for match in _FILE.finditer(patch):
        for path in match.groups():
            if path is not None and path.strip() != "/dev/null":
                paths.append(path.strip())
    return list(dict.fromkeys(paths))


def refusal(workspace: Workspace, patch: str) -> str | None:
    """Why `git apply` refuses a patch on the tree of the stage's start; None if it applies.

    No file is changed.
    """
    trees, project = workspace.trees, workspace.base.place
    index = trees.temporary("patch")
    args = ["apply", "--check", "--cached", "--whitespace=nowarn"]
    args += [f"--directory={project.prefix}"] if project.prefix else []
    try:
        trees.run(["read-tree", workspace.old_tree], index=index)
        done = trees.call(
            [*args, "-"],
            index=index,
            stdin=patch.encode("utf-8", "surrogateescape"),
            allowed=(0, 1, 128),
        )
    finally:
        if os.path.exists(index):
            os.unlink(index)
    if done.returncode == 0:
        return None
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return "; ".join(line.removeprefix("error: ") for line in lines[:3]) or "git apply refused it"
