"""manifest.json: what a task is right now, derived from the journal alone."""

from __future__ import annotations

from holdfast import clock
from holdfast.model.status import ENDS, Status
from holdfast.model.task import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = "holdfast.manifest/1"
#: Every field that this version writes. Others, of another version, survive a rewrite.
FIELDS = frozenset(
    [
        "schema",
        "task_id",
        "task_name",
        "goal",
        "agent",
        "model",
        "yolo",
        "project_dir",
        "session_name",
        "session_id",
        "pid",
        "tmpdir",
        "started_at",
        "begun_at",
        "status",
        "status_reason",
        "status_updated_at",
        "stage",
        "stages",
        "run",
        "attempt",
        "retry_count",
        "total_retries",
        "last_checked_at",
        "last_progress_at",
        "deadline_at",
        "active_s",
        "heartbeat",
        "usage",
        "paid_calls",
        "interrupt",
        "wake_at",
        "runner",
        "verdict",
        "progress",
        "finished_at",
        "exit_code",
        "exit_signal",
        "output_tail",
        "abandoned_at",
        "abandon_reason",
    ]
)


def render(task: Task, packet_dir: str, seen: dict[str, Any]) -> dict[str, Any]:
    """The manifest of `task`. `seen` holds what only the runner knows and no decision rests on
    (`last_checked_at`, `last_progress_at`, `progress` of the agent's file, at the end `output_tail`)."""
    spec, attempt = task.spec, task.attempt
    started = attempt.started if attempt is not None else None
    ended = attempt.ended if attempt is not None else None
    usage = task.total_usage if attempt is not None and attempt.is_open else task.usage
    manifest: dict[str, Any] = {
        "schema": SCHEMA,
        "task_id": spec.task_id,
        "task_name": spec.task_name,
        "goal": spec.goal,
        "agent": attempt.agent if attempt is not None else spec.agent,
        "model": spec.model,
        "yolo": spec.options.get("yolo") is True,
        "project_dir": spec.project_dir,
        "session_name": f"holdfast-{spec.task_id}",
        "session_id": task.session_id,
        "pid": started.pid if started is not None and ended is None else 0,
        "tmpdir": packet_dir,
        "started_at": task.created_at,
        "status": task.status,
        "status_reason": task.reason,
        "status_updated_at": task.moved_at,
        "stage": task.stage or (spec.stages[-1].name if spec.stages else None),
        "stages": [_stage(task, stage.name) for stage in spec.stages],
        "run": task.run,
        "attempt": task.attempts - task.chores,
        "retry_count": task.consecutive,
        "total_retries": task.total_retries,
        "last_checked_at": seen.get("last_checked_at"),
        "last_progress_at": seen.get("last_progress_at"),
        "deadline_at": seen.get("deadline_at"),
        "active_s": round(task.active_s, 3),
        "heartbeat": {
            "last_check": seen.get("last_checked_at"),
            "message_count": task.messages,
            "tool_calls": task.tool_calls,
        },
        "usage": {
            "input_tokens": usage.input_tokens or 0,
            "output_tokens": usage.output_tokens or 0,
            "cost_usd": usage.cost_usd,
        },
        "paid_calls": task.paid_calls,
        "interrupt": _interrupt(task),
        "wake_at": task.wake_at,
        "runner": _runner(task),
        "verdict": seen.get("verdict"),
        "progress": progress(task, seen),
    }
    if task.begun_at is not None:
        manifest["begun_at"] = task.begun_at
    if task.status in ENDS:
        manifest["finished_at"] = task.finished_at
        manifest["exit_code"] = ended.exit_code if ended is not None else None
        manifest["exit_signal"] = ended.exit_signal if ended is not None else None
        manifest["output_tail"] = seen.get("output_tail", "")
        if task.status is Status.ABANDONED:
            manifest["abandoned_at"] = task.finished_at
            manifest["abandon_reason"] = task.reason
    return manifest


def _interrupt(task: Task) -> dict[str, Any] | None:
    if task.status is not Status.INTERRUPTED:
        return None
    return {
        "requested": True,
        "reason": task.interrupt or task.reason,
        "timestamp": task.interrupted_at,
        # Taking it away resumes the task.
        "file": "state/interrupt-request.txt" if task.is_marked else None,
        "approval": task.approval,
    }


def _runner(task: Task) -> dict[str, Any] | None:
    runner = task.runner
    # The last manifest of a task is written by a runner that is about to leave.
    if runner is None or task.status in ENDS:
        return None
    return {"pid": runner.pid, "boot_id": runner.boot_id, "start_time": runner.start_time}


def progress(task: Task, seen: dict[str, Any]) -> dict[str, Any] | None:
    """What was said last: by the agent's file (`progress`, of `progress_at`), or by a list that its CLI told of."""
    told, written = task.progress, seen.get("progress")
    if told is None or (written is not None and seen.get("progress_at", "") >= task.progress_at):
        return written
    return {
        "steps_completed": told.steps_completed,
        "steps_total": told.steps_total,
        "current_step": told.current_step,
    }


def _stage(task: Task, name: str) -> dict[str, Any]:
    stage_state = task.stage_states.get(name)
    attempt = stage_state.attempt if stage_state is not None else None
    is_due = any(stage.name == name for stage in task.due)
    if name in task.stages_done:
        state = "done"
    elif is_due and attempt is not None:
        state = "failed" if task.has_ended else "active"
    else:
        state = "pending"
    verdict = stage_state.gate_result if stage_state is not None else None
    return {
        "name": name,
        "state": state,
        "agent": stage_state.agent if stage_state is not None else task.stage_state(name).agent,
        "attempt": attempt.number if attempt is not None else None,
        "outcome": attempt.ended.outcome if attempt is not None and attempt.ended is not None else None,
        "gate": None if verdict is None else "passed" if verdict.passed else "failed",
        "session_id": stage_state.session_id if stage_state is not None else None,
    }


def current_session(task: Task, shown: dict[str, Any]) -> dict[str, Any]:
    """state/current-session.json: the present attempt, in the words of those who call it a session."""
    attempt = task.attempt
    if attempt is None:
        return {"schema": "holdfast.current-session/1", "session_id": None, "status": task.status}
    started, ended = attempt.started, attempt.ended
    folder = f"attempts/{attempt.dirname}"
    return {
        "schema": "holdfast.current-session/1",
        "session_id": attempt.attempt_id,
        "agent_session_id": attempt.session_id,
        "started_at": started.started_at if started else None,
        "start_epoch": int(clock.parse_iso(started.started_at)) if started else None,
        "status": task.status,
        "status_reason": task.reason,
        "status_updated_at": task.moved_at,
        "work": {
            "id": str(task.spec.work.get("id") or task.spec.task_id),
            "details": str(task.spec.work.get("details") or task.spec.goal),
        },
        "pid": started.pid if started else 0,
        "exit_code": ended.exit_code if ended else None,
        "ended_at": ended.noticed_at if ended else None,
        "logs": {"stdout": f"{folder}/stdout.log", "stderr": f"{folder}/stderr.log", "transcript": None},
        "heartbeat": shown["heartbeat"],
        "interrupt": shown["interrupt"] or {"requested": False, "reason": None, "timestamp": None},
    }
