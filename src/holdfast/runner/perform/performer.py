"""The performer: carries out one step of the planner.

Every step has a handler, and every handler a failpoint `step.<name>`, at which the crash run kills the
runner.
"""

from __future__ import annotations

from holdfast.runner.plan import step as steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.runner.perform.context import Context
    from holdfast.runner.plan.step import Step

#: Step → module of this package and the function in it. Modules load with their first step.
HANDLERS: dict[type[Any], tuple[str, str]] = {
    steps.Watch: ("idle", "watch"),
    steps.Leave: ("idle", "leave"),
    steps.Journal: ("record", "journal"),
    steps.Interrupt: ("interaction", "interrupt"),
    steps.AnswerRequest: ("interaction", "answer_request"),
    steps.EndTakeover: ("interaction", "end_takeover"),
    steps.ForgetRequest: ("interaction", "forget_request"),
    steps.SaveContext: ("interaction", "save_context"),
    steps.PostNotice: ("interaction", "post_notice"),
    steps.WriteInterruptFile: ("interaction", "write_interrupt_file"),
    steps.Report: ("interaction", "report"),
    steps.Preflight: ("starting", "preflight"),
    steps.TakeWorkspace: ("starting", "take_workspace"),
    steps.ReleaseWorkspace: ("starting", "release_workspace"),
    steps.OpenAttempts: ("starting", "open_attempts"),
    steps.OpenChore: ("starting", "open_chore"),
    steps.RecordStart: ("running", "record_start"),
    steps.WakeRecorder: ("running", "wake_recorder"),
    steps.LockSession: ("running", "lock_session"),
    steps.ReadOutput: ("running", "read_output"),
    steps.RecordVerdict: ("running", "record_verdict"),
    steps.IntendStop: ("record", "intend_stop"),
    steps.Signal: ("running", "signal"),
    steps.Heartbeat: ("running", "heartbeat"),
    steps.RecordEnd: ("running", "record_end"),
    steps.Sweep: ("ending", "sweep"),
    steps.CheckLeftovers: ("ending", "check_leftovers"),
    steps.WriteFiles: ("ending", "write_files"),
    steps.DismissRecorders: ("ending", "dismiss_recorders"),
    steps.TriageFailure: ("ending", "triage_failure"),
    steps.TakeChoreResult: ("ending", "take_chore_result"),
    steps.PassPlainGate: ("ending", "pass_plain_gate"),
    steps.MarkStage: ("ending", "mark_stage"),
    steps.EndTask: ("ending", "end_task"),
}
_loaded: dict[type[Any], Callable[[Context, Any], None]] = {}


def perform(context: Context, step: Step) -> None:
    """Carry out one step."""
    handler(type(step))(context, step)


def handler(kind: type[Any]) -> Callable[[Context, Any], None]:
    """The function that carries out steps of this kind."""
    if kind not in _loaded:
        module, name = HANDLERS[kind]
        _loaded[kind] = getattr(__import__(f"holdfast.runner.perform.{module}", fromlist=[name]), name)
    return _loaded[kind]
