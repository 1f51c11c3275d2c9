"""manifest.json: the current state of a task, derived from its journal."""

from __future__ import annotations

from holdfast import clock
from holdfast.model import acceptance, concerns, permissions
from holdfast.model.execution import dirname
from holdfast.model.status import ENDS, Status
from holdfast.model.task import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.events import RepairPlanned
    from holdfast.model.spec import SandboxSpec
    from holdfast.model.task_parts import Takeover

SCHEMA = "holdfast.manifest/1"
#: Answers that are shown, the last ones.
_ANSWERS = 10
#: Repairs that are shown, the last ones.
_REPAIRS = 10
#: Characters of the agent's last words, for lists; and of the reason of a repair.
_WORDS_CHARS = 200


class Observed:
    """Values that only the runner knows. The manifest shows them; no decision depends on them."""

    def __init__(self) -> None:
        self.last_checked_at: str | None = None
        self.last_progress_at: str | None = None
        self.deadline_at: str | None = None
        #: What the watch concludes about the agent.
        self.verdict: str | None = None
        #: What the task waits for before it can continue, such as the workspace.
        self.waiting_for: str | None = None
        #: What the running agent waits for, such as the model.
        self.agent_waits_for: str | None = None
        #: How long a record of the recorder has been overdue; null if none is.
        self.recorder_silent_s: float | None = None
        #: The progress in state/work.json, and when it was written.
        self.file_progress: dict[str, Any] | None = None
        self.file_progress_at = ""
        #: At the end: the last lines of output.log.
        self.output_tail = ""
        #: Bytes of the journal that the manifest contains: its events from there on are newer.
        self.journal_bytes: int | None = None

    def verdict_text(self) -> str | None:
        """Why nothing moves, or what the watch concludes."""
        if self.recorder_silent_s is not None:
            return f"the recorder has been silent for {self.recorder_silent_s:.0f}s"
        return self.verdict


#: Every field that this version writes. Fields of other versions survive a rewrite.
FIELDS = frozenset((
    "schema", "task_id", "task_name", "goal", "agent", "model", "permissions", "denied", "yolo",
    "project_dir", "session_name", "session_id", "pid", "tmpdir", "started_at", "begun_at", "status",
    "status_reason", "status_cause", "status_updated_at", "stage", "stages", "run", "attempt",
    "retry_count", "total_retries", "last_checked_at", "last_progress_at", "deadline_at", "active_s",
    "heartbeat", "usage", "paid_calls", "interrupt", "wake_at", "runner", "verdict", "waiting_for",
    "stopping", "answers", "asked_s", "last_words", "progress", "finished_at", "exit_code", "exit_signal",
    "output_tail", "abandoned_at", "abandon_reason", "is_past_deadline", "concerns", "accept", "amended",
    "labels", "journal_bytes", "notes", "sandbox", "applied", "takeover", "denied_readers", "parent", "items",
    "run_started_at", "waited_s", "repairs", "ci", "over_budget",
))  # fmt: skip


def render(task: Task, packet_dir: str, observed: Observed) -> dict[str, Any]:
    """The manifest of `task`."""
    waiting_for = _waiting_for(task, observed)
    manifest = _always(task, packet_dir, observed, waiting_for)
    manifest.update(_if_present(task, observed, waiting_for))
    if task.status in ENDS:
        manifest.update(_at_end(task, observed))
    return manifest


def _waiting_for(task: Task, observed: Observed) -> str | None:
    """What it waits for. A task that was stopped while it waited does not wait any more."""
    if task.status is Status.RUNNING:
        return observed.agent_waits_for
    return observed.waiting_for if task.status in (Status.SPAWNING, Status.COMPLETING) else None


