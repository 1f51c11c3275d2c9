"""What a person is asked before a stage starts: by its packet or by an earlier reviewer. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.spec import StageSpec
    from holdfast.model.task import Task


def question(task: Task, stage: StageSpec) -> str | None:
    """Why the stage must wait for approval; None if it needs none, or has it."""
    request = _asked_by_reviewers(task, stage)
    how = f"'holdfast approve {task.spec.task_id}'"
    if request is not None:
        return f"{request}; {stage.name} waits for approval: {how}"
    if stage.approval and not task.stage_state(stage.name).is_approved:
        return f"{stage.name} waits for approval: {how}"
    return None


def _asked_by_reviewers(task: Task, stage: StageSpec) -> str | None:
    """A reviewer's request is answered once for all stages that were about to start."""
    groups = _groups(task.spec.stages)
    index = next(
        index for index, group in enumerate(groups) if any(each.name == stage.name for each in group)
    )
    if index == 0 or any(task.stage_state(each.name).is_approved for each in groups[index]):
        return None
    for before in groups[index - 1]:
        result = task.stage_state(before.name).gate
        if result is not None and result.confirm:
            why = "; ".join(reason for reason in result.confirm if reason)
            return f"{before.name} asks to stop and confirm" + (f": {why}" if why else "")
    return None


def _groups(stages: tuple[StageSpec, ...]) -> list[list[StageSpec]]:
    """Stages that start together: neighbours of one parallel group."""
    groups: list[list[StageSpec]] = []
    for stage in stages:
        if groups and stage.group is not None and groups[-1][-1].group == stage.group:
            groups[-1].append(stage)
        else:
            groups.append([stage])
    return groups
