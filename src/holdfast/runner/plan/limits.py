"""Which limit an execution has reached, if any. Pure."""

from __future__ import annotations

from holdfast import clock
from holdfast.model.attempt import Attempt
from holdfast.model.execution import Execution
from holdfast.model.record import Record
from holdfast.model.task import Task

#: Recheck interval when no limit applies.
_LONG_S = 3600.0
#: A chore has time for this many commands of a gate (a brief may name others than the packet), and some more.
_CHORE_COMMANDS, _CHORE_MORE_S = 20, 300.0


class Reached(Record):
    """A limit that was reached."""

    #: The intent of the stop: deadline, timeout, output or budget.
    intent: str
    reason: str


def reached(task: Task, execution: Execution, *, lived_s: float, output_bytes: int) -> Reached | None:
    """The first limit that the execution exceeds."""
    if task.deadline_s is not None:
        active_s = task.active_s + task.uncounted_s(execution, lived_s)
        if active_s >= task.deadline_s:
            return Reached(
                intent="deadline", reason=f"its deadline of {clock.duration_text(task.deadline_s)} is over"
            )
    call = _call_limit(task, execution)
    if call is not None and lived_s >= call[0]:
        return Reached(
            intent="timeout", reason=f"{call[1]} exceeded its {clock.duration_text(call[0])} limit{call[2]}"
        )
    most_bytes = task.spec.limits.output_bytes
    if most_bytes and output_bytes > most_bytes:
        return Reached(intent="output", reason=f"it printed more than {most_bytes} bytes")
    if isinstance(execution, Attempt) and execution.result is None and task.budget_reached is not None:
        return Reached(intent="budget", reason=task.budget_reached)
    return None


def left_s(task: Task, execution: Execution, lived_s: float) -> float:
    """Time until the next time limit."""
    left = [_LONG_S]
    if task.deadline_s is not None:
        left.append(task.deadline_s - task.active_s - task.uncounted_s(execution, lived_s))
    call = _call_limit(task, execution)
    if call is not None:
        left.append(call[0] - lived_s)
    return min(left)


def _call_limit(task: Task, execution: Execution) -> tuple[float, str, str] | None:
    """The tightest time limit, what it applies to, and where it comes from."""
    spec, pipeline = task.spec, task.spec.pipeline
    if not isinstance(execution, Attempt):
        command_s = pipeline.acceptance_timeout_s if pipeline is not None else 0.0
        commands = _CHORE_COMMANDS
        if pipeline is not None:
            # All of them run once more on the tree of the task's start.
            own = len(pipeline.acceptance_commands) + len(pipeline.acceptance_setup)
            commands = max(commands, 2 * own)
        if spec.quality is not None:
            command_s, commands = spec.quality.timeout_s, max(commands, spec.quality.commands)
        return commands * command_s + _CHORE_MORE_S, f"the {execution.kind} of {execution.stage}", ""
    found: list[tuple[float, str, str]] = []
    if spec.limits.timeout_s is not None:
        found.append((spec.limits.timeout_s, "the attempt", ""))
    if pipeline is not None:
        found.append((pipeline.max_wallclock_s, "the call", " (budgets.max_wallclock_sec)"))
        if pipeline.join_timeout_s is not None and len(task.current) > 1:
            found.append((pipeline.join_timeout_s, "a parallel stage", ""))
    stage = task.stage_spec(execution.stage)
    if stage is not None and stage.timeout_s is not None:
        found.append((stage.timeout_s, f"the call of {execution.agent}", ""))
    return min(found, default=None)