def _always(task: Task, packet_dir: str, observed: Observed, waiting_for: str | None) -> dict[str, Any]:
    """Fields of every manifest."""
    spec, attempt = task.spec, task.attempt
    started = attempt.started if attempt is not None else None
    ended = attempt.ended if attempt is not None else None
    usage = task.total_usage if attempt is not None and attempt.is_open else task.spending.usage
    return {
        "schema": SCHEMA,
        "task_id": spec.task_id,
        "task_name": spec.task_name,
        "goal": spec.goal,
        "agent": attempt.agent if attempt is not None else spec.agent,
        "model": spec.model,
        "permissions": (widest := permissions.widest(task)),
        "yolo": widest == permissions.FULL,
        "sandbox": _sandbox(spec.sandbox),
        "project_dir": spec.project_dir,
        "session_name": f"holdfast-{spec.task_id}",
        "session_id": task.session_id,
        "pid": started.pid if started is not None and ended is None else None,
        "tmpdir": packet_dir,
        "started_at": task.created_at,
        "run_started_at": task.run_started_at,
        "status": task.status,
        "status_reason": task.reason,
        "status_cause": task.cause,
        "status_updated_at": task.moved_at,
        "stage": task.stage or (spec.stages[-1].name if spec.stages else None),
        "stages": [_stage(task, stage.name) for stage in spec.stages],
        "run": task.run,
        "attempt": task.attempt_count,
        "retry_count": task.failures_in_a_row,
        "total_retries": task.total_retries,
        "last_checked_at": observed.last_checked_at,
        "last_progress_at": observed.last_progress_at,
        "deadline_at": observed.deadline_at,
        "active_s": round(task.active_s, 3),
        "waited_s": round(task.waited_s, 3),
        "heartbeat": {
            "last_check": observed.last_checked_at,
            "message_count": task.messages,
            "tool_calls": task.tool_calls,
        },
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cost_usd": usage.cost_usd,
            "unpriced_calls": len(task.spending.unpriced),
            **({"uncounted_takeovers": len(uncounted)} if (uncounted := task.spending.uncounted) else {}),
        },
        "paid_calls": task.paid_calls,
        "denied": [denial.to_json() for denial in permissions.denials(task)],
        "interrupt": _interrupt(task),
        "wake_at": task.waiting.wake_at if task.waiting is not None else None,
        "runner": _runner(task),
        "verdict": observed.verdict_text() if waiting_for is None else f"waits for {waiting_for}",
        "progress": progress(task, observed),
    }


def _if_present(task: Task, observed: Observed, waiting_for: str | None) -> dict[str, Any]:
    """Fields that most manifests do not have."""
    spec = task.spec
    fields: dict[str, Any] = {}
    if found := concerns.of_task(task):
        fields["concerns"] = [concern.to_json() for concern in found]
    if task.status is Status.COMPLETED and (over := task.over_budget):
        fields["over_budget"] = over  # otherwise it was stopped for it, which is its reason
    if commands := acceptance.commands_of(spec) or acceptance.of_merges(spec):
        fields["accept"] = len(commands)
    if readers := permissions.denied_readers(task):
        fields["denied_readers"] = readers
    if spec.notes:
        fields["notes"] = list(spec.notes)
    if task.applied is not None:
        fields["applied"] = task.applied.shown()
    if task.takeover is not None:
        fields["takeover"] = _takeover(task.takeover)
    if task.amended:
        fields["amended"] = list(task.amended)
    if spec.labels:
        fields["labels"] = spec.labels
    if spec.parent is not None:
        fields["parent"] = spec.parent
    if spec.fan_out is not None:
        fields["items"] = [item.id for item in spec.fan_out.items]
    if observed.journal_bytes is not None:
        fields["journal_bytes"] = observed.journal_bytes
    if waiting_for is not None:
        fields["waiting_for"] = waiting_for
    if task.asked_s:
        fields["asked_s"] = round(task.asked_s, 3)
    if task.answers:
        fields["answers"] = [answer.to_json() for answer in task.answers[-_ANSWERS:]]
    if task.repair_log:
        fields["repairs"] = [_repair(at, repair) for at, repair in task.repair_log[-_REPAIRS:]]
    if task.ci is not None:
        fields["ci"] = {
            "state": task.ci.state,
            "pull_request": task.ci.pull_request,
            "commit": task.ci.commit,
        }
    if stopping := _stopping(task):
        fields["stopping"] = stopping
    if task.begun_at is not None:
        fields["begun_at"] = task.begun_at
    return fields


def _sandbox(sandbox: SandboxSpec | None) -> dict[str, Any] | None:
    if sandbox is None:
        return None
    hosts = {"hosts": ",".join(sandbox.hosts)} if sandbox.hosts else {}
    return {"network": sandbox.network, **hosts}


def _repair(at: str, repair: RepairPlanned) -> dict[str, Any]:
    reason = " ".join("; ".join(repair.reasons).split())
    return {
        "stage": repair.stage,
        "failed_stage": repair.failed_stage,
        "at": at,
        "reason": reason[:_WORDS_CHARS],
    }


def _at_end(task: Task, observed: Observed) -> dict[str, Any]:
    """Fields of a task that has ended."""
    attempt = task.attempt
    ended = attempt.ended if attempt is not None else None
    fields: dict[str, Any] = {
        "finished_at": task.finished_at,
        "exit_code": ended.exit_code if ended is not None else None,
        "exit_signal": ended.exit_signal if ended is not None else None,
        "output_tail": observed.output_tail,
    }
    if attempt is not None and (words := " ".join(attempt.last_words.split())):
        fields["last_words"] = words[:_WORDS_CHARS]
    if task.status is Status.ABANDONED:
        fields["abandoned_at"] = task.finished_at
        fields["abandon_reason"] = task.reason
        fields["is_past_deadline"] = task.is_past_deadline
    return fields


