"""What chores found: read the result of a chore, and record it.

A chore writes its result into its attempt directory. It counts only if it agrees with the exit status of the
chore's process. Files that people read are written before the event, so a killed runner does it again.
"""

from __future__ import annotations

import os

from holdfast.errors import CorruptFile
from holdfast.failpoints import failpoint
from holdfast.model import contest
from holdfast.model import events as ev
from holdfast.model.execution import Chore, Execution
from holdfast.redact import MARGIN, begin_of
from holdfast.runner.ledger import Ledger
from holdfast.runner.plan.facts import ChoreResult
from holdfast.store import atomic
from holdfast.store.digest import sha256
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_REASON_CHARS, _EVIDENCE_CHARS, _EVIDENCE_BYTES = 1000, 8000, 64 * 1024 * 1024
#: Names of git's objects in results.
_OBJECTS = ("tree", "base_tree", "commit", "own_files", "around")
#: Exit status of a look at the checks of a pull request → what it found.
_CI_STATES = {0: "passed", 1: "failed", 2: "pending"}


def read_result(ledger: Ledger, chore: Chore) -> ChoreResult:
    """Whether an ended chore left a usable result, and if not, the start of its stderr."""
    if _result(ledger, chore) is not None:
        return ChoreResult(is_usable=True)
    directory = ledger.packet.attempt(chore.dirname)
    stderr = atomic.read_small(directory.stderr, _REASON_CHARS + MARGIN) or b""
    complaint = _sentence(begin_of(stderr, ledger.redact, _REASON_CHARS))
    if not complaint and os.path.lexists(directory.result):
        complaint = f"{directory.result} was changed by something other than holdfast"
    return ChoreResult(is_usable=False, complaint=complaint)


def _sentence(complaint: str) -> str:
    """An error of ours and its hint, as `message; hint`: it becomes a part of a reason."""
    return complaint.strip().removeprefix("error: ").replace("\nhint: ", "; ")


def _result(ledger: Ledger, chore: Execution) -> dict[str, Any] | None:
    """What a chore wrote; None if it cannot be used. To be asked whenever it is read: any agent can replace
    it at any time."""
    try:
        result = atomic.read_json(ledger.packet.attempt(chore.dirname).result)
    except CorruptFile:
        return None
    return result if result is not None and _fits(ledger, chore, result) else None


def _fits(ledger: Ledger, chore: Execution, result: dict[str, Any]) -> bool:
    """Whether a result is what the chore's process said with its exit status (`holdfast.workspace.chore`).

    The file alone proves nothing: an agent that left a process behind can write it.
    """
    code = chore.ended.exit_code if chore.ended is not None else None
    # git would take such a name for one of its options.
    if any(str(result.get(name)).startswith("-") for name in _OBJECTS):
        return False
    if chore.kind == "prepare" and not _is_workspace(ledger, chore.stage, result.get("path")):
        return False
    if chore.kind in ("prepare", "adopt"):
        return code == 0
    if chore.kind == "ci":
        return code is not None and _CI_STATES.get(code) == result.get("state")
    if not isinstance(result.get("passed"), bool):
        return chore.kind == "pre_work" and code in (0, 1)
    return code == (0 if result["passed"] else 1)


def _is_workspace(ledger: Ledger, stage: str, path: object) -> bool:
    """Whether the agent of a stage works at this path, by the task itself: commands run there."""
    from holdfast.workspace import task_worktree

    packet, task = ledger.packet, ledger.task
    project = os.path.realpath(task.spec.project_dir)
    if task.spec.workspace != "worktree" and not task.has_own_worktree(stage):
        return path == project
    if os.path.islink(packet.path):
        packet = Packet(os.path.realpath(packet.path))  # where a user has moved it, as for the chore
    root = task_worktree.path_of(task_worktree.of_stage(packet, task, stage))
    # Below it, the project has the path that it has below the root of its repository.
    below = path.removeprefix(root) if isinstance(path, str) and path.startswith(root) else None
    return below == "" or (below is not None and below[0] == "/" and project.endswith(below))


def take_result(ledger: Ledger, chore: Execution) -> None:
    """Record the result of a chore. Nothing if it was replaced since it was looked at."""
    result = _result(ledger, chore)
    if result is None:
        return
    match chore.kind:
        case "prepare":
            ledger.record(
                ev.WorkspacePrepared.from_json(
                    {**result, "stage": chore.stage, "dirty": result.get("dirty", ())}
                )
            )
        case "adopt":
            _take_choice(ledger, chore, result)
        case "pre_work":
            _take_pre_work(ledger, chore, result)
        case "ci":
            _take_look(ledger, chore, result)
        case _:
            _take_judgement(ledger, chore, result)


