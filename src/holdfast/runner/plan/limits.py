"""Which limit an attempt has reached, if any. Pure: facts in, a limit out."""

from __future__ import annotations

from holdfast import clock
from holdfast.model.attempt import Attempt
from holdfast.model.record import Record
from holdfast.model.task import Task

#: How long somebody looks away who has nothing to look for.
_LONG_S = 3600.0
#: A chore has time for this many commands of a gate (a brief may name others than the packet), and a moment more.
_CHORE_COMMANDS, _CHORE_MORE_S = 20, 300.0


class Reached(Record):
    """A limit that was reached."""

    #: What `stop.intended` calls it: deadline, timeout, output or budget.
    intent: str
    reason: str


def reached(task: Task, attempt: Attempt, *, lived_s: float, raw_bytes: int) -> Reached | None:
    """The first limit that the attempt is over."""
    if task.deadline_s is not None and task.active_s + task.fresh_s(attempt, lived_s) >= task.deadline_s:
        return Reached(intent="deadline", reason=f"its deadline of {clock.words(task.deadline_s)} is over")
    call = _call(task, attempt)
    if call is not None and lived_s >= call[0]:
        return Reached(intent="timeout", reason=f"its limit of {clock.words(call[0])} {call[1]} is over")
    output_bytes = task.spec.limits.output_bytes
    if output_bytes and raw_bytes > output_bytes:
        return Reached(intent="output", reason=f"it printed more than {output_bytes} bytes")
    if attempt.kind == "agent" and attempt.result is None and task.spent is not None:
        return Reached(intent="budget", reason=task.spent)
    return None


def left_s(task: Task, attempt: Attempt, lived_s: float) -> float:
    """Time until the next limit of time is over."""
    left = [_LONG_S]
    if task.deadline_s is not None:
        left.append(task.deadline_s - task.active_s - task.fresh_s(attempt, lived_s))
    call = _call(task, attempt)
    if call is not None:
        left.append(call[0] - lived_s)
    return min(left)


def _call(task: Task, attempt: Attempt) -> tuple[float, str] | None:
    """The tightest limit on one call, and where it comes from."""
    spec, pipeline = task.spec, task.spec.pipeline
    if attempt.kind != "agent":
        command_s = pipeline.acceptance_timeout_s if pipeline is not None else 0.0
        commands = max(_CHORE_COMMANDS, len(pipeline.acceptance_commands) if pipeline is not None else 0)
        if spec.quality is not None:
            command_s, commands = spec.quality.timeout_s, max(commands, spec.quality.commands)
        return commands * command_s + _CHORE_MORE_S, f"for the {attempt.kind} of {attempt.stage}"
    found: list[tuple[float, str]] = []
    if spec.limits.timeout_s is not None:
        found.append((spec.limits.timeout_s, "for one attempt"))
    if pipeline is not None:
        found.append((pipeline.max_wallclock_s, "for one call (budgets.max_wallclock_sec)"))
        if pipeline.join_timeout_s is not None and len(task.current) > 1:
            found.append((pipeline.join_timeout_s, "for stages side by side"))
    stage = next((stage for stage in spec.stages if stage.name == attempt.stage), None)
    if stage is not None and stage.timeout_s is not None:
        found.append((stage.timeout_s, f"for one call of {attempt.agent}"))
    return min(found, default=None)
