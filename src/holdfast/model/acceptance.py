"""The acceptance commands of a task, and in which gates of a pipeline they run. Pure."""

from __future__ import annotations

from holdfast.model import roles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.model.spec import StageSpec, TaskSpec

#: The check of the gate that runs the commands.
CHECK = "acceptance"
#: The same for the checks of the task's pull request, after the last stage.
CI = "ci"
_VERIFY = "verify"


def commands_of(spec: TaskSpec) -> tuple[str, ...]:
    """The acceptance commands of a task: those of its packet, or of `--accept`."""
    if spec.pipeline is not None:
        return spec.pipeline.acceptance_commands
    return spec.quality.accept if spec.quality is not None else ()


def needs_brief(spec: TaskSpec, stages: Sequence[StageSpec]) -> bool:
    """Whether only a brief among these stages can name commands by which work is judged."""
    has_brief = any(roles.get(stage.role).is_brief for stage in stages)
    has_work = any(stage.writes for stage in spec.stages)
    return spec.pipeline is not None and has_brief and has_work and not commands_of(spec)


def of_merges(spec: TaskSpec) -> tuple[str, ...]:
    """The commands that a fan-out runs at every merge; its own gate has none."""
    return spec.fan_out.quality.accept if spec.fan_out is not None else ()


def accepting(stages: Sequence[StageSpec]) -> tuple[str, ...]:
    """The stages in whose gates the commands run, in order.

    They are all verify stages; and the last stage that writes, if no verify stage comes after it. If no stage
    writes and none verifies, it is the last one: whatever the profile, the commands run. Of several
    candidates, only those that pass them are compared.
    """
    comparing = [at for at, stage in enumerate(stages) if stage.candidate]
    verifying = [at for at, stage in enumerate(stages) if stage.role == _VERIFY]
    writing = [at for at, stage in enumerate(stages) if stage.writes]
    last_writer = writing[-1] if writing else -1
    if stages and (not verifying or verifying[-1] < last_writer):
        verifying.append(last_writer if writing else len(stages) - 1)
    return tuple(stages[at].name for at in sorted({*verifying, *comparing}))