def _take_pre_work(ledger: Ledger, chore: Execution, result: dict[str, Any]) -> None:
    # Written before the event: the gate reads the list of uncommitted files from it.
    atomic.write_json(ledger.packet.pre_work(chore.stage), result, durable=True)
    settings = atomic.read_small(ledger.packet.git_settings, _EVIDENCE_BYTES)
    ledger.record(
        ev.PreWorkChecked(
            stage=chore.stage,
            passed=result.get("passed") is True,
            reasons=tuple(ledger.redact(str(reason)) for reason in result.get("reasons", ())),
            result=sha256(atomic.encode_json(result)),
            settings=sha256(settings) if settings is not None else "",
        )
    )


def _take_judgement(ledger: Ledger, chore: Execution, result: dict[str, Any]) -> None:
    packet, stage = ledger.packet, chore.stage
    directory = packet.attempt(chore.dirname)
    for path, target in (
        (directory.artifact, packet.artifact(stage)),
        (directory.reverted_patch, packet.reverted_patch(stage)),
        (
            directory.changes,
            packet.candidate_patch(stage) if ledger.task.has_own_worktree(stage) else packet.changes,
        ),
    ):
        _put_evidence(ledger, path, target)
    atomic.write_json(packet.gate_result(stage), result, durable=True)
    failpoint("chores.evidence")
    reasons = tuple(ledger.redact(str(reason)) for reason in result.get("reasons", ()))
    ledger.record(
        ev.GateJudged(
            stage=stage,
            attempt=int(result.get("attempt", 0)),
            passed=result["passed"],
            failed=str(result.get("failed") or ""),
            reasons=reasons,
            confirm=_confirmations(ledger, result) if result["passed"] else (),
            decision=str(result.get("decision") or ""),
            findings=_counts(result.get("findings")),
            changed=_count(result.get("changed")),
            tree=str(result.get("tree") or ""),
            passed_before=result.get("passed_before") is True,
            cannot_start=result.get("cannot_start") is True,
            warnings=tuple(ledger.redact(str(warning)) for warning in result.get("warnings", ())),
            evidence=ledger.redact(str(result.get("evidence") or ""))[:_EVIDENCE_CHARS],
        )
    )


def _confirmations(ledger: Ledger, result: dict[str, Any]) -> tuple[str, ...]:
    """A reviewer's requests for approval by a person."""
    listed: list[Any] | None = result.get("confirm")
    if listed is None:
        from holdfast.model import legacy  # the gate of an older version

        listed = legacy.confirmations(map(str, result.get("reasons", ())))
    return tuple(ledger.redact(str(reason)) for reason in listed)


def _counts(value: Any) -> dict[str, int]:
    """Numbers by name, as far as they are numbers: the file may have been replaced."""
    table: dict[Any, Any] = value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    return {str(name): number for name, each in table.items() if (number := _count(each)) is not None}


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _take_look(ledger: Ledger, chore: Execution, result: dict[str, Any]) -> None:
    packet, stage = ledger.packet, chore.stage
    if result["state"] == "failed":
        _put_evidence(ledger, packet.attempt(chore.dirname).artifact, packet.artifact(stage))
    failpoint("chores.looked")
    attempt = ledger.task.stage_state(stage).attempt
    ledger.record(
        ev.CiLooked(
            stage=stage,
            attempt=attempt.number if attempt is not None else 0,
            state=str(result["state"]),
            pull_request=ledger.redact(str(result.get("pull_request") or "")),
            commit=str(result.get("commit") or ""),
            pending=tuple(ledger.redact(str(name)) for name in result.get("pending", ())),
            reasons=tuple(ledger.redact(str(reason)) for reason in result.get("reasons", ())),
            evidence=ledger.redact(str(result.get("evidence") or ""))[:_EVIDENCE_CHARS],
        )
    )


def _take_choice(ledger: Ledger, chore: Execution, result: dict[str, Any]) -> None:
    _put_evidence(ledger, ledger.packet.attempt(chore.dirname).changes, ledger.packet.changes)
    failpoint("chores.adopted")
    # What was adopted follows from the journal, not from the file.
    chosen = contest.choice(ledger.task)
    gate = ledger.task.stage_state(chosen.name).gate_result if chosen is not None else None
    assert chosen is not None
    ledger.record(
        ev.CandidateChosen(
            stage=chore.stage,
            chosen=chosen.name,
            candidate=chosen.candidate,
            by="gate" if len(contest.survivors(ledger.task)) == 1 else "judge",
            tree=gate.tree if gate is not None else "",
        )
    )


def _put_evidence(ledger: Ledger, path: str, target: str) -> None:
    data = atomic.read_small(path, _EVIDENCE_BYTES)
    if data is not None:
        text = ledger.redact(data.decode("utf-8", "surrogateescape"))
        atomic.write(target, text.encode("utf-8", "surrogateescape"), durable=True)
