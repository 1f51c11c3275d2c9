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
import types
import typing

from holdfast.model import events as ev
from holdfast.model import schema_people
from holdfast.model.process import Exit, ProcessIdentity
from holdfast.model.record import Record
from holdfast.model.request import VERBS, Request
from holdfast.model.spec import PipelineSpec, StageSpec, TaskSpec
from holdfast.model.status import Status

Schema = dict[str, typing.Any]

_ULID = "^[0-9A-HJKMNP-TV-Z]{26}$"
_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"
_TASK_ID = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
_TEXT: Schema = {"type": "string"}
_WHOLE: Schema = {"type": "integer"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_SECONDS: Schema = {"type": "number"}
_AT: Schema = {"type": "string", "pattern": _TIME}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_STATUS: Schema = {"enum": [str(status) for status in Status]}


def schemas() -> dict[str, Schema]:
    """Every schema by its name, which is also the name of its file."""
    return {
        "events": _events(),
        "task": _named("task", _record(TaskSpec), "manifest.yaml: what was asked"),
        "manifest": _named("manifest", _MANIFEST, "manifest.json: what a task is right now"),
        "request": _named("request", _request(), "inbox/<id>.json: what a view asks a runner for"),
        "env": _named("env", _ENV, "env.json: the environment captured for the agent"),
        "current-session": _named("current-session", _SESSION, "state/current-session.json"),
        "identity": _named("identity", _IDENTITY, "attempts/*/identity.json: who the agent's process is"),
        "exit": _named("exit", _record(Exit), "attempts/*/exit.json: how the agent's process ended"),
        "argv": _named("argv", _ARGV, "attempts/*/argv.json: what was executed"),
        "attempt": _named("attempt", _ATTEMPT, "attempts/*/attempt.json: one attempt, for people"),
        "gate": _named("gate", _GATE, "outputs/<stage>.gate_result.json: the evidence beside a marker"),
        "meta": _named("meta", _META, "outputs/<stage>.<tool>.meta.json: one call of an agent"),
        "stats": _named(
            "stats", _STATS, "state/stats.json: paid calls, finished stages, failures by signature"
        ),
        "last-failure": _named("last-failure", _LAST_FAILURE, "state/last_failure.json: the latest triage"),
        "done": _named("done", _DONE, "done/<stage>.done and done/_task.done"),
        "lock": _named("lock", _LOCK, "the text in a lock file", version=False),
        "short-manifest": _named("short-manifest", _SHORT, "ls --json: one entry of the list"),
        "status": _named("status", _HOME_STATUS, "status --json: how a home is doing"),
        "down": _named("down", _object({"at": _AT}), "<home>/down: no keeper is wanted"),
        "up": _named("up", _UP, "<home>/up: the keeper stays when it is idle"),
        "loop": _named("loop", _LOOP, "<home>/loop.json: how far the loop over the queue is"),
        "keeper-starts": _named("keeper-starts", _STARTS, "<home>/keeper-starts.json: starts of the keeper"),
        "config": _named("config", _CONFIG, "config show --json: every setting and where it came from"),
        "config-path": _named("config-path", _CONFIG_PATH, "config path --json: the files of settings"),
        "doctor": _named("doctor", _DOCTOR, "doctor --json: what was checked"),
        "service-unit": _named(
            "service-unit", _UNIT, "service install --print --json: the unit, not installed"
        ),
        "removed": _named("removed", _REMOVED, "rm --json: what was removed, and what was not"),
        "service-status": _named("service-status", _SERVICE, "service status --json: the unit of the keeper"),
        "demo": _named("demo", _DEMO, "demo --json: what was killed, and how soon it was healed"),
        "new": _named("new", _NEW, "new --json: the packet that was written"),
        "pipelines": _named("pipelines", _PIPELINES, "pipeline list --json: every value that can be chosen"),
        "pipeline": _named("pipeline", _PIPELINE, "pipeline show --json: what a packet resolves to"),
        "pipeline-check": _named("pipeline-check", _PIPELINE_CHECK, "pipeline check --json: every problem"),
        "phase-links": _named("phase-links", _PHASE_LINKS, "state/phase-links.json: the results by phase"),
        "task-index": _named(
            "task-index", _TASK_INDEX, "<home>/task-index.json: tasks, sessions and policies"
        ),
        "agents": _named("agents", _AGENTS, "agent list --json: every adapter and what it can do"),
        "agent": _named("agent", _AGENT_PROBED, "agent probe --json: one adapter, its program and version"),
        "queue": _named("queue", _QUEUE, "queue ls --json: the queue in the order of its turns"),
        "queue-item": _named("queue-item", _QUEUE_ITEM, "queue show --json: a task's place in the queue"),
        "queue-check": _named("queue-check", _QUEUE_CHECK, "queue check --json: how many wait"),
        "queue-import": _named("queue-import", _QUEUE_IMPORT, "queue import --json: what came in"),
        **{
            name: _named(name, _object(properties, optional=optional), about)
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


# ── from records ────────────────────────────────────────────────────────────


def hints(cls: type[Record]) -> dict[str, typing.Any]:
    """The types of a record's fields. Its annotations are text, and some of their names exist for type checkers only."""
    found: dict[str, typing.Any] = {}
    for base in reversed(cls.__mro__):
        if issubclass(base, Record) and base is not Record:
            names = {**vars(typing), **vars(sys.modules[base.__module__])}
            for name, text in inspect.get_annotations(base).items():
                if name in cls.fields:
                    found[name] = eval(text, names)  # our own source, not input
    return found


def notes(cls: type[Record]) -> dict[str, str]:
    """What the `#:` comments above the fields of a record say."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not issubclass(base, Record) or base is Record:
            continue
        note: list[str] = []
        for line in inspect.getsource(base).splitlines():
            text = line.strip()
            if text.startswith("#:"):
                note.append(text[2:].strip())
                continue
            name = text.partition(":")[0]
            if note and name in cls.fields:
                found[name] = " ".join(note)
            note = []
    return found


def _record(cls: type[Record]) -> Schema:
    said = notes(cls)
    properties: Schema = {}
    for name, kind in hints(cls).items():
        properties[name] = _field(name, kind, cls)
        if name in said:
            properties[name]["description"] = said[name]
    return {
        "type": "object",
        "required": [name for name in cls.fields if name not in cls.defaults],
        "properties": properties,
    }


def _field(name: str, kind: typing.Any, cls: type[Record]) -> Schema:
    if name == "schema":
        return {"const": cls.defaults["schema"]}
    schema = _type(kind)
    if (name == "at" or name.endswith("_at")) and "string" in schema.get("type", ()):
        schema["pattern"] = f"^$|{_TIME}" if cls.defaults.get(name) == "" else _TIME
    return schema


def _type(kind: typing.Any) -> Schema:
    """The schema of a type, for the few shapes that records have."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return _optional([_type(arg) for arg in args])
    if origin in (list, tuple):
        return {"type": "array", "items": _type(args[0])}
    if origin is dict:
        inner = _type(args[1])
        return {"type": "object", "additionalProperties": inner} if inner else {"type": "object"}
    if kind in (typing.Any, object):
        return {}
    if isinstance(kind, type) and issubclass(kind, Record):
        return _record(kind)
    return {"type": _NAMES[kind]}


_NAMES: dict[typing.Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


def _optional(parts: list[Schema]) -> Schema:
    """`X | None`: the schema of X whose type may also be null."""
    merged: Schema = {}
    for part in parts:
        merged.update(part)
    merged["type"] = [part["type"] for part in parts]
    return merged


def _events() -> Schema:
    """One line of events.jsonl. A type that is not listed is allowed and means nothing."""
    definitions: dict[str, Schema] = {}
    for name, cls in ev.EVENTS.items():
        body = _record(cls)
        definitions[name] = {
            "type": "object",
            "description": inspect.getdoc(cls) or "",
            "required": ["id", "at", "type", *body["required"]],
            "properties": {
                "id": {"type": "string", "pattern": _ULID},
                "at": dict(_AT),
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
        "$schema": _DRAFT,
        "title": "holdfast.events/1",
        "description": "events.jsonl, one line: a fact of the journal",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in lines],
        "$defs": lines,
    }


def _request() -> Schema:
    schema = _record(Request)
    schema["properties"]["id"]["pattern"] = _ULID
    schema["properties"]["verb"]["enum"] = list(VERBS)
    return schema


# ── by hand: files that no record describes ─────────────────────────────────

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def _named(name: str, schema: Schema, description: str, *, version: bool = True) -> Schema:
    title = f"holdfast.{name}/1"
    schema = {**schema, "properties": dict(schema["properties"]), "required": list(schema["required"])}
    if version:
        schema["properties"] = {"schema": {"const": title}, **schema["properties"]}
        schema["required"] = ["schema", *(field for field in schema["required"] if field != "schema")]
    return {"$schema": _DRAFT, "title": title, "description": description, **schema}


def _object(properties: Schema, optional: tuple[str, ...] = ()) -> Schema:
    return {
        "type": "object",
        "required": [name for name in properties if name not in optional],
        "properties": properties,
    }


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_PROCESS: Schema = _record(ProcessIdentity)["properties"]
_IDENTITY = _object({**_PROCESS, "started_at": _AT, "mono_s": _SECONDS})
_LOCK = _object(
    {
        **_PROCESS,
        "role": {
            "type": "string",
            "description": "runner, recorder, seed, keeper, loop (a keeper in the foreground) or starter",
        },
        "at": _AT,
        "version": {"type": "string", "description": "of the holdfast that took it"},
        "started_at": _AT,
        "mono_s": _SECONDS,
    },
    optional=("version", "started_at", "mono_s"),
)
_ENV = _object(
    {
        "env": {"type": "object", "additionalProperties": _TEXT},
        "umask": {"type": "integer", "minimum": 0, "maximum": 0o777},
        "limits": {
            "type": "object",
            "description": "name → [soft, hard]; -1 is no limit",
            "additionalProperties": {"type": "array", "items": _WHOLE, "minItems": 2, "maxItems": 2},
        },
    }
)
_ARGV = _object(
    {
        "argv": {"type": "array", "items": _TEXT, "minItems": 1},
        "cwd": _TEXT,
        "stdin": _or_null(_TEXT),
        "env_added": {"type": "array", "items": _TEXT, "description": "names, never values"},
    }
)
_ATTEMPT = _object(
    {
        "attempt": {"type": "integer", "minimum": 1},
        "attempt_id": {"type": "string", "pattern": "^ses_[0-9a-f]{8}$"},
        "stage": _TEXT,
        "agent": _TEXT,
        "mode": {"enum": ["fresh", "resume", "again", "briefing"]},
        "session_id": _or_null(_TEXT),
        "started": _or_null(_record(ev.AttemptStarted)),
        "stopped_for": _or_null(_record(ev.StopIntended)),
        "ended": _or_null(_record(ev.AttemptEnded)),
        "swept": _or_null(_record(ev.AttemptSwept)),
    }
)
_GATE = _object(
    {
        "stage": _TEXT,
        "role": _TEXT,
        "passed": {"type": "boolean"},
        "failed": {"type": "string", "description": "the first check that did not pass"},
        "reasons": {"type": "array", "items": _TEXT},
        "checks": {
            "type": "array",
            "items": _object({"name": _TEXT, "passed": {"type": "boolean"}, "reasons": _TEXTS}),
        },
        "attempt": {"type": "integer", "minimum": 1},
        "action": {"enum": ["interrupt", "warn", "file_issue"]},
        "timestamp": _AT,
    },
    # A plain run has no checks: its attempt's own proof is the gate. In a repository with checks of its own there is an action.
    optional=("role", "failed", "checks", "action"),
)
_META = _object(
    {
        "stage": _TEXT,
        "tool": _TEXT,
        "role": _TEXT,
        "model": _or_null(_TEXT),
        "attempt": _or_null(_COUNT),
        "outcome": _TEXT,
        "exit_code": _or_null(_WHOLE),
        "start": _AT,
        "end": _AT,
        "duration_sec": {"type": "number", "minimum": 0},
        "prompt_sha256": _or_null({"type": "string", "pattern": "^[0-9a-f]{64}$"}),
    },
    optional=("role", "model", "attempt", "outcome"),
)
_CLASS: Schema = {
    "type": "string",
    "description": "transient, prompt_too_large, auth, tooling, scope_violation, contract_violation, budget, timeout, unknown",
}
_SIGNATURE = "^[0-9a-f]{16}$"
_STATS = _object(
    {
        "task_id": {"type": "string", "pattern": _TASK_ID},
        "updated_at": _AT,
        "paid_calls": _COUNT,
        "paid_call_budget": _or_null(_COUNT),
        "retry_budget": _or_null(_COUNT),
        "completed_stages": {"type": "array", "items": _TEXT},
        "signatures": {
            "type": "object",
            "propertyNames": {"pattern": _SIGNATURE},
            "additionalProperties": _object(
                {"count": _COUNT, "class": _CLASS, "first_seen": _AT, "last_seen": _AT}
            ),
        },
    }
)
_LAST_FAILURE = _object(
    {
        "at": _AT,
        "stage": _TEXT,
        "tool": _TEXT,
        "role": _TEXT,
        "attempt": _or_null(_COUNT),
        "class": _CLASS,
        "signature": {"type": "string", "pattern": _SIGNATURE},
        "count": {"type": "integer", "minimum": 1, "description": "failures with this signature, by now"},
        "outcome": _TEXT,
        "detail": _TEXT,
        "exit_code": _or_null(_WHOLE),
        "gate_result": _or_null(_object({"failed": _TEXT, "reasons": {"type": "array", "items": _TEXT}})),
        "suggested_actions": {"type": "array", "items": _TEXT},
        "next_action": _object({"name": _TEXT, "command": _TEXT, "why": _TEXT, "then": _TEXT}),
    }
)
#: A stage's marker has stage and attempt, the task's has status and run.
_DONE = _object(
    {"at": _AT, "stage": _TEXT, "attempt": _COUNT, "status": _STATUS, "run": _COUNT},
    optional=("stage", "attempt", "status", "run"),
)
_HEARTBEAT = _object(
    {"last_check": _or_null(_AT), "message_count": _COUNT, "tool_calls": _COUNT},
)
_INTERRUPT = _object(
    {
        "requested": {"type": "boolean"},
        "reason": _or_null(_TEXT),
        "timestamp": _or_null(_AT),
        "file": {**_or_null(_TEXT), "description": "the mark in the packet; taking it away resumes the task"},
        "approval": {**_or_null(_TEXT), "description": "the stage that a person must approve"},
    },
    optional=("file", "approval"),
)
_SESSION = _object(
    {
        "session_id": _or_null(_TEXT),
        "agent_session_id": _or_null(_TEXT),
        "started_at": _or_null(_AT),
        "start_epoch": _or_null(_WHOLE),
        "status": _STATUS,
        "status_reason": _TEXT,
        "status_updated_at": _AT,
        "work": _object({"id": _TEXT, "details": _TEXT}),
        "pid": _COUNT,
        "exit_code": _or_null(_WHOLE),
        "ended_at": _or_null(_AT),
        "logs": _object({"stdout": _TEXT, "stderr": _TEXT, "transcript": _or_null(_TEXT)}),
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
_MANIFEST = _object(
    {
        "task_id": {"type": "string", "pattern": _TASK_ID},
        "task_name": _TEXT,
        "goal": _TEXT,
        "agent": _TEXT,
        "model": _or_null(_TEXT),
        "yolo": {"type": "boolean", "description": "the agent's permission prompts are bypassed"},
        "project_dir": _TEXT,
        "session_name": _TEXT,
        "session_id": _or_null(_TEXT),
        "pid": _COUNT,
        "tmpdir": _TEXT,
        "started_at": _AT,
        "status": _STATUS,
        "status_reason": _TEXT,
        "status_updated_at": _AT,
        "stage": _or_null(_TEXT),
        "stages": {
            "type": "array",
            "items": _object(
                {
                    "name": _TEXT,
                    "state": {"enum": ["pending", "active", "done", "failed"]},
                    "agent": _TEXT,
                    "attempt": _or_null(_COUNT),
                    "outcome": _or_null(_TEXT),
                    "gate": {"enum": ["passed", "failed", None]},
                    "session_id": _or_null(_TEXT),
                },
                optional=("agent", "gate", "session_id"),
            ),
        },
        "run": {"type": "integer", "minimum": 1},
        "attempt": _COUNT,
        "retry_count": _COUNT,
        "total_retries": _COUNT,
        "last_checked_at": _or_null(_AT),
        "last_progress_at": _or_null(_AT),
        "deadline_at": _or_null(_AT),
        "active_s": _SECONDS,
        "heartbeat": _HEARTBEAT,
        "usage": _object(
            {"input_tokens": _COUNT, "output_tokens": _COUNT, "cost_usd": _or_null({"type": "number"})}
        ),
        "paid_calls": _COUNT,
        "interrupt": _or_null(_INTERRUPT),
        "wake_at": _or_null(_AT),
        "runner": _or_null(_object(_PROCESS)),
        "verdict": _or_null(_TEXT),
        "progress": _or_null(schema_people.PROGRESS),
        "finished_at": _AT,
        "exit_code": _or_null(_WHOLE),
        "exit_signal": _or_null(_WHOLE),
        "output_tail": _TEXT,
        "abandoned_at": _AT,
        "abandon_reason": _TEXT,
    },
    # Not in the manifests of 0.1.0; the others at the end, the last two only where the task was abandoned.
    optional=(
        "yolo",
        "progress",
        "finished_at",
        "exit_code",
        "exit_signal",
        "output_tail",
        "abandoned_at",
        "abandon_reason",
    ),
)

#: What `ls` needs of a manifest; what a task does not have yet is null.
_SHORT = _object(
    {
        name: _MANIFEST["properties"][name]
        if name in _MANIFEST["required"]
        else _or_null(_MANIFEST["properties"][name])
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
        )
    }
)
_OWNER = _or_null(_object({"pid": _COUNT, "version": _or_null(_TEXT)}, optional=("version",)))
_HOME_STATUS = _object(
    {
        "home": _TEXT,
        "keeper": _OWNER,
        "seed": _OWNER,
        "down": {"type": "boolean"},
        "counts": {
            "type": "object",
            "description": "state → number of tasks",
            "propertyNames": _STATUS,
            "additionalProperties": _COUNT,
        },
        "keeper_starts": {"type": "array", "items": _AT, "description": "starts in the last ten minutes"},
        "outbox": _object(
            {
                "pending": _COUNT,
                "given_up": _COUNT,
                "failing": {"type": "object", "description": "rule → its last failure"},
            }
        ),
        "queue": _or_null(
            _object(
                {
                    "states": {
                        "type": "object",
                        "description": "state in the queue → number of tasks",
                        "additionalProperties": _COUNT,
                    },
                    "paused": {"type": "array", "items": _TEXT, "description": "paused pools; * is all"},
                    "loop": {"type": "object", "description": "how far the loop is (loop.json)"},
                }
            )
        ),
        "attention": {"type": "array", "items": _TEXT, "description": "what a person should look at"},
    },
    optional=("outbox", "queue"),
)
_STARTS = _object(
    {"starts": {"type": "array", "items": _SECONDS, "description": "seconds since 1970, oldest first"}}
)

_FLAG = {"type": "boolean"}
_CONFIG = _object(
    {
        "settings": {
            "type": "object",
            "additionalProperties": _object({"value": {}, "from": _TEXT, "where": _TEXT}),
            "description": "setting → its value, default, user, project or environment, and the file or variable",
        }
    }
)
_CONFIG_PATH = _object(
    {"files": {"type": "array", "items": _object({"of": _TEXT, "path": _TEXT, "exists": _FLAG})}}
)
_DOCTOR = _object(
    {
        "home": _TEXT,
        "is_well": _FLAG,
        "findings": {
            "type": "array",
            "items": _object(
                {"check": _TEXT, "level": {"enum": ["ok", "warn", "fail"]}, "said": _TEXT, "fix": _TEXT}
            ),
        },
    }
)
#: Without a unit there is nothing but `is_installed` to say.
_SERVICE: Schema = {"type": "object", "properties": {"is_installed": _FLAG}, "required": ["is_installed"]}
_UNIT = _object({"kind": {"enum": ["systemd", "launchd"]}, "path": _TEXT, "text": _TEXT})
_REMOVED = _object(
    {
        "removed": {"type": "array", "items": _TEXT, "description": "ids"},
        "kept": {
            "type": "array",
            "items": _object({"task": _TEXT, "code": _TEXT, "error": _TEXT, "hint": _TEXT}),
            "description": "what was asked for and could not be removed, with the error that says why",
        },
    }
)
_KILL: Schema = {
    "type": "object",
    "properties": {
        "what": {"enum": ["agent", "runner", "keeper"]},
        "noticed_ms": _COUNT,
        "healed_ms": _COUNT,
    },
    "required": ["what", "noticed_ms"],
}
_DEMO = _object(
    {"folder": _TEXT, "task_id": _TEXT, "seconds": _SECONDS, "kills": {"type": "array", "items": _KILL}}
)
#: Beside these stand the fields of an adapter's capabilities, which this room does not know.
_AGENT = _object({"agent": _TEXT, "path": _or_null(_TEXT)})
_NEW = _object({"task_id": {"type": "string", "pattern": _TASK_ID}, "path": _TEXT})
_PROBLEM = _object({"file": _TEXT, "line": _COUNT, "path": _TEXT, "message": _TEXT, "hint": _TEXT})
_PIPELINES = _object(
    {
        "intents": {
            "type": "object",
            "additionalProperties": _object({"group": _TEXT, "about": _TEXT, "stages": _TEXTS}),
        },
        "groups": {
            "type": "object",
            "additionalProperties": _object(
                {
                    "default_profile": _or_null(_TEXT),
                    "flags": {"type": "object", "additionalProperties": _TEXTS},
                    "options": {"type": "object", "additionalProperties": _TEXTS},
                    "profiles": {"type": "object"},
                }
            ),
        },
        "agents": {
            "type": "object",
            "additionalProperties": _object(
                {
                    "default_model": _or_null(_TEXT),
                    "allowed_models": _or_null(_TEXTS),
                    "efforts": _TEXTS,
                }
            ),
        },
        "roles": {
            "type": "object",
            "additionalProperties": _object(
                {"about": _TEXT, "purpose": _TEXT, "writes": {"type": "boolean"}}
            ),
        },
        "digest_policies": _TEXTS,
        "workspaces": _TEXTS,
    }
)
_SOURCES: Schema = {"type": "object", "additionalProperties": _TEXT}
_RESOLVED_STAGE = _record(StageSpec)
_RESOLVED_STAGE["properties"] = {
    **_RESOLVED_STAGE["properties"],
    "max_wallclock_s": _SECONDS,
    "sources": _SOURCES,
}
_PIPELINE = _record(PipelineSpec)
_PIPELINE["properties"] = {
    "task_id": {"type": "string", "pattern": _TASK_ID},
    "project_dir": _TEXT,
    "workspace": _TEXT,
    "flags": {"type": "object", "additionalProperties": {"type": "boolean"}},
    "options": {"type": "object", "additionalProperties": _TEXT},
    **_PIPELINE["properties"],
    "stages": {"type": "array", "items": _RESOLVED_STAGE},
    "not_installed": _TEXTS,
}
_PIPELINE_CHECK = _object(
    {
        "path": _TEXT,
        "valid": {"type": "boolean"},
        "problems": {"type": "array", "items": _PROBLEM},
        "not_installed": _TEXTS,
    }
)
_PHASE_LINKS = _object(
    {
        "task_id": {"type": "string", "pattern": _TASK_ID},
        "updated_at": _AT,
        "phases": {
            "type": "object",
            "additionalProperties": _object(
                {
                    "canonical": _or_null(_TEXT),
                    "stages": {
                        "type": "object",
                        "additionalProperties": _object(
                            {
                                "artifact": _or_null(_TEXT),
                                "done": {"type": "boolean"},
                                "agent": _TEXT,
                                "session_id": _or_null(_TEXT),
                            },
                            optional=("agent", "session_id"),
                        ),
                    },
                }
            ),
        },
    }
)
_TASK_INDEX = _object(
    {
        "updated_at": _AT,
        "tasks": {
            "type": "object",
            "additionalProperties": _object(
                {
                    "status": _or_null(_TEXT),
                    "run": _or_null(_COUNT),
                    "started_at": _or_null(_AT),
                    "finished_at": _or_null(_AT),
                    "intent": _or_null(_TEXT),
                    "profile": _or_null(_TEXT),
                    "policies": {"type": "object"},
                    "phases": {
                        "type": "object",
                        "additionalProperties": {
                            "type": "array",
                            "items": _object(
                                {
                                    "stage": _TEXT,
                                    "agent": _TEXT,
                                    "session_id": _or_null(_TEXT),
                                    "artifact": _or_null(_TEXT),
                                },
                                optional=("artifact",),
                            ),
                        },
                    },
                    "results": {"type": "object", "additionalProperties": _or_null(_TEXT)},
                    "links": _TEXT,
                },
                optional=("run", "results"),
            ),
        },
    }
)
_AGENTS = _object({"agents": {"type": "array", "items": _AGENT}})
_AGENT_PROBED = _object({"agent": _TEXT, "path": _or_null(_TEXT), "version": _or_null(_TEXT)})

_UP = _object(
    {
        "at": _AT,
        "loop": _object(
            {
                "slots": _COUNT,
                "max_iterations": _COUNT,
                "iteration_delay_s": _SECONDS,
                "project": {"type": "string", "description": "where what the sources bring is done"},
            },
            optional=("slots", "max_iterations", "iteration_delay_s", "project"),
        ),
    },
    optional=("loop",),
)
_LOOP = _object(
    {
        "iteration": {**_COUNT, "description": "tasks that were dispatched, ever"},
        "since_up": {**_COUNT, "description": "and since the last `up`"},
        "failures": {**_COUNT, "description": "tasks that failed in a row"},
        "not_before": {**_or_null(_AT), "description": "no task is dispatched before this"},
        "ended": {"type": "object", "additionalProperties": _COUNT, "description": "ends, by state"},
        "short_of": {"type": "string", "description": "what the machine lacks; empty where there is room"},
        "counted": {"type": "string", "description": "the end that was counted last"},
    },
    optional=("short_of", "counted"),
)
_QUEUE_ITEM = _object(
    {
        "task_id": {"type": "string", "pattern": _TASK_ID},
        "priority": {**_WHOLE, "description": "higher goes first; among equals the older"},
        "pool": _TEXT,
        "agent": _TEXT,
        "after": {**_TEXTS, "description": "tasks that must be completed first"},
        "waits_for": {**_TEXTS, "description": "those of them that are not yet"},
        "not_before": _or_null(_AT),
        "state": {"enum": ["queued", "claimed", "held", "poison"]},
        "reason": {"type": "string", "description": "why it is held or poison"},
        "front": {
            "type": "boolean",
            "description": "before all others: an interrupted task that was resumed",
        },
        "claimed_by": _or_null(_TEXT),
        "claimed_at": _or_null(_AT),
        "attempts": {**_COUNT, "description": "deliveries so far"},
        "lost": {**_COUNT, "description": "deliveries that were lost with whoever had claimed it"},
        "added_at": _AT,
        "memory_mb": _COUNT,
    }
)
_QUEUE = _object(
    {
        "paused": {**_TEXTS, "description": "paused pools; * is all of them"},
        "items": {"type": "array", "items": _QUEUE_ITEM},
    }
)
_QUEUE_CHECK = _object(
    {"ready": _COUNT, "queued": _COUNT, "claimed": _COUNT, "held": _COUNT, "poison": _COUNT, "paused": _TEXTS}
)
_QUEUE_IMPORT = _object(
    {
        "source": _TEXT,
        "added": _TEXTS,
        "skipped": {**_TEXTS, "description": "there already, waiting or ended"},
    }
)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
