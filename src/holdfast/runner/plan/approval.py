"""What a person is asked before a stage begins: by its packet, or by a reviewer of the wave before. Pure."""

from __future__ import annotations

from holdfast.gates import confirm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.spec import StageSpec
    from holdfast.model.task import Task


def question(task: Task, stage: StageSpec) -> str | None:
    """Why the stage must wait for approval; None when nobody asks for it, or it was given."""
    asked = _asked_by_reviewers(task, stage)
    how = f"'holdfast approve {task.spec.task_id}'"
    if asked is not None:
        return f"{asked}; {stage.name} waits for approval: {how}"
    if stage.approval and not task.stage_state(stage.name).is_approved:
        return f"{stage.name} waits for approval: {how}"
    return None


def _asked_by_reviewers(task: Task, stage: StageSpec) -> str | None:
    """The word of a reviewer is answered once for all the stages that were about to begin."""
    waves = _waves(task.spec.stages)
    at = next(at for at, wave in enumerate(waves) if any(each.name == stage.name for each in wave))
    if at == 0 or any(task.stage_state(each.name).is_approved for each in waves[at]):
        return None
    for before in waves[at - 1]:
        verdict = task.stage_state(before.name).gate
        said = verdict.reasons if verdict is not None and verdict.passed else ()
        asked = confirm.requests(said)
        if asked:
            why = "; ".join(reason for reason in asked if reason)
            return f"{before.name} asks to stop and confirm" + (f": {why}" if why else "")
    return None


def _waves(stages: tuple[StageSpec, ...]) -> list[list[StageSpec]]:
    """Stages that begin together: neighbours of one group."""
    waves: list[list[StageSpec]] = []
    for stage in stages:
        if waves and stage.group is not None and waves[-1][-1].group == stage.group:
            waves[-1].append(stage)
        else:
            waves.append([stage])
    return waves
