"""Permission profiles: what an agent may do with its tools. Pure.

`read`, `edit` and `full`; an adapter maps a profile to the mechanism of its program
(`Capabilities.permissions`). The profile of a stage is fixed when the task is created; a `retry` may change
it.
"""

from __future__ import annotations

from holdfast.model.outcome import DENIED
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.spec import StageSpec, TaskSpec
    from holdfast.model.task import Task

READ, EDIT, FULL = "read", "edit", "full"
#: From the narrowest to the widest.
PROFILES = (READ, EDIT, FULL)
#: For work, if nothing else was asked for.
DEFAULT = EDIT
#: Options of programs, each with the value that switches off all permission prompts, like `full`.
BYPASSES = {
    "sandbox": "danger-full-access",
    "approval_mode": "yolo",
    "permission_mode": "bypassPermissions",
}


def of_stage(spec: TaskSpec, stage: StageSpec) -> str:
    """The profile that a stage was created with."""
    # `yolo` is how a manifest, and a task of an older version, asks for `full`.
    if True in (spec.options.get("yolo"), stage.options.get("yolo")):
        return FULL
    return stage.permissions or (EDIT if stage.writes else READ)


def is_full(spec: TaskSpec) -> bool:
    """Whether an agent of a new task may do everything: by its profile, or by an option of its program."""
    return any(
        of_stage(spec, stage) == FULL or not BYPASSES.items().isdisjoint(options.items())
        for stage in spec.stages
        for options in (spec.options, stage.options)
    )


def granted(task: Task, stage: StageSpec) -> str:
    """The profile that a stage runs with: that of the last `retry` that set one, or its own."""
    if task.permissions is not None and not is_read_only(task.spec, stage):
        return task.permissions
    return of_stage(task.spec, stage)


def is_read_only(spec: TaskSpec, stage: StageSpec) -> bool:
    """Whether its role only reads, such as a reviewer's. What is asked of a whole task does not widen it."""
    return spec.pipeline is not None and not stage.writes


def widest(task: Task) -> str | None:
    """The widest profile of all stages; None for a plain command."""
    profiles = [granted(task, stage) for stage in task.spec.stages if stage.agent != "command"]
    return max(profiles, key=PROFILES.index, default=None)


def wider(profile: str) -> str:
    """The next wider profile; empty if there is none."""
    return PROFILES[PROFILES.index(profile) + 1] if profile != FULL else ""


class Denial(Record):
    """A stage whose work is done, although its agent's program refused some of its tools."""

    stage: str
    #: The names of the tools, as the program calls them.
    tools: str
    #: The profile that allows more; empty if there is none.
    allow: str

    def as_text(self) -> str:
        """`tools were denied (Write, Bash); --permissions edit allows them`."""
        names = f" ({self.tools})" if self.tools else ""
        return f"tools were denied{names}" + (
            f"; --permissions {self.allow} allows more" if self.allow else ""
        )


def denials(task: Task) -> tuple[Denial, ...]:
    """The stages whose work may be incomplete because tools were denied.

    For a role that only reads, a refusal is what its profile is for: the summary mentions it, and no more.
    """
    return tuple(
        Denial(stage=stage.name, tools=denied, allow=wider(granted(task, stage)))
        for stage, denied in denied_stages(task)
        if not is_read_only(task.spec, stage)
    )


def denied_stages(task: Task) -> list[tuple[StageSpec, str]]:
    """All stages that are done and had tools refused, with the names of the tools."""
    denied: list[tuple[StageSpec, str]] = []
    for stage in task.spec.stages:
        state = task.stage_states.get(stage.name) if stage.name in task.stages_done else None
        ended = state.attempt.ended if state is not None and state.attempt is not None else None
        if ended is not None and ended.outcome == DENIED:
            denied.append((stage, ended.detail.removeprefix("denied: ")))
    return denied


def denied_readers(task: Task) -> list[str]:
    """The stages that only read and had tools refused: the summary only mentions them."""
    return [stage.name for stage, _ in denied_stages(task) if is_read_only(task.spec, stage)]


def reason(task: Task) -> str:
    """What to tell about a completed task in which tools were denied; empty if none were."""
    found = denials(task)
    is_one = len(task.spec.stages) == 1
    return "; ".join(each.as_text() if is_one else f"{each.stage}: {each.as_text()}" for each in found)
