"""JSON Schemas of the files in a packet, for those who read them in other languages.

`python -m holdfast.model.schema --write DIR` writes one file per schema. Nothing that runs tasks imports this module: records
check themselves as far as a runner needs it. A schema is what a reader may rely on: fields without default are
required, unknown fields are allowed, because a later version may add some.
"""

from __future__ import annotations

import inspect
import json
import os
import sys

from holdfast.model import events as ev
from holdfast.model import schema_commands as commands
from holdfast.model import schema_people
from holdfast.model.process import Exit, ProcessIdentity
from holdfast.model.request import VERBS, Request
from holdfast.model.schema_parts import (
    AT,
    COUNT,
    DRAFT,
    SECONDS,
    STATUS,
    TASK_ID,
    TEXT,
    TEXTS,
    ULID,
    WHOLE,
    Schema,
    named,
    of_fields,
    of_record,
    or_null,
)
from holdfast.model.spec import TaskSpec


def schemas() -> dict[str, Schema]:
    """Every schema by its name, which is also the name of its file."""
    return {
        "events": _events(),
        "task": named("task", of_record(TaskSpec), "manifest.yaml: what was asked"),
        "manifest": named("manifest", _MANIFEST, "manifest.json: what a task is right now"),
        "request": named("request", _request(), "inbox/<id>.json: what a view asks a runner for"),
        "env": named("env", _ENV, "env.json: the environment captured for the agent"),
        "current-session": named("current-session", _SESSION, "state/current-session.json"),
        "identity": named("identity", _IDENTITY, "attempts/*/identity.json: who the agent's process is"),
        "exit": named("exit", of_record(Exit), "attempts/*/exit.json: how the agent's process ended"),
        "argv": named("argv", _ARGV, "attempts/*/argv.json: what was executed"),
        "attempt": named("attempt", _ATTEMPT, "attempts/*/attempt.json: one attempt, for people"),
        "gate": named("gate", _GATE, "outputs/<stage>.gate_result.json: the evidence beside a marker"),
        "meta": named("meta", _META, "outputs/<stage>.<tool>.meta.json: one call of an agent"),
        "stats": named(
            "stats", _STATS, "state/stats.json: paid calls, finished stages, failures by signature"
        ),
        "last-failure": named("last-failure", _LAST_FAILURE, "state/last_failure.json: the latest triage"),
        "done": named("done", _DONE, "done/<stage>.done and done/_task.done"),
        "lock": named("lock", _LOCK, "the text in a lock file", version=False),
        "short-manifest": named("short-manifest", _SHORT, "ls --json: one entry of the list"),
        "status": named("status", commands.HOME_STATUS, "status --json: how a home is doing"),
        "down": named("down", of_fields({"at": AT}), "<home>/down: no keeper is wanted"),
        "up": named("up", commands.UP, "<home>/up: the keeper stays when it is idle"),
        "loop": named("loop", commands.LOOP, "<home>/loop.json: how far the loop over the queue is"),
        "queue-kept": named(
            "queue-kept", commands.QUEUE_KEPT, "<home>/queue.json: what people said to the queue"
        ),
        "keeper-starts": named(
            "keeper-starts", commands.STARTS, "<home>/keeper-starts.json: starts of the keeper"
        ),
        "config": named(
            "config", commands.CONFIG, "config show --json: every setting and where it came from"
        ),
        "config-path": named(
            "config-path", commands.CONFIG_PATH, "config path --json: the files of settings"
        ),
        "doctor": named("doctor", commands.DOCTOR, "doctor --json: what was checked"),
        "service-unit": named(
            "service-unit", commands.UNIT, "service install --print --json: the unit, not installed"
        ),
        "removed": named("removed", commands.REMOVED, "rm --json: what was removed, and what was not"),
        "service-status": named(
            "service-status", commands.SERVICE, "service status --json: the unit of the keeper"
        ),
        "demo": named("demo", commands.DEMO, "demo --json: what was killed, and how soon it was healed"),
        "new": named("new", commands.NEW, "new --json: the packet that was written"),
        "pipelines": named(
            "pipelines", commands.PIPELINES, "pipeline list --json: every value that can be chosen"
        ),
        "pipeline": named("pipeline", commands.PIPELINE, "pipeline show --json: what a packet resolves to"),
        "pipeline-check": named(
            "pipeline-check", commands.PIPELINE_CHECK, "pipeline check --json: every problem"
        ),
        "phase-links": named(
            "phase-links", commands.PHASE_LINKS, "state/phase-links.json: the results by phase"
        ),
        "task-index": named(
            "task-index", commands.TASK_INDEX, "<home>/task-index.json: tasks, sessions and policies"
        ),
        "agents": named("agents", commands.AGENTS, "agent list --json: every adapter and what it can do"),
        "agent": named(
            "agent", commands.AGENT_PROBED, "agent probe --json: one adapter, its program and version"
        ),
        "queue": named("queue", commands.QUEUE, "queue ls --json: the queue in the order of its turns"),
        "queue-item": named(
            "queue-item", commands.QUEUE_ITEM, "queue show --json: a task's place in the queue"
        ),
        "queue-check": named("queue-check", commands.QUEUE_CHECK, "queue check --json: how many wait"),
        "queue-import": named("queue-import", commands.QUEUE_IMPORT, "queue import --json: what came in"),
        **{
            name: named(name, of_fields(properties, optional=optional), about)
            for name, (properties, optional, about) in schema_people.SHAPES.items()
        },
    }


