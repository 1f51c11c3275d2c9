"""Gather the case of a stage: its report, its workspace and its rules, which the checks of its gate judge."""

from __future__ import annotations

import os

from holdfast import clock, program_search
from holdfast.errors import GitFailed, NotFound, NotPossible
from holdfast.gates.base import READS_TREE, Case, Workspace, checks_of, is_writer
from holdfast.model import acceptance, contest, roles
from holdfast.model.spec import PipelineSpec
from holdfast.packet import load
from holdfast.redact import Redactor
from holdfast.store import atomic
from holdfast.store.directories import unreadable
from holdfast.workspace import base as bases
from holdfast.workspace import surroundings, task_worktree
from holdfast.workspace.base import Base
from holdfast.workspace.current_tree import current_tree
from holdfast.workspace.project_tree import locate
from holdfast.workspace.snapshots import git_files
from holdfast.workspace.snapshots.changes import changed
from holdfast.workspace.snapshots.trees import Trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.attempt import Attempt
    from holdfast.model.events import WorkspacePrepared
    from holdfast.model.spec import TaskSpec
    from holdfast.model.task import Task
    from holdfast.store.layout import Packet

_REPORT_BYTES = 16 * 1024 * 1024


def case_of(packet: Packet, stage: str, *, artifact_at: str | None, reverted_at: str) -> Case:
    """Gather what the checks need. Raises NotFound, GitFailed or NotPossible."""
    task = load.fold(packet)
    program_search.distrust(task.spec.project_dir)
    packet = task_worktree.of_stage(packet, task, stage)
    spec = next((spec for spec in task.spec.stages if spec.name == stage), None)
    pipeline = task.spec.pipeline or _of_plain_run(task.spec)
    if spec is None or pipeline is None:
        raise NotFound(f"{packet.task_id} has no stage {stage} that a gate could judge")
    stage_state = task.stage_state(stage)
    attempt = stage_state.attempt.number if stage_state.attempt is not None else 0
    report = atomic.read_small(packet.output(stage, stage_state.agent, "out"), _REPORT_BYTES) or b""
    workspace = None
    prepared = stage_state.workspace or next(
        (
            other
            for name in task.parallel_stages(stage)
            if (other := task.stage_state(name).workspace) is not None
        ),
        None,
    )
    if prepared is not None and prepared.tree:
        # Without an earlier gate, an agent wrote the note: that of another task may live now.
        is_again = stage_state.gates_started > 1
        noted_tree = _noted_tree(packet, stage, stage_state.attempt) if is_again else None
        workspace = _workspace(packet, task, prepared, noted_tree=noted_tree, stage=stage)
    elif not is_writer(spec) and any(name in READS_TREE for name in checks_of(spec)):
        workspace = _unchanged_workspace(packet, task.spec)
    return Case(
        packet=packet,
        stage=spec,
        is_last=spec.name in task.parallel_stages(task.spec.stages[-1].name),
        pipeline=pipeline,
        agent=stage_state.agent,
        attempt=attempt,
        report=report.decode("utf-8", "replace"),
        directory=bases.directory_of(packet, task.spec.project_dir),
        survivors=contest.survivors(task) if roles.get(spec.role).compares else (),
        project_dir=task.spec.project_dir,
        script=task.script,
        sandbox=task.spec.sandbox,
        is_accepting=_is_accepting(task, stage),
        workspace=workspace,
        artifact_at=artifact_at,
        reverted_at=reverted_at,
        redact=_redactor(packet, task.spec),
    )


def _of_plain_run(spec: TaskSpec) -> PipelineSpec | None:
    """The rules of a plain run with acceptance commands: it may change everything."""
    quality = spec.quality
    if quality is None or not quality.accept:
        return None
    return PipelineSpec(
        intent="",
        group="impl",
        profile="",
        scope_allow=(".",),
        acceptance_commands=quality.accept,
        acceptance_timeout_s=quality.timeout_s,
    )


def _is_accepting(task: Task, stage: str) -> bool:
    pipeline = task.spec.pipeline
    has_commands = pipeline is not None and bool(pipeline.acceptance_commands or task.script)
    return has_commands and stage in acceptance.accepting(task.spec.stages)


def _noted_tree(packet: Packet, stage: str, attempt: Attempt | None) -> str | None:
    """The tree noted by an earlier gate that was killed: its commands may have changed the workspace."""
    path = packet.judged_tree(stage)
    note = atomic.read_json(path) or {}
    if note.get("attempt") != (attempt.number if attempt is not None else 0):
        return None
    if attempt is not None and attempt.started is not None and attempt.ended is not None:
        ended = clock.parse_iso(attempt.started.started_at) + attempt.ended.lived_s
        if attempt.ended.noticed_at:
            ended = max(ended, clock.parse_iso(attempt.ended.noticed_at))
        # No process can set st_ctime. An older note was not written by a gate, but by the agent. The times of
        # events are cut to milliseconds.
        if os.lstat(path).st_ctime <= ended + 0.002:
            return None
    return note.get("tree")


def note_tree(case: Case) -> None:
    """Note what the agent left, before commands run."""
    if case.workspace is not None:
        note = {
            "schema": "holdfast.judged/1",
            "attempt": case.attempt,
            "tree": case.workspace.new_tree,
        }
        atomic.write_json(case.packet.judged_tree(case.stage.name), note, durable=True)


def _workspace(
    packet: Packet,
    task: Task,
    prepared: WorkspacePrepared,
    *,
    noted_tree: str | None,
    stage: str,
) -> Workspace:
    base, trees = bases.require(packet), Trees.of(packet)
    if not trees.has(prepared.tree):
        raise GitFailed(
            f"the tree {prepared.tree} of the stage's start is gone",
            hint="were objects removed from the repository, or files from the packet?",
        )
    if prepared.settings and prepared.settings != trees.settings_digest:
        raise NotPossible(
            f"git's settings in {trees.git_dir} are not those of the stage's start: they were changed",
            hint="an agent may have hidden files by them; check the workspace by hand",
        )
    new_tree = noted_tree
    if new_tree is None or not trees.has(new_tree):
        new_tree = current_tree(packet, base, task.spec)
    return Workspace(
        trees=trees,
        base=base,
        old_tree=prepared.tree,
        new_tree=new_tree,
        changes=changed(trees, prepared.tree, new_tree),
        git_files=git_files.changed_since(base.place, trees, prepared.own_files),
        around=surroundings.changed_since(packet, trees, prepared.around, stage),
        unreadable=_hidden_since(base.place.top, task.created_at),
    )


def _hidden_since(top: str, since: str) -> tuple[str, ...]:
    """Directories that cannot be read, without those that were so before the task: a change of the mode sets
    a time that no process can choose."""
    begun = clock.parse_iso(since)
    return tuple(path for path in unreadable(top) if os.lstat(path).st_ctime >= begun)


def _unchanged_workspace(packet: Packet, spec: TaskSpec) -> Workspace:
    """The workspace of a stage that only proposes a patch: its first tree is the current one."""
    trees = Trees.of(packet)
    base = bases.read(packet) or Base(kind=spec.workspace, place=locate(spec.project_dir), base_tree="")
    tree = current_tree(packet, base, spec)
    return Workspace(trees=trees, base=base, old_tree=tree, new_tree=tree, changes=())


def _redactor(packet: Packet, spec: TaskSpec) -> Redactor:
    data: dict[str, Any] = atomic.read_json(packet.env) or {}
    patterns = spec.pipeline.redaction_patterns if spec.pipeline is not None else ()
    return Redactor({**data.get("env", {})}, spec.env, patterns)
