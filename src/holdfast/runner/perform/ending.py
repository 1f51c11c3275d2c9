"""Steps after an end: sweep, files, triage, gates, markers, and the end of the task."""

from __future__ import annotations

import os

from holdfast.failpoints import failpoint
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.model.execution import Execution
from holdfast.runner.attempt.kinship import Kinship
from holdfast.runner.attempt.sweep import Sweep, as_list
from holdfast.runner.perform.context import Context
from holdfast.runner.plan import step as steps
from holdfast.runner.stage import markers
from holdfast.store import lock as locks
from holdfast.store import lock_holders, process

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # in C: loaded before an agent starts


def sweep(context: Context, step: steps.Sweep) -> None:
    """One pass; the last one records what was killed."""
    execution = context.execution(step.number)
    if step.number not in context.sweeps:
        context.sweeps[step.number] = _new_sweep(context, execution)
    running = context.sweeps[step.number]
    again_mono = running.sweep()
    failpoint("step.sweep")
    if again_mono is not None:
        context.remembered.sweep_due_mono[step.number] = again_mono
        return
    del context.sweeps[step.number]
    redact = context.ledger.redact
    context.ledger.record(
        ev.AttemptSwept(
            attempt=step.number,
            killed=as_list(running.killed, redact),
            spared=as_list(running.spared, redact),
            proof=running.proof,
            unkillable=running.unkillable,
        )
    )
    failpoint("ending.swept")


def freeze(context: Context, execution: Execution) -> bool:
    """Stop all processes of an open execution. Returns whether that is done; a sweep ends them later."""
    if execution.number not in context.freezes:
        context.freezes[execution.number] = _new_sweep(context, execution)
    if not context.freezes[execution.number].freeze():
        return False
    del context.freezes[execution.number]
    return True


def _new_sweep(context: Context, execution: Execution) -> Sweep:
    packet, task = context.ledger.packet, context.ledger.task
    directory = packet.attempt(execution.dirname)
    owner = lock_holders.holder(directory.lock) if locks.is_held(directory.lock) else None
    # A status that the kernel told later says nothing about the process tree.
    ended = execution.ended
    is_tree_known = owner is not None if ended is None else ended.by in ("recorder", "runner")
    others = (other for other in (*task.current, *task.open_executions) if other.swept is None)
    kin = Kinship(
        directory,
        attempt_id=execution.attempt_id,
        started=execution.started.start_time if execution.started is not None else None,
        tree_known=is_tree_known,
        siblings=[
            (packet.attempt(other.dirname).path, other.attempt_id, other.started.pid if other.started else 0)
            for other in others
            if other.number != execution.number
        ],
    )
    kills = execution.intent is not None and execution.intent.kills
    return Sweep(kin, owner, tree_known=is_tree_known, is_open=ended is None, kills=kills)


def check_leftovers(context: Context, step: steps.CheckLeftovers) -> None:
    """Report what a successful attempt left running."""
    left = _new_sweep(context, context.execution(step.number)).find()
    processes = {found.pid: process.command_line(found.pid) for found in left}
    if processes:
        listed = as_list(processes, context.ledger.redact)
        context.ledger.record(
            ev.LeftoversFound(
                attempt=step.number, processes=listed, policy=context.ledger.task.spec.leftovers
            )
        )
    failpoint("step.check_leftovers")
    context.remembered.leftovers_checked.add(step.number)


def write_files(context: Context, step: steps.WriteFiles) -> None:
    """Write the files of the execution that later stages and users read."""
    execution = context.execution(step.number)
    if context.ledger.task.spec.pipeline is not None and isinstance(execution, Attempt):
        from holdfast.runner.stage import outputs  # only pipelines pay for the import

        outputs.write(context.ledger, execution)
    markers.write_attempt(context.ledger, execution)
    failpoint("step.write_files")
    context.remembered.files_written.add(step.number)


def dismiss_recorders(context: Context, step: steps.DismissRecorders) -> None:
    """Recorders may leave now: what lives on after a success does so without them."""
    for number in step.numbers:
        directory = context.ledger.packet.attempt(context.execution(number).dirname)
        owner = lock_holders.holder(directory.lock) if locks.is_held(directory.lock) else None
        if owner is not None:
            process.send(owner, signal.SIGTERM)
    failpoint("step.dismiss_recorders")
    context.remembered.recorders_dismissed.update(step.numbers)


def triage_failure(context: Context, step: steps.TriageFailure) -> None:
    """Classify a failure of a pipeline's stage."""
    from holdfast.runner.stage import triaging

    attempt = context.execution(step.number)
    assert isinstance(attempt, Attempt)
    context.ledger.record(triaging.triage(context.ledger, attempt, step.failure))
    failpoint("step.triage_failure")


def take_chore_result(context: Context, step: steps.TakeChoreResult) -> None:
    """Record what a chore found."""
    from holdfast.runner.stage import chore_results

    chore_results.take_result(context.ledger, context.execution(step.number))
    failpoint("step.take_chore_result")


def pass_plain_gate(context: Context, step: steps.PassPlainGate) -> None:
    """The gate of a plain run: the attempt's own success."""
    attempt = context.execution(step.number)
    markers.write_plain_evidence(context.ledger, attempt)
    failpoint("step.pass_plain_gate")
    markers.mark_stage(context.ledger, attempt)


def mark_stage(context: Context, step: steps.MarkStage) -> None:
    """The gate passed: hand on what the stage produced, then write the marker."""
    from holdfast.runner.stage import prompts

    attempt = context.execution(step.number)
    stage = context.ledger.task.stage_spec(attempt.stage)
    assert isinstance(attempt, Attempt)
    assert stage is not None
    prompts.hand_off(context.ledger, stage, attempt)
    failpoint("step.mark_stage")
    markers.mark_stage(context.ledger, attempt)


def end_task(context: Context, step: steps.EndTask) -> None:
    """Write the last files of the task."""
    from holdfast.runner.stage import last_files

    last_files.write(context.ledger)
    failpoint("step.end_task")
    assert os.path.exists(context.ledger.packet.task_done)
