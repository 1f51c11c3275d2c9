"""The checks of a repository: what its settings require before and after work in it.

    python -m holdfast.gates.quality before|after --packet P --stage S --attempt N --out FILE --artifact FILE2

`before` never stops a task: it reports what failed and notes which files are uncommitted. `after` judges:
exit status 0 passed, 1 not passed. With the action `warn` or `file_issue`, a failure passes with its reasons.
What is printed here appears in the task's output.
"""

from __future__ import annotations

import json
import os
import sys

from holdfast import clock, program_search
from holdfast.errors import NotFound, NotPossible, UsageError
from holdfast.failpoints import failpoint
from holdfast.gates import command, issue, room_commands
from holdfast.gates.base import Check
from holdfast.model.acceptance import CHECK
from holdfast.model.record import Record
from holdfast.packet import load
from holdfast.redact import Redactor
from holdfast.store import atomic
from holdfast.store.digest import sha256
from holdfast.store.layout import AttemptDir, Packet
from holdfast.workspace import base as bases
from holdfast.workspace import changed_files, chore, frozen_settings, git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.model.spec import QualitySpec
    from holdfast.model.task import Task

_REQUIRED = ("--packet", "--stage", "--attempt", "--out", "--artifact")
_USAGE = "python -m holdfast.gates.quality before|after " + " ".join(f"{flag} …" for flag in _REQUIRED)
#: How many files a reason names.
_MAX_PATHS = 10
_ARTIFACT_BYTES = 64 * 1024 * 1024


class QualityCase(Record):
    """The work to check."""

    packet: Packet
    task: Task
    stage: str
    quality: QualitySpec
    directory: str
    run: int
    redact: Callable[[str], str]


def main(argv: list[str]) -> int:
    """Make the checks and write the result."""
    return chore.exit_status(lambda: _judge(argv), on_error=chore.COULD_NOT_JUDGE)


def _judge(argv: list[str]) -> bool:
    if argv[:1] not in (["before"], ["after"]):
        raise UsageError("unexpected arguments", hint=_USAGE)
    when, values = argv[0], chore.options(argv[1:], required=_REQUIRED, usage=_USAGE)
    case = case_of(Packet(values["--packet"]), values["--stage"])
    artifact: list[str] = []
    more: dict[str, Any] = {}
    checks = before(case, artifact) if when == "before" else after(case, artifact)
    if when == "after" and case.quality.accept:
        added, more = _accept(case, checks, artifact, artifact_at=values["--artifact"])
        checks += added
    if artifact:
        text = case.redact("\n".join(artifact))
        atomic.write(values["--artifact"], text.encode("utf-8", "backslashreplace"), durable=True)
        failpoint("quality.noted")
    result = _result(case, checks, when=when, attempt=int(values["--attempt"])) | more
    atomic.write_json(values["--out"], result, durable=True)
    return bool(result["passed"])


def case_of(packet: Packet, stage: str) -> QualityCase:
    """Gather what the checks need. Raises NotFound."""
    task = load.fold(packet)
    if task.spec.quality is None or all(spec.name != stage for spec in task.spec.stages):
        raise NotFound(f"{packet.task_id} has no stage {stage} with checks of its repository")
    data: dict[str, Any] = atomic.read_json(packet.env) or {}
    program_search.distrust(task.spec.project_dir)
    return QualityCase(
        packet=packet,
        task=task,
        stage=stage,
        quality=task.spec.quality,
        directory=bases.directory_of(packet, task.spec.project_dir),
        run=task.run,
        redact=Redactor({**data.get("env", {})}, task.spec.env, ()),
    )


def before(case: QualityCase, artifact: list[str]) -> list[Check]:
    """Run the commands of `pre_work`, and keep the excludes of the repository for `clean_git`."""
    repository = git.find(case.directory) if case.quality.clean_git else None
    if repository is not None:
        frozen_settings.refuse_changed(case.packet, case.task, case.stage)
        frozen_settings.freeze(case.packet, repository)
        failpoint("quality.frozen")
    return [_commands(case, "pre_work", case.quality.pre_work, artifact)] if case.quality.pre_work else []


def after(case: QualityCase, artifact: list[str]) -> list[Check]:
    """Check that everything is committed, then run the commands.

    All checks are made, so that the agent gets all failures.

    The commands come last: the files they create must not count as the agent's.
    """
    quality = case.quality
    checks = [_clean_git(case)] if quality.clean_git else []
    if quality.post_work:
        checks.append(_commands(case, "post_work", quality.post_work, artifact))
    if quality.expect_empty:
        checks.append(_commands(case, "expect_empty", quality.expect_empty, artifact, expect_empty=True))
    return checks


