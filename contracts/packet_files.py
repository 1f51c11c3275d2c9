"""Schemas of the files in a packet."""

from __future__ import annotations

from contracts.parts import (
    AT,
    COUNT,
    FLAG,
    INTEGER,
    OBJECT,
    SECONDS,
    STATUS,
    TASK_ID,
    TEXT,
    TEXTS,
    ULID,
    Schema,
    each,
    list_with,
    of_fields,
    of_record,
    or_null,
)
from holdfast.model import events as ev
from holdfast.model.fan_out import FanOut
from holdfast.model.process import Exit, ProcessIdentity
from holdfast.model.request import REQUESTS, Request
from holdfast.model.spec import TaskSpec


def _request() -> Schema:
    schema = of_record(Request)
    schema["properties"]["id"]["pattern"] = ULID
    schema["properties"]["verb"]["enum"] = list(REQUESTS)
    return schema


#: Progress through the agent's steps, if it reports any.
PROGRESS: Schema = {
    "type": "object",
    "properties": {
        **each(or_null(COUNT), "steps_completed", "steps_total"),
        "current_step": or_null(TEXT),
    },
}
_PROCESS: Schema = of_record(ProcessIdentity)["properties"]
RUNNER_GONE: Schema = {
    "type": ["boolean", "null"],
    "description": "the task should have a runner and has none; null if unknown",
}
_IDENTITY = of_fields(
    {
        **_PROCESS,
        "started_at": AT,
        "mono_s": SECONDS,
        "directory": {
            "type": "array",
            "items": {"type": "integer"},
            "description": "device and inode of the attempt's directory, by which a copy is recognised",
        },
    },
    optional=("directory",),
)
_LOCK = of_fields(
    {
        **_PROCESS,
        "role": {
            "type": "string",
            "description": "runner, recorder, seed, keeper, loop (a keeper in the foreground) or starter",
        },
        "at": AT,
        "version": {"type": "string", "description": "version of the holdfast that took the lock"},
        "started_at": AT,
        "mono_s": SECONDS,
        "left": {"type": "integer", "description": "0 once a recorder has no children left"},
    },
    optional=("version", "started_at", "mono_s", "left"),
)
_ENV = of_fields(
    {
        "env": {"type": "object", "additionalProperties": TEXT},
        "umask": {"type": "integer", "minimum": 0, "maximum": 0o777},
        "limits": {
            "type": "object",
            "description": "name → [soft, hard]; -1 is no limit",
            "additionalProperties": {"type": "array", "items": INTEGER, "minItems": 2, "maxItems": 2},
        },
    }
)
_ARGV = of_fields(
    {
        "argv": {"type": "array", "items": TEXT, "minItems": 1},
        "cwd": TEXT,
        "stdin": or_null(TEXT),
        "env_added": {"type": "array", "items": TEXT, "description": "names, never values"},
    }
)
_ATTEMPT = of_fields(
    {
        "attempt": {"type": "integer", "minimum": 1},
        "attempt_id": {"type": "string", "pattern": "^ses_[0-9a-f]{8}$"},
        "stage": TEXT,
        "agent": TEXT,
        "mode": {"enum": ["fresh", "resume", "again", "briefing"]},
        "session_id": or_null(TEXT),
        "started": or_null(of_record(ev.AttemptStarted)),
        "stopped_for": or_null(of_record(ev.StopIntended)),
        "ended": or_null(of_record(ev.AttemptEnded)),
        "swept": or_null(of_record(ev.AttemptSwept)),
    }
)
_GATE = of_fields(
    {
        "stage": TEXT,
        "role": TEXT,
        "passed": FLAG,
        "failed": {"type": "string", "description": "the first check that did not pass"},
        "reasons": TEXTS,
        "warnings": {"type": "array", "items": TEXT, "description": "also shown in the summary"},
        "confirm": {"type": "array", "items": TEXT, "description": "a reviewer's requests for approval"},
        "checks": {
            "type": "array",
            "items": of_fields({"name": TEXT, "passed": FLAG, "reasons": TEXTS}),
        },
        "evidence": {"type": "string", "description": "the first lines of the commands that failed"},
        "decision": {"type": "string", "pattern": "^(|go|no_go|passed|failed|[1-9][0-9]?)$"},
        "findings": {"type": "object", "additionalProperties": COUNT},
        "changed": or_null(COUNT),
        "tree": {"type": "string", "description": "of a candidate: what is adopted if it is chosen"},
        "passed_before": {**FLAG, "description": "acceptance passed before the work as well"},
        "cannot_start": {
            **FLAG,
            "description": "an acceptance command could not start, and could not before the work either",
        },
        "attempt": {"type": "integer", "minimum": 1},
        "action": {"enum": ["interrupt", "warn", "file_issue"]},
        "timestamp": AT,
    },
    # A plain run has no checks: the attempt's result is the gate. `action` is there if the repository has its
    # own checks.
    optional=(
        "role",
        "failed",
        "checks",
        "warnings",
        "evidence",
        "confirm",
        "action",
        "decision",
        "findings",
        "changed",
        "tree",
        "passed_before",
        "cannot_start",
    ),
)
_META = of_fields(
    {
        "stage": TEXT,
        "tool": TEXT,
        "role": TEXT,
        "model": or_null(TEXT),
        "attempt": or_null(COUNT),
        "outcome": TEXT,
        "exit_code": or_null(INTEGER),
        "start": AT,
        "end": AT,
        "duration_sec": {"type": "number", "minimum": 0},
        "prompt_sha256": or_null({"type": "string", "pattern": "^[0-9a-f]{64}$"}),
    },
    optional=("role", "model", "attempt", "outcome"),
)
_CLASS: Schema = {
    "type": "string",
    "description": "transient, prompt_too_large, auth, tooling, scope_violation, "
    "contract_violation, budget, timeout, unknown",
}
_SIGNATURE = "^[0-9a-f]{16}$"
_STATS = of_fields(
    {
        "task_id": {"type": "string", "pattern": TASK_ID},
        "updated_at": AT,
        "paid_calls": COUNT,
        "paid_call_budget": or_null(COUNT),
        "retry_budget": or_null(COUNT),
        "completed_stages": TEXTS,
        "signatures": {
            "type": "object",
            "propertyNames": {"pattern": _SIGNATURE},
            "additionalProperties": of_fields(
                {"count": COUNT, "class": _CLASS, "first_seen": AT, "last_seen": AT}
            ),
        },
    }
)
_LAST_FAILURE = of_fields(
    {
        "at": AT,
        "stage": TEXT,
        "tool": TEXT,
        "role": TEXT,
        "attempt": or_null(COUNT),
        "class": _CLASS,
        "signature": {"type": "string", "pattern": _SIGNATURE},
        "count": {"type": "integer", "minimum": 1, "description": "failures with this signature so far"},
        "outcome": TEXT,
        "detail": TEXT,
        "exit_code": or_null(INTEGER),
        "gate_result": or_null(of_fields({"failed": TEXT, "reasons": TEXTS})),
        "suggested_actions": TEXTS,
        "next_action": of_fields({"name": TEXT, "command": TEXT, "why": TEXT, "then": TEXT}),
    }
)
#: A stage's marker has stage and attempt; the task's marker has status and run.
_DONE = of_fields(
    {"at": AT, "stage": TEXT, "attempt": COUNT, "status": STATUS, "run": COUNT},
    optional=("stage", "attempt", "status", "run"),
)
_HEARTBEAT = of_fields(
    {"last_check": or_null(AT), "message_count": COUNT, "tool_calls": COUNT},
)
_INTERRUPT = of_fields(
    {
        "requested": FLAG,
        "reason": or_null(TEXT),
        "timestamp": or_null(AT),
        "file": {
            **or_null(TEXT),
            "description": "the interrupt file in the packet; removing it resumes the task",
        },
        "approval": {**or_null(TEXT), "description": "the stage that waits for approval"},
        "asked_by": {**TEXT, "description": "agent, person, or empty for a limit, a failure or a gate"},
    },
    optional=("file", "approval", "asked_by"),
)
_SESSION = of_fields(
    {
        "session_id": or_null(TEXT),
        "agent_session_id": or_null(TEXT),
        "started_at": or_null(AT),
        "start_epoch": or_null(INTEGER),
        "status": STATUS,
        "status_reason": TEXT,
        "status_updated_at": AT,
        "work": of_fields({"id": TEXT, "details": TEXT}),
        "pid": or_null(COUNT),
        "exit_code": or_null(INTEGER),
        "ended_at": or_null(AT),
        "logs": of_fields({"stdout": TEXT, "stderr": TEXT, "transcript": or_null(TEXT)}),
        "heartbeat": _HEARTBEAT,
        "interrupt": _INTERRUPT,
    },
    # Before the first attempt, only the status is there.
    optional=(
        "agent_session_id",
        "started_at",
        "start_epoch",
        "status_reason",
        "status_updated_at",
        "work",
        "pid",
        "exit_code",
        "ended_at",
        "logs",
        "heartbeat",
        "interrupt",
    ),
)
MANIFEST = of_fields(
    {
        "task_id": {"type": "string", "pattern": TASK_ID},
        "task_name": TEXT,
        "goal": TEXT,
        "agent": TEXT,
        "model": or_null(TEXT),
        "permissions": or_null(
            {
                "enum": ["read", "edit", "full"],
                "description": "the widest permission profile of its stages; null for a plain command",
            }
        ),
        "yolo": {"type": "boolean", "description": "the agent runs without permission prompts"},
        "denied": {
            **list_with("stage", "tools", "allow"),
            "description": "stages that are done although tools were denied; `allow`: the next wider profile",
        },
        "project_dir": TEXT,
        "session_name": TEXT,
        "session_id": or_null(TEXT),
        "pid": or_null(COUNT),
        "tmpdir": TEXT,
        "started_at": AT,
        "run_started_at": or_null(
            {**AT, "description": "when its last run began to work; null while that waits in the queue"}
        ),
        "begun_at": {**AT, "description": "when the queue started it; only for queued tasks"},
        "status": STATUS,
        "status_reason": TEXT,
        "status_cause": {
            "enum": ["", "failure", "down", "distrust", "budget", "timeout", "output", "setup", "checks"],
            "description": "why it was stopped, where a program decides by it",
        },
        "status_updated_at": AT,
        "stage": or_null(TEXT),
        "stages": {
            "type": "array",
            "items": of_fields(
                {
                    "name": TEXT,
                    "state": {"enum": ["pending", "active", "done", "failed", "eliminated"]},
                    "agent": TEXT,
                    "attempt": or_null(COUNT),
                    "outcome": or_null(TEXT),
                    "gate": {"enum": ["passed", "failed", None]},
                    "session_id": or_null(TEXT),
                    "decision": {"type": "string", "pattern": "^(go|no_go|passed|failed|[1-9][0-9]?)$"},
                    "findings": {"type": "object", "additionalProperties": COUNT},
                    "is_chosen": FLAG,
                    "passed_before": FLAG,
                    "worked_s": SECONDS,
                    "changed": COUNT,
                },
                optional=(
                    "agent",
                    "gate",
                    "session_id",
                    "decision",
                    "findings",
                    "is_chosen",
                    "passed_before",
                    "worked_s",
                    "changed",
                ),
            ),
        },
        "run": {"type": "integer", "minimum": 1},
        "attempt": COUNT,
        "retry_count": COUNT,
        "total_retries": COUNT,
        "last_checked_at": or_null(AT),
        "last_progress_at": or_null(AT),
        "deadline_at": or_null(AT),
        "active_s": SECONDS,
        "heartbeat": _HEARTBEAT,
        "usage": of_fields(
            {
                "input_tokens": or_null(COUNT),
                "output_tokens": or_null(COUNT),
                "cost_usd": or_null({"type": "number"}),
                "unpriced_calls": COUNT,
                "uncounted_takeovers": COUNT,
            },
            optional=("unpriced_calls", "uncounted_takeovers"),
        ),
        "paid_calls": COUNT,
        "interrupt": or_null(_INTERRUPT),
        "wake_at": or_null(AT),
        "runner": or_null(of_fields(_PROCESS)),
        "verdict": or_null(TEXT),
        "waiting_for": TEXT,
        "stopping": of_fields({"intent": TEXT, "reason": TEXT, "since": AT, "kills": {"type": "boolean"}}),
        "asked_s": {**SECONDS},
        "waited_s": {**SECONDS},
        "repairs": {
            "type": "array",
            "items": of_fields({"stage": TEXT, "failed_stage": TEXT, "at": AT, "reason": TEXT}),
        },
        "ci": of_fields({"state": TEXT, "pull_request": TEXT, "commit": TEXT}),
        "last_words": TEXT,
        "over_budget": TEXT,
        "answers": {
            "type": "array",
            "items": of_fields({"question": TEXT, "answer": TEXT, "at": AT, "how": TEXT, "asked_by": TEXT}),
        },
        "progress": or_null(PROGRESS),
        "concerns": {
            "type": "array",
            "items": of_fields({"stage": TEXT, "kind": TEXT, "text": TEXT}),
        },
        "accept": COUNT,
        "notes": {"type": "array", "items": TEXT},
        "denied_readers": {"type": "array", "items": TEXT},
        "parent": {**TEXT, "description": "the task whose agent started this one, or whose plan has it"},
        "items": {"type": "array", "items": TEXT, "description": "of a fan-out: the ids of its items"},
        "sandbox": or_null(of_fields({"network": {"type": "boolean"}, "hosts": TEXT}, optional=("hosts",))),
        "applied": of_fields(
            {
                "how": {"enum": ["merge", "patch"]},
                "branch": or_null(TEXT),
                "commit": or_null(TEXT),
                "files": COUNT,
                "at": AT,
            }
        ),
        "takeover": of_fields(
            {
                "attempt": {**TEXT, "description": "its directory below attempts/"},
                "stage": TEXT,
                "agent": TEXT,
                "session_id": TEXT,
                "by": TEXT,
                "at": AT,
                "ended": or_null(
                    of_fields({"how": {"enum": ["handed_back", "kept", "lost"]}, "at": AT, "files": COUNT})
                ),
            }
        ),
        "amended": {"type": "array", "items": of_fields({"field": TEXT, "old": {}, "new": {}})},
        "labels": {"type": "object", "additionalProperties": TEXT},
        "journal_bytes": {
            **COUNT,
            "description": "bytes of events.jsonl that are contained; events from there on are newer",
        },
        "finished_at": AT,
        "exit_code": or_null(INTEGER),
        "exit_signal": or_null(INTEGER),
        "output_tail": TEXT,
        "abandoned_at": AT,
        "abandon_reason": TEXT,
        "is_past_deadline": {"type": "boolean"},
        "runner_gone": RUNNER_GONE,
    },
    # permissions, yolo, denied and progress: not in manifests of 0.1.0. waiting_for: only while it waits for
    # something; stopping: only while its agent is being stopped; answers: only after one. begun_at: only
    # queued tasks. finished_at to output_tail: only ended tasks. abandon* and is_past_deadline: only
    # abandoned tasks. runner_gone: never in the file, `show --json` adds it.
    optional=(
        "permissions",
        "status_cause",
        "yolo",
        "denied",
        "progress",
        "waiting_for",
        "stopping",
        "run_started_at",
        "asked_s",
        "waited_s",
        "repairs",
        "ci",
        "last_words",
        "over_budget",
        "answers",
        "concerns",
        "accept",
        "notes",
        "denied_readers",
        "parent",
        "items",
        "sandbox",
        "applied",
        "takeover",
        "amended",
        "labels",
        "journal_bytes",
        "begun_at",
        "finished_at",
        "exit_code",
        "exit_signal",
        "output_tail",
        "abandoned_at",
        "abandon_reason",
        "is_past_deadline",
        "runner_gone",
    ),
)
_PHASE_LINKS = of_fields(
    {
        "task_id": {"type": "string", "pattern": TASK_ID},
        "updated_at": AT,
        "phases": {
            "type": "object",
            "additionalProperties": of_fields(
                {
                    "canonical": or_null(TEXT),
                    "stages": {
                        "type": "object",
                        "additionalProperties": of_fields(
                            {
                                "artifact": or_null(TEXT),
                                "done": FLAG,
                                "agent": TEXT,
                                "session_id": or_null(TEXT),
                            },
                            optional=("agent", "session_id"),
                        ),
                    },
                }
            ),
        },
    }
)
_CONTEXT = of_fields(
    {
        **each(TEXT, "task_id", "task_name", "goal", "interrupt_reason", "status", "agent", "actor"),
        **each(TEXT, "interrupt_cause", "project_dir", "cwd", "last_words", "resume"),
        "timestamp": AT,
        **each(or_null(TEXT), "stage", "session_id", "agent_session_id"),
        "stages_done": TEXTS,
        "attempt": or_null(COUNT),
        "attempts": COUNT,
        "git": or_null({"type": "object", "required": ["branch", "head", "status", "error"]}),
        "open_tools": list_with("name", "summary"),
        "work": or_null(OBJECT),
        "events": {"type": "array", "items": OBJECT},
    },
    optional=("interrupt_cause",),
)
_ASKED_APPROVAL = of_fields({"stage": TEXT})
_PRE_WORK = of_fields(
    {
        **each(TEXT, "stage", "role", "failed", "action"),
        "attempt": COUNT,
        "passed": FLAG,
        "reasons": TEXTS,
        "checks": list_with("name", "passed", "reasons"),
        "uncommitted": or_null(TEXTS),
        "timestamp": AT,
    },
    optional=("role", "attempt"),
)
_PREFLIGHT = of_fields(
    {
        "at": AT,
        "run": COUNT,
        "agents": list_with("agent", "found", "path", "is_native", "version", "login_seen", "problems"),
        "no_login_seen": TEXTS,
        "problems": TEXTS,
    }
)
_ISSUE = of_fields({"at": AT, **each(TEXT, "text", "told")})
_WORK = of_fields(
    {
        **each(or_null(TEXT), "id", "status", "assigned_session", "started_at", "last_updated"),
        "progress": PROGRESS,
    },
    optional=("id", "status", "assigned_session", "started_at", "last_updated", "progress"),
)

