"""Judging a stage: which checks it goes through, and what follows from them."""

from __future__ import annotations

import importlib
import os

from holdfast.errors import GitFailed, NotFound
from holdfast.gates.base import BY_ROLE, CHECKS, RUNS_THINGS, Case, Check, Workspace, checks_of, is_writer
from holdfast.packet import load
from holdfast.redact import Redactor
from holdfast.store import atomic
from holdfast.workspace import base as bases
from holdfast.workspace.base import Base
from holdfast.workspace.place import locate
from holdfast.workspace.prepare import now
from holdfast.workspace.snapshots import git_files
from holdfast.workspace.snapshots.changes import changed
from holdfast.workspace.snapshots.trees import Trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.gates.base import CheckFunction
    from holdfast.model.events import WorkspacePrepared
    from holdfast.model.spec import TaskSpec
    from holdfast.store.layout import Packet

_REPORT_BYTES = 16 * 1024 * 1024


def case_of(packet: Packet, stage: str, *, artifact_at: str | None, reverted_at: str) -> Case:
    """What there is to judge. Raises NotFound, GitFailed, NotPossible: then nobody can."""
    task = load.fold(packet)
    spec = next((spec for spec in task.spec.stages if spec.name == stage), None)
    if spec is None or task.spec.pipeline is None:
        raise NotFound(f"{packet.task_id} has no stage {stage} that a gate could judge")
    stage_state = task.stage_state(stage)
    report = atomic.read_small(packet.output(stage, stage_state.agent, "out"), _REPORT_BYTES) or b""
    workspace = None
    prepared = stage_state.workspace or next(
        (mate for name in task.beside(stage) if (mate := task.stage_state(name).workspace) is not None), None
    )
    if prepared is not None and prepared.tree:
        number = stage_state.attempt.number if stage_state.attempt is not None else 0
        workspace = _workspace(packet, task.spec, prepared, seen=_seen(packet, stage, number))
    elif "patch" in checks_of(spec) and not is_writer(spec):
        workspace = _as_it_is(packet, task.spec)
    return Case(
        packet=packet,
        stage=spec,
        is_last=spec.name in task.beside(task.spec.stages[-1].name),
        pipeline=task.spec.pipeline,
        agent=stage_state.agent,
        attempt=stage_state.attempt.number if stage_state.attempt is not None else 0,
        report=report.decode("utf-8", "replace"),
        directory=_directory(packet, task.spec),
        script=task.script,
        workspace=workspace,
        artifact_at=artifact_at,
        reverted_at=reverted_at,
        redact=_redactor(packet, task.spec),
    )


def _note_path(packet: Packet, stage: str) -> str:
    return os.path.join(packet.workspace, f"judged.{stage}.json")


def _seen(packet: Packet, stage: str, attempt: int) -> str | None:
    """The tree that a gate saw which was ended before it had spoken: what is there now, its commands may have left."""
    noted = atomic.read_json(_note_path(packet, stage)) or {}
    return noted.get("tree") if noted.get("attempt") == attempt else None


def _note(case: Case) -> None:
    """Before commands run: what the agent left."""
    if case.workspace is not None:
        noted = {
            "schema": "holdfast.judged/1",
            "attempt": case.attempt,
            "tree": case.workspace.new_tree,
        }
        atomic.write_json(_note_path(case.packet, case.stage.name), noted, durable=True)


def _workspace(packet: Packet, spec: TaskSpec, prepared: WorkspacePrepared, *, seen: str | None) -> Workspace:
    base, trees = bases.require(packet), Trees.of(packet)
    if not trees.has(prepared.tree):
        raise GitFailed(
            f"the tree {prepared.tree} of the stage's start is gone",
            hint="were objects removed from the repository, or files from the packet?",
        )
    new = seen if seen is not None and trees.has(seen) else now(packet, base, spec)
    return Workspace(
        trees=trees,
        base=base,
        old_tree=prepared.tree,
        new_tree=new,
        changes=changed(trees, prepared.tree, new),
        own_files=git_files.changed_since(base.place, trees, prepared.own_files),
    )


def _directory(packet: Packet, spec: TaskSpec) -> str:
    """Of the task, also for a stage that nobody prepared because it does not write."""
    base = bases.read(packet)
    return base.place.directory if base is not None else spec.project_dir


def _as_it_is(packet: Packet, spec: TaskSpec) -> Workspace:
    """The workspace of a stage that only proposes: it changed nothing, so what is there now was there at its start."""
    trees = Trees.of(packet)
    base = bases.read(packet) or Base(kind=spec.workspace, place=locate(spec.project_dir), base_tree="")
    tree = now(packet, base, spec)
    return Workspace(trees=trees, base=base, old_tree=tree, new_tree=tree, changes=())


def _redactor(packet: Packet, spec: TaskSpec) -> Redactor:
    data: dict[str, Any] = atomic.read_json(packet.env) or {}
    patterns = spec.pipeline.redaction_patterns if spec.pipeline is not None else ()
    return Redactor({**data.get("env", {})}, spec.env, patterns)


def judge(case: Case) -> list[Check]:
    """The answers, in order. What an agent left is not run where another check has failed already."""
    answers: list[Check] = []
    for name in checks_of(case.stage):
        if name in RUNS_THINGS and not all(answer.passed for answer in answers):
            answers.append(Check(name=name, passed=False, reasons=("not run: an earlier check has failed",)))
        else:
            if name in RUNS_THINGS:
                _note(case)
            answers.append(_clean(case, _function(name)(case)))
    if case.stage.role not in BY_ROLE and (extra := _plugin(case.stage.role)) is not None:
        answers.append(_clean(case, extra(case)))
    return answers


def _clean(case: Case, answer: Check) -> Check:
    return answer.evolve(reasons=tuple(case.redact(reason) for reason in answer.reasons))


def _function(name: str) -> CheckFunction:
    module, _, function = CHECKS[name].partition(":")
    return getattr(importlib.import_module(module), function)


def _plugin(role: str) -> CheckFunction | None:
    """The check that somebody installed for a role that we do not know: entry points `holdfast.gates`, named after it."""
    chosen = os.environ.get("HOLDFAST_PLUGINS")
    if chosen is not None and role not in chosen.split(","):
        return None
    from importlib.metadata import entry_points

    for found in entry_points(group="holdfast.gates", name=role):
        return found.load()
    return None


def result_of(case: Case, attempt: int, answers: list[Check], *, at: str) -> dict[str, Any]:
    """`<stage>.gate_result.json`."""
    failed = next((answer for answer in answers if not answer.passed), None)
    told = [answer for answer in answers if answer.passed == (failed is None)]
    return {
        "schema": "holdfast.gate/1",
        "stage": case.stage.name,
        "role": case.stage.role,
        "attempt": attempt,
        "passed": failed is None,
        "failed": failed.name if failed is not None else "",
        "reasons": [reason for answer in told for reason in answer.reasons],
        "warnings": [reason for answer in answers if answer.is_warning for reason in answer.reasons],
        "checks": [
            {"name": answer.name, "passed": answer.passed, "reasons": list(answer.reasons)}
            for answer in answers
        ],
        "timestamp": at,
    }
