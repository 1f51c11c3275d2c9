"""Steps that start something: preflight, workspace, chores, agents."""

from __future__ import annotations

import errno

from holdfast import clock
from holdfast.agents import registry
from holdfast.errors import LockHeld, UsageError
from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model.spec import StageSpec
from holdfast.runner.attempt.open import Opened
from holdfast.runner.perform.context import Context
from holdfast.runner.plan.facts import StartFailure, WorkspaceFacts
from holdfast.runner.plan.step import OpenAttempts, OpenChore, Preflight, ReleaseWorkspace, TakeWorkspace
from holdfast.runner.stage import prompts
from holdfast.runner.stage.launch import open_attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: Before another try if no process could be forked, and if the workspace is in use.
_NO_PROCESS_S, _WORKSPACE_S = 1.0, 1.0


def preflight(context: Context, step: Preflight) -> None:
    """Look for what the stages need, and note it."""
    from holdfast.runner.stage import preflight as checks

    context.remembered.problems = checks.find_problems(context.ledger, context.env.get("env", {}))
    context.remembered.preflight_run = context.ledger.task.run
    failpoint("step.preflight")


def take_workspace(context: Context, step: TakeWorkspace) -> None:
    """Try to take the lock of the project directory."""
    lock = context.workspace_lock
    if lock.take():
        context.remembered.workspace = WorkspaceFacts(is_held=True)
    else:
        context.remembered.workspace = WorkspaceFacts(
            writer=lock.writer, again_mono=clock.mono() + _WORKSPACE_S
        )
    failpoint("step.take_workspace")


def release_workspace(context: Context, step: ReleaseWorkspace) -> None:
    """Let other tasks write."""
    context.workspace_lock.release()
    context.remembered.workspace = WorkspaceFacts()
    failpoint("step.release_workspace")


def open_attempts(context: Context, step: OpenAttempts) -> None:
    """Compose all prompts, then start the agents: nothing is paid for if a prompt cannot be composed."""
    context.remembered.start_failure = None
    context.reap_recorders()
    task = context.ledger.task
    composed: list[tuple[StageSpec, bytes | None]] = []
    for stage in (stage for stage in task.due if stage.name in step.stages):
        try:
            prompt = prompts.compose(context.ledger, stage, task.stage_state(stage.name))
        except UsageError as error:
            context.remembered.start_failure = StartFailure(
                kind="prompt", stage=stage.name, reason=str(error)
            )
            return
        composed.append((stage, prompt))
    for stage, prompt in composed:
        if not _start(context, stage, lambda stage=stage, prompt=prompt: _open(context, stage, prompt)):
            return
    failpoint("step.open_attempts")


def _open(context: Context, stage: StageSpec, prompt: bytes | None) -> Opened:
    adapter = registry.adapter(context.ledger.task.stage_state(stage.name).agent)
    return open_attempt(
        context.ledger, adapter, context.env, stage=stage, prompt=prompt, keep=_locks_for(context, stage)
    )


def open_chore(context: Context, step: OpenChore) -> None:
    """Start a chore."""
    from holdfast.runner.stage import chores

    context.remembered.start_failure = None
    context.reap_recorders()
    stage = context.ledger.task.stage_spec(step.stage)
    assert stage is not None
    _start(
        context,
        stage,
        lambda: chores.open_chore(
            context.ledger,
            context.env,
            stage=step.stage,
            kind=step.kind,
            judged=step.judged,
            keep=_locks_for(context, stage),
        ),
    )
    failpoint("step.open_chore")


def _locks_for(context: Context, stage: StageSpec) -> tuple[int, ...]:
    """Locks that the recorder inherits: the workspace stays locked while the agent writes, runner or not."""
    return context.workspace_lock.descriptors if stage.writes else ()


def _start(context: Context, stage: StageSpec, open_one: Callable[[], Opened]) -> bool:
    """Start and observe one execution. False if it could not be started; `start_failure` says why."""
    ledger, task = context.ledger, context.ledger.task
    last_number = task.last_number
    try:
        opened = open_one()
    except UsageError as error:
        context.remembered.start_failure = StartFailure(kind="prompt", stage=stage.name, reason=str(error))
        return False
    except LockHeld as error:
        # Another attempt lives in the same session: one of them must not start.
        context.remembered.start_failure = StartFailure(kind="session", stage=stage.name, reason=str(error))
        return False
    except OSError as error:
        execution = task.find(task.last_number) if task.last_number > last_number else None
        if error.errno in (errno.ENOSPC, errno.EDQUOT) or execution is None or not execution.is_open:
            raise
        # No process or descriptor available: the machine's fault, not the task's, and it may pass.
        reason = f"the recorder could not be forked: {error.strerror}"
        ledger.record(ev.AttemptVoid(attempt=execution.number, reason=reason))
        context.remembered.start_failure = StartFailure(
            kind="process", stage=stage.name, reason=reason, again_mono=clock.mono() + _NO_PROCESS_S
        )
        return False
    context.recorders.append(opened.recorder_pid)
    context.observers.begin(context.execution(opened.attempt), opened)
    return True