#: Name → schema and description.
SCHEMAS: dict[str, tuple[Schema, str]] = {
    "task": (of_record(TaskSpec), "manifest.yaml of a plain run: what was requested"),
    "manifest": (MANIFEST, "manifest.json: the current state of a task"),
    "request": (_request(), "inbox/<id>.json: a request of a view to the runner"),
    "env": (_ENV, "env.json: the environment captured for the agent"),
    "current-session": (_SESSION, "state/current-session.json"),
    "identity": (_IDENTITY, "attempts/*/identity.json: the agent's process"),
    "exit": (of_record(Exit), "attempts/*/exit.json: how the agent's process ended"),
    "argv": (_ARGV, "attempts/*/argv.json: what was executed"),
    "attempt": (_ATTEMPT, "attempts/*/attempt.json: a summary of one attempt"),
    "gate": (_GATE, "outputs/<stage>.gate_result.json: the evidence for a done marker"),
    "meta": (_META, "outputs/<stage>.<tool>.meta.json: one call of an agent"),
    "stats": (_STATS, "state/stats.json: paid calls, finished stages, failures by signature"),
    "last-failure": (_LAST_FAILURE, "state/last_failure.json: the latest triage"),
    "done": (_DONE, "done/<stage>.done and done/_task.done"),
    "lock": (_LOCK, "the content of a lock file"),
    "phase-links": (_PHASE_LINKS, "state/phase-links.json: the results by phase"),
    "context": (_CONTEXT, "state/interrupts/<n>/context.json: the context of an interrupt"),
    "asked-approval": (
        _ASKED_APPROVAL,
        "state/interrupts/approval.json: the stage for which the interrupt file asks",
    ),
    "pre-work": (_PRE_WORK, "outputs/<stage>.pre_work.json: the repository's checks before the work"),
    "preflight": (_PREFLIGHT, "state/preflight.json: what a run needs, checked before its first call"),
    "issue": (_ISSUE, "state/issues/<name>.json: an issue that was filed, or was about to be"),
    "fan-out": (of_record(FanOut), "state/fan-out.json: what became of each item of a fan-out"),
    "work": (_WORK, "state/work.json: the progress of a work item"),
}