def _accept(
    case: QualityCase, checks: list[Check], artifact: list[str], *, artifact_at: str
) -> tuple[list[Check], dict[str, Any]]:
    """Run the acceptance commands, unless a check before them asks a person; and what else the result has:
    the number of changed files, and the tree."""
    from holdfast.gates import acceptance, gather_case, run_checks  # only these tasks pay for the import

    if case.quality.action == "interrupt" and not all(check.passed for check in checks):
        return [Check(name=CHECK, passed=False, reasons=("not run: an earlier check failed",))], {}
    accepted = gather_case.case_of(case.packet, case.stage, artifact_at=artifact_at, reverted_at="")
    gather_case.note_tree(accepted)
    check = run_checks.redacted(accepted, acceptance.check(accepted))
    artifact.append((atomic.read_small(artifact_at, _ARTIFACT_BYTES) or b"").decode("utf-8", "replace"))
    changes = AttemptDir(os.path.dirname(os.path.abspath(artifact_at))).changes
    remarks = accepted.workspace.remarks if accepted.workspace is not None else []
    told = [Check(name="around", passed=True, reasons=tuple(remarks))] if remarks else []
    count = run_checks.write_changes(accepted, changes)
    return [*told, check], {"changed": count, **run_checks.judged_tree(accepted)}


def _commands(
    case: QualityCase, name: str, lines: tuple[str, ...], artifact: list[str], *, expect_empty: bool = False
) -> Check:
    reasons: list[str] = []
    artifact.append(f"# {name} of {case.stage}\n\nDirectory: {case.directory}\n")
    for line in lines:
        result = command.run(
            line,
            setting=room_commands.in_place(case.directory),
            limit_s=case.quality.timeout_s,
            redact=case.redact,
            expect_empty=expect_empty,
        )
        artifact.append(result.entry)
        reasons += [result.failure] if result.failure else []
    return Check(name=name, passed=not reasons, reasons=tuple(reasons))


def _clean_git(case: QualityCase) -> Check:
    frozen_settings.refuse_changed(case.packet, case.task, case.stage)
    paths = uncommitted(case)
    if paths is None:
        reason = f"{case.directory} is not in a git repository, so nothing can be uncommitted"
        return Check(name="clean_git", passed=True, reasons=(reason,))
    new = sorted(set(paths) - _uncommitted_before(case))
    if not new:
        return Check(name="clean_git", passed=True)
    rest = f" and {len(new) - _MAX_PATHS} more" if len(new) > _MAX_PATHS else ""
    reason = f"not committed: {', '.join(new[:_MAX_PATHS])}{rest}"
    return Check(name="clean_git", passed=False, reasons=(case.redact(reason),))


def _uncommitted_before(case: QualityCase) -> set[str]:
    """Raises NotPossible if the list is not that of the checks before the work: an agent changed it."""
    checked = case.task.stage_state(case.stage).pre_work
    if checked is None or not checked.result:
        return set()
    path = case.packet.pre_work(case.stage)
    data = atomic.read_small(path, _ARTIFACT_BYTES) or b""
    if sha256(data) != checked.result:
        raise NotPossible(
            f"{path} was changed since the checks before the work",
            hint="an agent may have hidden files by it; check the workspace by hand",
        )
    return set(json.loads(data).get("uncommitted") or ())


def uncommitted(case: QualityCase) -> list[str] | None:
    """Paths with uncommitted changes, without ignored files and our own home; null outside git."""
    repository = frozen_settings.repository_of(case.packet, case.directory)
    if repository is None:
        return None
    home = os.path.realpath(case.packet.home.path) + os.sep
    frozen = frozen_settings.read(case.packet) or git.settings.read(repository)
    paths = changed_files.listed_in_full(repository, frozen, frozen_settings.skipped(case.packet))
    top = os.path.realpath(repository.top)
    if top.startswith(home):
        return paths  # a worktree of the task
    return [path for path in paths if not os.path.join(top, path).startswith(home)]


def _result(case: QualityCase, checks: list[Check], *, when: str, attempt: int) -> dict[str, Any]:
    action = case.quality.action
    # What only warns must not hide that the work is not accepted.
    refused = next((check for check in checks if check.name == CHECK and not check.passed), None)
    failed = next((check for check in checks if not check.passed), None)
    failed = refused if refused is not None and action != "interrupt" else failed
    shown = [check for check in checks if check.passed == (failed is None)]
    reasons = [reason for check in shown for reason in check.reasons]
    if failed is not None and failed is not refused and action == "file_issue":
        outcome = issue.file(
            case.packet,
            f"{case.run}-{when}",
            _report(case, when, reasons),
            command=case.quality.issue_command or "false",
            cwd=case.directory,
            limit_s=case.quality.timeout_s,
            redact=case.redact,
        )
        reasons.append(outcome)
    result: dict[str, Any] = {
        "schema": "holdfast.gate/1" if when == "after" else "holdfast.pre-work/1",
        "stage": case.stage,
        "role": "run",
        "attempt": attempt,
        "passed": failed is None or (when == "after" and action != "interrupt" and failed is not refused),
        "failed": failed.name if failed is not None else "",
        "reasons": reasons,
        "checks": [check.to_json() for check in checks],
        "changed": None,
        "evidence": failed.evidence if failed is not None else "",
        "action": action,
        "timestamp": clock.iso_now(),
    }
    if any(check.passed_before for check in checks):
        result["passed_before"] = True
    if failed is not None and failed.cannot_start:
        result["cannot_start"] = True
    if when == "before":
        result["uncommitted"] = uncommitted(case) if case.quality.clean_git else None
    if failed is not None:
        print(_report(case, when, reasons))
    return result


def _report(case: QualityCase, when: str, reasons: list[str]) -> str:
    listed = "\n".join(f"- {reason}" for reason in reasons)
    return f"Checks {when} the work failed ({case.packet.task_id}):\n{listed}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
