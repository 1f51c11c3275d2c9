"""Schemas of what is for people and their programs: notices, the audit, figures, reports. Data only; `schema` builds them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_NUMBER: Schema = {"type": "number", "minimum": 0}
_FLAG: Schema = {"type": "boolean"}
_OBJECT: Schema = {"type": "object"}
_AT: Schema = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _list(*names: str) -> Schema:
    """A list of objects that have at least these fields."""
    return {"type": "array", "items": {"type": "object", "required": list(names)}}


def _all(schema: Schema, *names: str) -> dict[str, Schema]:
    return dict.fromkeys(names, schema)


#: How far an agent is with its steps, where it says so.
PROGRESS: Schema = {
    "type": "object",
    "properties": {
        **_all(_or_null(_COUNT), "steps_completed", "steps_total"),
        "current_step": _or_null(_TEXT),
    },
}
_RATE: Schema = _or_null({"type": "number", "minimum": 0, "maximum": 1})
_USAGE: Schema = {"type": "object", "required": ["input_tokens", "output_tokens", "cost_usd"]}
_TOOLS: Schema = {"type": "object", "required": ["total", "breakdown"]}
_FIGURES: Schema = {
    "type": "object",
    "properties": {
        **_all(_COUNT, "tasks", "ended", "completed", "interrupts", "retries", "attempts"),
        **_all(_RATE, "success_rate", "interrupt_rate"),
        **_all(_or_null(_NUMBER), "iterations_per_hour", "average_duration_s", "median_duration_s"),
        **_all(_or_null(_NUMBER), "longest_duration_s"),
        "by_status": _OBJECT,
        "active_s": _NUMBER,
        "api_usage": _USAGE,
        "tool_usage": _TOOLS,
    },
}
_FIGURES["required"] = list(_FIGURES["properties"])
_TASK: dict[str, Schema] = {
    **_all(_TEXT, "task_id", "status"),
    **_all(_or_null(_TEXT), "agent", "model", "project_dir"),
    **_all(_or_null(_AT), "started_at", "finished_at"),
    "duration_s": _or_null(_NUMBER),
    "active_s": _NUMBER,
    **_all(_COUNT, "attempts", "retries", "interrupts", "messages"),
    "turns": _or_null(_COUNT),
    "api_usage": _USAGE,
    "tool_usage": _TOOLS,
}

#: Name → its properties, those that may be missing, and what it is.
SHAPES: dict[str, tuple[dict[str, Schema], tuple[str, ...], str]] = {
    "notice": (
        {
            **_all(_TEXT, "id", "event", "text", "reason", "home"),
            "at": _AT,
            **_all(_or_null(_TEXT), "task_id", "task_name", "status", "project_dir", "agent", "stage", "packet"),
            "rule": _or_null(_OBJECT),
            "tries": _COUNT,
            "next_at": _or_null(_AT),
            "after": _or_null(_TEXT),
            "error": _or_null(_TEXT),
        },
        (
            "task_id", "task_name", "status", "project_dir", "agent", "stage", "packet",
            "rule", "tries", "next_at", "after", "error",
        ),
        "outbox/<id>.json, and without the last five what a notifier gets",
    ),
    "after": (
        {"completed": {"type": "array", "items": _TEXT, "description": "tasks that it is after, removed since"}},
        (),
        "after.json: what a task that waits need not wait for any more",
    ),
    "settings": (
        {
            "loop": {**_OBJECT, "description": "what they say of the loop"},
            "notify": {**_or_null(_list()), "description": "the rules; null where they could never be read"},
            "wrong": {"type": "string", "description": "why the settings of now are left aside; empty where they hold"},
        },
        (),
        "<home>/settings.json: the settings that could be read last",
    ),
    "outbox": ({"failing": _OBJECT}, (), "outbox/status.json: the last failure of each rule that fails"),
    "audit": (
        {
            "at": _AT,
            "level": {"enum": ["info", "warn", "error"]},
            **_all(_TEXT, "operation", "by", "task_id", "old", "new", "reason"),
            "iteration": _COUNT,
        },
        ("by", "task_id", "old", "new", "reason", "iteration"),
        "audit.jsonl: one line",
    ),
    "metrics": (
        {"at": _AT, "home": _FIGURES, "last_24h": _FIGURES, "tasks": _OBJECT},
        (),
        "metrics --json and metrics.json: figures of the home and of every task",
    ),
    "task-metrics": (_TASK, (), "metrics TASK --json: figures of one task"),
    "report": (
        {
            "at": _AT,
            "since": _AT,
            "home": _TEXT,
            "keeper": _or_null(_OBJECT),
            "down": _FLAG,
            "counts": _OBJECT,
            "attention": {"type": "array", "items": _TEXT},
            "queue": _list("task_id", "state", "since"),
            "active": _list("task_id", "status", "agent", "elapsed_s"),
            "ended": _list("task_id", "status", "reason", "finished_at", "took_s"),
            "interrupts": _list("at", "task_id", "reason", "resolved_at"),
            "statistics": _FIGURES,
            "statistics_of_all": _FIGURES,
        },
        (),
        "report --json",
    ),
    "prune": (
        {"removed": _FLAG, "tasks": _list("task_id", "ended_at", "bytes", "archived", "why", "removed", "error")},
        (),
        "prune --json: what would go, or went",
    ),
    "event-summary": (
        {
            **_all(_TEXT, "task_id", "status"),
            "agent": _or_null(_TEXT),
            "usage": _or_null(_USAGE),
            "active_s": _or_null(_NUMBER),
            **_all(_or_null(_AT), "first_at", "last_at"),
            "span_s": _NUMBER,
            "events": _OBJECT,
            **_all(_COUNT, "moves", "retries", "interrupts", "messages", "errors"),
            "turns": _or_null(_COUNT),
            "attempts": _list("attempt", "attempt_id", "stage", "agent", "outcome", "lived_s", "tool_calls"),
            "stages_done": {"type": "array", "items": _TEXT},
            "tool_usage": _TOOLS,
        },
        (),
        "events TASK --summary --json",
    ),
    "context": (
        {
            **_all(_TEXT, "task_id", "task_name", "goal", "interrupt_reason", "status", "agent", "actor"),
            **_all(_TEXT, "project_dir", "cwd", "last_words", "resume"),
            "timestamp": _AT,
            **_all(_or_null(_TEXT), "stage", "session_id", "agent_session_id"),
            "stages_done": {"type": "array", "items": _TEXT},
            "attempt": _or_null(_COUNT),
            "attempts": _COUNT,
            "git": _or_null({"type": "object", "required": ["branch", "head", "status", "error"]}),
            "open_tools": _list("name", "summary"),
            "work": _or_null(_OBJECT),
            "events": {"type": "array", "items": _OBJECT},
        },
        (),
        "state/interrupts/<n>/context.json: what a person needs who is asked",
    ),
    "pre-work": (
        {
            **_all(_TEXT, "stage", "role", "failed", "action"),
            "attempt": _COUNT,
            "passed": _FLAG,
            "reasons": {"type": "array", "items": _TEXT},
            "checks": _list("name", "passed", "reasons"),
            "uncommitted": _or_null({"type": "array", "items": _TEXT}),
            "timestamp": _AT,
        },
        ("role", "attempt"),
        "outputs/<stage>.pre_work.json: what the repository's checks said before the work",
    ),
    "preflight": (
        {
            "at": _AT,
            "run": _COUNT,
            "agents": _list("agent", "found", "path", "is_native", "version", "login_seen", "problems"),
            "no_login_seen": {"type": "array", "items": _TEXT},
            "problems": {"type": "array", "items": _TEXT},
        },
        (),
        "state/preflight.json: what was found of the things that a run needs, before its first call",
    ),
    "diff": (
        {
            **_all(_TEXT, "task_id", "path", "old_tree", "new_tree", "patch"),
            "stage": _or_null(_TEXT),
            "changes": _list("path", "kind", "old_path", "is_symlink", "target"),
            "left_out": {"type": "array", "items": _TEXT},
        },
        ("left_out",),
        "diff --json: what a task, or a stage of it, changed",
    ),
    "apply": (
        {
            **_all(_TEXT, "task_id", "into"),
            "how": {"enum": ["merge", "patch"]},
            **_all(_or_null(_TEXT), "branch", "commit"),
            **_all({"type": "array", "items": _TEXT}, "paths", "left_out", "submodules"),
            "squashed": {"type": "boolean"},
        },
        ("left_out", "submodules", "squashed"),
        "apply --json: what was brought over",
    ),
    "issue": (
        {"at": _AT, **_all(_TEXT, "text", "told")},
        (),
        "state/issues/<name>.json: an issue that was filed, or was about to be",
    ),
    "work": (
        {
            **_all(_or_null(_TEXT), "id", "status", "assigned_session", "started_at", "last_updated"),
            "progress": PROGRESS,
        },
        ("id", "status", "assigned_session", "started_at", "last_updated", "progress"),
        "state/work.json: where a work item stands",
    ),
}  # fmt: skip