def main(argv: list[str]) -> int:
    """`--write DIR`: one file per schema, and no others."""
    if len(argv) != 2 or argv[0] != "--write":
        print("usage: python -m holdfast.model.schema --write DIR", file=sys.stderr)
        return 2
    os.makedirs(argv[1], exist_ok=True)
    for name, schema in schemas().items():
        with open(os.path.join(argv[1], f"{name}.json"), "w", encoding="utf-8") as file:
            file.write(as_text(schema))
    return 0


def as_text(schema: Schema) -> str:
    """A schema as its file holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _events() -> Schema:
    """One line of events.jsonl. A type that is not listed is allowed and means nothing."""
    definitions: dict[str, Schema] = {}
    for name, cls in ev.EVENTS.items():
        body = of_record(cls)
        definitions[name] = {
            "type": "object",
            "description": inspect.getdoc(cls) or "",
            "required": ["id", "at", "type", *body["required"]],
            "properties": {
                "id": {"type": "string", "pattern": ULID},
                "at": dict(AT),
                "type": {"const": name},
                **body["properties"],
            },
        }
    unknown = {
        "type": "object",
        "description": "An event of a later version.",
        "required": ["id", "at", "type"],
        "properties": {"type": {"type": "string", "not": {"enum": list(ev.EVENTS)}}},
    }
    lines = {**definitions, "unknown": unknown}
    return {
        "$schema": DRAFT,
        "title": "holdfast.events/1",
        "description": "events.jsonl, one line: a fact of the journal",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in lines],
        "$defs": lines,
    }


def _request() -> Schema:
    schema = of_record(Request)
    schema["properties"]["id"]["pattern"] = ULID
    schema["properties"]["verb"]["enum"] = list(VERBS)
    return schema


# ── by hand: files that no record describes ─────────────────────────────────

_PROCESS: Schema = of_record(ProcessIdentity)["properties"]
_RUNNER_GONE: Schema = {
    "type": ["boolean", "null"],
    "description": "a runner should drive it and none lives; null where that cannot be known",
}
_IDENTITY = of_fields({**_PROCESS, "started_at": AT, "mono_s": SECONDS})
_LOCK = of_fields(
    {
        **_PROCESS,
        "role": {
            "type": "string",
            "description": "runner, recorder, seed, keeper, loop (a keeper in the foreground) or starter",
        },
        "at": AT,
        "version": {"type": "string", "description": "of the holdfast that took it"},
        "started_at": AT,
        "mono_s": SECONDS,
    },
    optional=("version", "started_at", "mono_s"),
)
_ENV = of_fields(
    {
        "env": {"type": "object", "additionalProperties": TEXT},
        "umask": {"type": "integer", "minimum": 0, "maximum": 0o777},
        "limits": {
            "type": "object",
            "description": "name → [soft, hard]; -1 is no limit",
            "additionalProperties": {"type": "array", "items": WHOLE, "minItems": 2, "maxItems": 2},
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
        "passed": {"type": "boolean"},
        "failed": {"type": "string", "description": "the first check that did not pass"},
        "reasons": {"type": "array", "items": TEXT},
        "warnings": {"type": "array", "items": TEXT, "description": "remarks that the summary has too"},
        "checks": {
            "type": "array",
            "items": of_fields({"name": TEXT, "passed": {"type": "boolean"}, "reasons": TEXTS}),
        },
        "attempt": {"type": "integer", "minimum": 1},
        "action": {"enum": ["interrupt", "warn", "file_issue"]},
        "timestamp": AT,
    },
    # A plain run has no checks: its attempt's own proof is the gate. In a repository with checks of its own there is an action.
    optional=("role", "failed", "checks", "warnings", "action"),
)
_META = of_fields(
    {
        "stage": TEXT,
        "tool": TEXT,
        "role": TEXT,
        "model": or_null(TEXT),
        "attempt": or_null(COUNT),
        "outcome": TEXT,
        "exit_code": or_null(WHOLE),
        "start": AT,
        "end": AT,
        "duration_sec": {"type": "number", "minimum": 0},
        "prompt_sha256": or_null({"type": "string", "pattern": "^[0-9a-f]{64}$"}),
    },
    optional=("role", "model", "attempt", "outcome"),
)
_CLASS: Schema = {
    "type": "string",
    "description": "transient, prompt_too_large, auth, tooling, scope_violation, contract_violation, budget, timeout, unknown",
}
_SIGNATURE = "^[0-9a-f]{16}$"
_STATS = of_fields(
    {
        "task_id": {"type": "string", "pattern": TASK_ID},
        "updated_at": AT,
        "paid_calls": COUNT,
        "paid_call_budget": or_null(COUNT),
        "retry_budget": or_null(COUNT),
        "completed_stages": {"type": "array", "items": TEXT},
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
        "count": {"type": "integer", "minimum": 1, "description": "failures with this signature, by now"},
        "outcome": TEXT,
        "detail": TEXT,
        "exit_code": or_null(WHOLE),
        "gate_result": or_null(of_fields({"failed": TEXT, "reasons": {"type": "array", "items": TEXT}})),
        "suggested_actions": {"type": "array", "items": TEXT},
        "next_action": of_fields({"name": TEXT, "command": TEXT, "why": TEXT, "then": TEXT}),
    }
)
#: A stage's marker has stage and attempt, the task's has status and run.
_DONE = of_fields(
    {"at": AT, "stage": TEXT, "attempt": COUNT, "status": STATUS, "run": COUNT},
    optional=("stage", "attempt", "status", "run"),
)
_HEARTBEAT = of_fields(
    {"last_check": or_null(AT), "message_count": COUNT, "tool_calls": COUNT},
)
_INTERRUPT = of_fields(
    {
        "requested": {"type": "boolean"},
        "reason": or_null(TEXT),
        "timestamp": or_null(AT),
        "file": {**or_null(TEXT), "description": "the mark in the packet; taking it away resumes the task"},
        "approval": {**or_null(TEXT), "description": "the stage that a person must approve"},
    },
    optional=("file", "approval"),
)
_SESSION = of_fields(
    {
        "session_id": or_null(TEXT),
        "agent_session_id": or_null(TEXT),
        "started_at": or_null(AT),
        "start_epoch": or_null(WHOLE),
        "status": STATUS,
        "status_reason": TEXT,
        "status_updated_at": AT,
        "work": of_fields({"id": TEXT, "details": TEXT}),
        "pid": COUNT,
        "exit_code": or_null(WHOLE),
        "ended_at": or_null(AT),
        "logs": of_fields({"stdout": TEXT, "stderr": TEXT, "transcript": or_null(TEXT)}),
        "heartbeat": _HEARTBEAT,
        "interrupt": _INTERRUPT,
    },
    # Before the first attempt there is only the status.
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
_MANIFEST = of_fields(
    {
        "task_id": {"type": "string", "pattern": TASK_ID},
        "task_name": TEXT,
        "goal": TEXT,
        "agent": TEXT,
        "model": or_null(TEXT),
        "yolo": {"type": "boolean", "description": "the agent's permission prompts are bypassed"},
        "project_dir": TEXT,
        "session_name": TEXT,
        "session_id": or_null(TEXT),
        "pid": COUNT,
        "tmpdir": TEXT,
        "started_at": AT,
        "begun_at": {**AT, "description": "when its turn in the queue came; only where it waited for one"},
        "status": STATUS,
        "status_reason": TEXT,
        "status_updated_at": AT,
        "stage": or_null(TEXT),
        "stages": {
            "type": "array",
            "items": of_fields(
                {
                    "name": TEXT,
                    "state": {"enum": ["pending", "active", "done", "failed"]},
                    "agent": TEXT,
                    "attempt": or_null(COUNT),
                    "outcome": or_null(TEXT),
                    "gate": {"enum": ["passed", "failed", None]},
                    "session_id": or_null(TEXT),
                },
                optional=("agent", "gate", "session_id"),
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
            {"input_tokens": COUNT, "output_tokens": COUNT, "cost_usd": or_null({"type": "number"})}
        ),
        "paid_calls": COUNT,
        "interrupt": or_null(_INTERRUPT),
        "wake_at": or_null(AT),
        "runner": or_null(of_fields(_PROCESS)),
        "verdict": or_null(TEXT),
        "progress": or_null(schema_people.PROGRESS),
        "finished_at": AT,
        "exit_code": or_null(WHOLE),
        "exit_signal": or_null(WHOLE),
        "output_tail": TEXT,
        "abandoned_at": AT,
        "abandon_reason": TEXT,
        "runner_gone": _RUNNER_GONE,
    },
    # Not in the manifests of 0.1.0; only of the queue; the others at the end, the last two only where the task was abandoned.
    # `runner_gone` is never in the file: `show --json` adds what the lock says.
    optional=(
        "yolo",
        "progress",
        "begun_at",
        "finished_at",
        "exit_code",
        "exit_signal",
        "output_tail",
        "abandoned_at",
        "abandon_reason",
        "runner_gone",
    ),
)

#: What `ls` needs of a manifest; what a task does not have yet is null.
_SHORT = of_fields(
    {
        name: _MANIFEST["properties"][name]
        if name in _MANIFEST["required"]
        else or_null(_MANIFEST["properties"][name])
        for name in (
            "task_id",
            "task_name",
            "goal",
            "status",
            "status_reason",
            "agent",
            "model",
            "stage",
            "attempt",
            "retry_count",
            "total_retries",
            "started_at",
            "begun_at",
            "finished_at",
            "wake_at",
            "usage",
            "project_dir",
            "pid",
            "exit_code",
            "active_s",
            "interrupt",
            "last_progress_at",
            "progress",
            "verdict",
        )
    }
    | {"runner_gone": _RUNNER_GONE},
    optional=("verdict", "runner_gone"),
)
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
