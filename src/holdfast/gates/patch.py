"""The patch gate: a patch in a report applies to what stood in the working tree, or its files were really written. Of a stage that
writes, something was.

That files exist proves nothing: a patch that does not apply passes only where the working tree itself shows a change of each of its
files since the stage's start.
"""

from __future__ import annotations

import os
import re

from holdfast.errors import GitFailed
from holdfast.gates.base import Case, Check, is_writer
from holdfast.model import markdown
from holdfast.workspace import git
from holdfast.workspace.scope import Scope, seen_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.gates.base import Workspace

_LANGUAGES = ("diff", "patch", "udiff")
_LOOKS_LIKE_ONE = re.compile(r"^(?:diff --git |--- \S.*\n\+\+\+ \S.*\n@@ )", re.MULTILINE)
_NO_CHANGES = re.compile(
    r"\bno changes? (?:is |are |was |were )?(?:required|needed|necessary)\b", re.IGNORECASE
)
#: Lines that a patch is made of, outside a fence.
_PATCH_LINE = re.compile(
    r"diff --git |index [0-9a-f]+\.\.|(?:old|new|deleted file|new file) mode |(?:rename|copy) (?:from|to) |similarity index "
    r"|dissimilarity index |Binary files |GIT binary patch|--- |\+\+\+ |@@ |[-+ \\]|$"
)
_FILE = re.compile(r"^(?:---|\+\+\+) (?:[ab]/)?([^\t\n]+)|^diff --git a/(.+) b/(.+)$", re.MULTILINE)

#: Nobody applies the patch of a report: it would be lost behind a success.
_ONLY_SAID = "the report has a patch, but nothing was changed in the working tree: the files themselves must be written"


def check(case: Case) -> Check:
    """Judge the patches of a report."""
    found = patches(case.report)
    if not found:
        return _without_patch(case)
    if case.workspace is None:
        raise GitFailed(
            f"the state of the workspace before {case.stage.name} is not on record, so no patch can be judged"
        )
    named = sorted({path for patch in found for path in files_of(patch)})
    outside = _outside(case, named)
    if outside:
        return Check(name="patch", passed=False, reasons=outside)
    why = refusal(case.workspace, "".join(found))
    if why is None and is_writer(case.stage) and not case.workspace.changes:
        return Check(name="patch", passed=False, reasons=(_ONLY_SAID,))
    if why is None:
        return Check(name="patch", passed=True)
    prefix = case.workspace.base.place.prefix
    written = {seen_from(prefix, end) for change in case.workspace.changes for end in change.ends}
    missing = [path for path in named if path not in written]
    if named and not missing:
        return Check(
            name="patch",
            passed=True,
            reasons=(
                f"the patch in the report does not apply ({why}), but all of its files were changed in the working tree",
            ),
        )
    unwritten = f"; not changed in the working tree either: {', '.join(missing[:5])}" if missing else ""
    return Check(
        name="patch", passed=False, reasons=(f"the patch in the report does not apply: {why}{unwritten}",)
    )


def _without_patch(case: Case) -> Check:
    if case.workspace is not None and case.workspace.changes:
        return Check(
            name="patch", passed=True, reasons=("no patch in the report; the working tree was changed",)
        )
    if _NO_CHANGES.search(case.report):
        return Check(name="patch", passed=True, reasons=("the report says that no changes are required",))
    return Check(
        name="patch",
        passed=False,
        reasons=("the report has no unified diff, nothing was changed in the working tree, and it does not say "
                 "'No changes required.'",),
    )  # fmt: skip


def _outside(case: Case, paths: list[str]) -> tuple[str, ...]:
    """A patch that nobody has applied yet is held to the scope as well; a mere proposal, of a stage that may not write, is not."""
    if not is_writer(case.stage):
        return ()
    scope = Scope(case.pipeline.scope_allow, case.pipeline.scope_deny)
    said = [(path, scope.objection(os.path.normpath(path))) for path in paths]
    return tuple(f"the patch in the report touches {path}: {why}" for path, why in said if why is not None)


def patches(report: str) -> list[str]:
    """The unified diffs of a report, each with a newline at its end: fenced ones, else those that stand in the open."""
    fenced = [
        block.text.strip("\n") + "\n"
        for block in markdown.code_blocks(report)
        if block.text.strip() and (block.language in _LANGUAGES or _LOOKS_LIKE_ONE.search(block.text))
    ]
    if fenced:
        return fenced
    opening = _LOOKS_LIKE_ONE.search(report)
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
    """The files that a patch names, whether it is whole or not."""
    found: list[str] = []
    for match in _FILE.finditer(patch):
        for path in match.groups():
            if path is not None and path.strip() != "/dev/null":
                found.append(path.strip())
    return list(dict.fromkeys(found))


def refusal(workspace: Workspace, patch: str) -> str | None:
    """Why `git apply` does not take a patch on the tree of the stage's start; None when it does. No file is touched."""
    trees, place = workspace.trees, workspace.base.place
    index = f"{trees.index_of(place.top)}.{os.getpid()}.patch"
    words = ["apply", "--check", "--cached", "--whitespace=nowarn"]
    words += [f"--directory={place.prefix}"] if place.prefix else []
    try:
        trees.run(["read-tree", workspace.old_tree], index=index)
        tried = git.call(
            [*words, "-"],
            cwd=trees.path,
            env={"GIT_DIR": trees.git_dir, "GIT_INDEX_FILE": index},
            stdin=patch.encode("utf-8", "surrogateescape"),
            allowed=(0, 1, 128),
        )
    finally:
        if os.path.exists(index):
            os.unlink(index)
    if tried.returncode == 0:
        return None
    said = tried.stderr.decode("utf-8", "replace").strip().splitlines()
    return "; ".join(line.removeprefix("error: ") for line in said[:3]) or "git apply refused it"
