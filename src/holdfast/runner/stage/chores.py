"""Chores: processes of our own around a stage's agent, run and watched like an agent.

So a chore may take its time, is stopped with the task, leaves nothing behind, and is adopted by the next runner. What it finds
it writes into its attempt directory; only here does that become the task's state.
"""

from __future__ import annotations

import os
import sys

from holdfast import ids
from holdfast.agents.base import Launch
from holdfast.errors import CorruptFile
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.spec import StageSpec
from holdfast.model.task import Task
from holdfast.redact import MARGIN, begin_of
from holdfast.runner import failures
from holdfast.runner.attempt.open import Opened, next_number, start
from holdfast.runner.ledger import Ledger
from holdfast.store import atomic
from holdfast.workspace.lock import has_repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import AttemptDir

#: Chores in a row that died, after which it is not tried again.
_TRIES = 3
_RESULT, _ARTIFACT, _REVERTED = "result.json", "artifact.md", "reverted.patch"
_REASON_CHARS, _EVIDENCE_BYTES = 1000, 64 * 1024 * 1024


def needs_prepare(task: Task, stage: StageSpec) -> bool:
    """Whether the workspace has to be made, or looked at, before the stage's agent comes. Stages side by side that only read are
    compared with one look."""
    if task.spec.workspace == "worktree" and not any(
        stage_state.workspace for stage_state in task.stage_states.values()
    ):
        return True
    if stage.writes or task.spec.pipeline is None:
        return stage.writes
    mates = [task.stage_state(name) for name in task.beside(stage.name)]
    if any(mate.workspace is not None and mate.gate is None for mate in mates):
        return False
    # Without git, every file would be read and copied for stages that should change none.
    return task.spec.workspace == "worktree" or has_repository(task.spec.project_dir)


def open_chore(
    ledger: Ledger, env: dict[str, Any], *, stage: str, kind: str, judged: int = 0, keep: tuple[int, ...] = ()
) -> Opened:
    """Start a chore of a stage: `prepare`, `pre_work`, or `gate` for the attempt `judged`."""
    opened = ev.AttemptOpened(
        attempt=next_number(ledger),
        attempt_id=ids.new_attempt_id(),
        stage=stage,
        agent="command",
        mode="fresh",
        kind=kind,
    )
    return start(
        ledger,
        opened,
        env,
        prepare=lambda directory: Launch(argv=_argv(ledger, directory, kind, stage=stage, judged=judged)),
        keep=keep,
    )


def _argv(ledger: Ledger, directory: AttemptDir, kind: str, *, stage: str, judged: int) -> list[str]:
    # -P: the workspace may have a json.py of its own.
    python = [sys.executable, "-P", "-m"]
    about = ["--packet", ledger.packet.path, "--stage", stage, "--out", os.path.join(directory.path, _RESULT)]
    if kind == "prepare":
        return [*python, "holdfast.workspace", "prepare", *about]
    artifact = os.path.join(directory.path, _ARTIFACT)
    about += ["--attempt", str(judged), "--artifact", artifact]
    if ledger.task.spec.pipeline is None:
        return [*python, "holdfast.gates.quality", "before" if kind == "pre_work" else "after", *about]
    return [*python, "holdfast.gates", *about]


def take(ledger: Ledger, chore: Attempt) -> None:
    """Take in what a chore found, or that it found nothing."""
    directory = ledger.packet.attempt(chore.dirname)
    try:
        result = atomic.read_json(os.path.join(directory.path, _RESULT))
    except CorruptFile:
        result = None
    if result is not None and chore.kind == "prepare":
        ledger.record(
            ev.WorkspacePrepared.from_json({**result, "stage": chore.stage, "dirty": result.get("dirty", ())})
        )
        failpoint("chores.prepared")
    elif result is not None and chore.kind == "pre_work":
        _take_pre_work(ledger, chore, result)
    elif result is not None and isinstance(result.get("passed"), bool):
        _take_judgement(ledger, chore, result)
    else:
        _take_failure(ledger, chore)


def drop(ledger: Ledger, chore: Attempt, moved: ev.TaskMoved) -> None:
    """It was stopped with the task: what it was about is done again when the task goes on."""
    reason = chore.intent.reason if chore.intent is not None else ""
    ledger.record(
        ev.ChoreFailed(stage=chore.stage, attempt=chore.number, kind=chore.kind, reason=reason, counts=False),
        moved,
    )


def _take_pre_work(ledger: Ledger, chore: Attempt, result: dict[str, Any]) -> None:
    # Kept before it is journalled: the gate asks it what was uncommitted already.
    atomic.write_json(ledger.packet.pre_work(chore.stage), result, durable=True)
    ledger.record(
        ev.PreWorkChecked(
            stage=chore.stage,
            passed=result.get("passed") is True,
            reasons=tuple(ledger.redact(str(reason)) for reason in result.get("reasons", ())),
        )
    )


def _take_judgement(ledger: Ledger, chore: Attempt, result: dict[str, Any]) -> None:
    packet, stage = ledger.packet, chore.stage
    directory = packet.attempt(chore.dirname).path
    for name, target in (
        (_ARTIFACT, packet.artifact(stage)),
        (_REVERTED, os.path.join(packet.outputs, f"{stage}.reverted.patch")),
    ):
        data = atomic.read_small(os.path.join(directory, name), _EVIDENCE_BYTES)
        if data is not None:
            text = ledger.redact(data.decode("utf-8", "surrogateescape"))
            atomic.write(target, text.encode("utf-8", "surrogateescape"), durable=True)
    atomic.write_json(packet.gate_result(stage), result, durable=True)
    failpoint("chores.evidence")
    ledger.record(
        ev.GateJudged(
            stage=stage,
            attempt=int(result.get("attempt", 0)),
            passed=result["passed"],
            failed=str(result.get("failed") or ""),
            reasons=tuple(ledger.redact(str(reason)) for reason in result.get("reasons", ())),
            warnings=tuple(ledger.redact(str(warning)) for warning in result.get("warnings", ())),
        )
    )
    failpoint("chores.judged")


def _take_failure(ledger: Ledger, chore: Attempt) -> None:
    """It died, or could not do its work. One that was killed is tried again; one that says why not, is not."""
    ended = chore.ended
    assert ended is not None
    said = atomic.read_small(ledger.packet.attempt(chore.dirname).stderr, _REASON_CHARS + MARGIN) or b""
    reason = begin_of(said, ledger.redact, _REASON_CHARS).strip() or f"{ended.outcome}: {ended.detail}"
    stage_state = ledger.task.stage_state(chore.stage)
    ledger.record(ev.ChoreFailed(stage=chore.stage, attempt=chore.number, kind=chore.kind, reason=reason))
    failpoint("chores.failed")
    if ended.exit_signal is not None or ended.outcome == "lost":
        if stage_state.chores_in_vain < _TRIES:
            return
        reason = f"its process died {stage_state.chores_in_vain} times: {reason}"
    if chore.kind == "prepare":
        failures.stop_before_call(ledger, chore.stage, outcome="prepare_failed", reason=reason)
    elif chore.kind == "pre_work":
        ledger.record(ev.PreWorkChecked(stage=chore.stage, passed=False, reasons=(reason[:1000],)))
    else:
        judged = stage_state.attempt.number if stage_state.attempt is not None else 0
        ledger.record(
            ev.GateJudged(
                stage=chore.stage,
                attempt=judged,
                passed=False,
                failed="gate_broken",
                reasons=(reason[:1000],),
            )
        )