def _takeover(takeover: Takeover) -> dict[str, Any]:
    """The last takeover. While `ended` is null, a lock in `attempt` says whether it goes on."""
    started, ended = takeover.started, takeover.ended
    return {
        "attempt": dirname(started.attempt, started.stage, "takeover"),
        "stage": started.stage,
        "agent": started.agent,
        "session_id": started.session_id,
        "by": started.by,
        "at": takeover.started_at,
        "ended": None if ended is None else {"how": ended.how, "at": takeover.ended_at, "files": ended.files},
    }


def _interrupt(task: Task) -> dict[str, Any] | None:
    interrupted = task.interrupted
    if interrupted is None:
        return None
    return {
        "requested": True,
        "reason": interrupted.question,
        "timestamp": interrupted.since,
        # Removing it resumes the task.
        "file": "state/interrupt-request.txt" if interrupted.has_file else None,
        "approval": interrupted.approval,
        "asked_by": task.asked_by,
    }


def _stopping(task: Task) -> dict[str, Any] | None:
    """Why its agents are being stopped; null if they are not. One that lingers after its result is done."""
    if task.has_ended:
        return None
    for execution in task.stoppable:
        if (intent := execution.intent) is not None and intent.intent != "linger":
            return {
                "intent": intent.intent,
                "reason": intent.reason,
                "since": execution.intended_at,
                "kills": intent.kills,
            }
    return None


def _runner(task: Task) -> dict[str, Any] | None:
    runner = task.runner
    # The last manifest of a task is written by a runner that is leaving.
    if runner is None or task.status in ENDS:
        return None
    return {"pid": runner.pid, "boot_id": runner.boot_id, "start_time": runner.start_time}


def progress(task: Task, observed: Observed) -> dict[str, Any] | None:
    """The latest progress report: the agent's file, or a to-do list of its CLI."""
    reported, written = task.progress, observed.file_progress
    if reported is None or (written is not None and observed.file_progress_at >= task.progress_at):
        return written
    return {
        "steps_completed": reported.steps_completed,
        "steps_total": reported.steps_total,
        "current_step": reported.current_step,
    }


def _stage(task: Task, name: str) -> dict[str, Any]:
    stage_state = task.stage_states.get(name)
    attempt = stage_state.attempt if stage_state is not None else None
    is_due = any(stage.name == name for stage in task.due)
    if name in task.stages_done:
        state = "done"
    elif name in task.eliminated:
        state = "eliminated"
    elif is_due and attempt is not None:
        state = "failed" if task.has_ended else "active"
    else:
        state = "pending"
    gate_result = stage_state.gate_result if stage_state is not None else None
    shown: dict[str, Any] = {
        "name": name,
        "state": state,
        "agent": stage_state.agent if stage_state is not None else task.stage_state(name).agent,
        "attempt": attempt.number if attempt is not None else None,
        "outcome": attempt.ended.outcome if attempt is not None and attempt.ended is not None else None,
        "gate": None if gate_result is None else "passed" if gate_result.passed else "failed",
        "session_id": stage_state.session_id if stage_state is not None else None,
    }
    if stage_state is not None and stage_state.worked_s:
        shown["worked_s"] = round(stage_state.worked_s, 3)
    if stage_state is not None and stage_state.gate is not None and stage_state.gate.changed is not None:
        shown["changed"] = stage_state.gate.changed
    if gate_result is not None and gate_result.decision:
        shown["decision"] = gate_result.decision
    if gate_result is not None and gate_result.passed_before:
        shown["passed_before"] = True
    if task.chosen is not None and task.chosen.chosen == name:
        shown["is_chosen"] = True
    if gate_result is not None and gate_result.findings:
        shown["findings"] = gate_result.findings
    return shown


def current_session(task: Task, shown: dict[str, Any]) -> dict[str, Any]:
    """state/current-session.json: the current attempt, which this file calls a session."""
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
        "pid": started.pid if started else None,
        "exit_code": ended.exit_code if ended else None,
        "ended_at": ended.noticed_at if ended else None,
        "logs": {"stdout": f"{folder}/stdout.log", "stderr": f"{folder}/stderr.log", "transcript": None},
        "heartbeat": shown["heartbeat"],
        "interrupt": shown["interrupt"] or {"requested": False, "reason": None, "timestamp": None},
    }
