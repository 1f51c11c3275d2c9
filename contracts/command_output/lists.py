"""Schemas of what commands print with --json about many tasks: the queue, lists, figures."""

from __future__ import annotations

from contracts.command_output.home import SHOWN_STATUS
from contracts.packet_files import MANIFEST, RUNNER_GONE
from contracts.parts import (
    AT,
    COUNT,
    FLAG,
    INTEGER,
    OBJECT,
    POSITIVE,
    TASK_ID,
    TEXT,
    TEXTS,
    Schema,
    each,
    list_with,
    of_fields,
    or_null,
)
from holdfast.views.text.describe import HELD

_QUEUE_ITEM = of_fields(
    {
        "task_id": {"type": "string", "pattern": TASK_ID},
        "priority": {**INTEGER, "description": "higher goes first; the older one among equals"},
        "pool": TEXT,
        "agent": TEXT,
        "after": {**TEXTS, "description": "tasks that must complete first"},
        "waits_for": {**TEXTS, "description": "those of them that have not completed"},
        "not_before": or_null(AT),
        "state": {"enum": ["queued", "claimed", "held", "poison"]},
        "reason": {"type": "string", "description": "why it is held or poison"},
        "front": {
            "type": "boolean",
            "description": "goes before all others: an interrupted task that was resumed",
        },
        "claimed_by": or_null(TEXT),
        "claimed_at": or_null(AT),
        "attempts": {**COUNT, "description": "deliveries so far"},
        "lost": {**COUNT, "description": "deliveries lost because the worker died"},
        "added_at": AT,
        "memory_mb": COUNT,
    }
)
_SCHEDULE = of_fields(
    {
        "name": TEXT,
        "every": {**TEXT, "description": "day@02:00, monday@09:00 (local time) or an interval such as 6h"},
        "agent": TEXT,
        "next_at": AT,
        "last_at": or_null(AT),
    }
)
_QUEUE = of_fields(
    {
        "paused": {**TEXTS, "description": "paused pools; * means all"},
        "items": {"type": "array", "items": _QUEUE_ITEM},
        "schedules": {"type": "array", "items": _SCHEDULE},
    },
    optional=("schedules",),
)
_QUEUE_CHECK = of_fields(
    {"ready": COUNT, "queued": COUNT, "claimed": COUNT, "held": COUNT, "poison": COUNT, "paused": TEXTS}
)
_QUEUE_IMPORT = of_fields(
    {
        "source": TEXT,
        "added": TEXTS,
        "skipped": {**TEXTS, "description": "already there, waiting or ended"},
        "left": {**COUNT, "description": "items left for the next import"},
        "failed": {**TEXTS, "description": "items that could not be imported, and why"},
    },
    optional=("left", "failed"),
)

#: The part of a manifest that `ls` needs; fields that the task does not have yet are null.
SHORT = of_fields(
    {
        name: SHOWN_STATUS
        if name == "status"
        else MANIFEST["properties"][name]
        if name in MANIFEST["required"]
        else or_null(MANIFEST["properties"][name])
        for name in (
            "task_id",
            "task_name",
            "goal",
            "status",
            "status_reason",
            "status_cause",
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
            "waiting_for",
            "stopping",
            "asked_s",
            "run_started_at",
            "waited_s",
            "repairs",
            "last_words",
            "over_budget",
            "accept",
            "run",
            "concerns",
            "denied",
            "labels",
            "status_updated_at",
            "deadline_at",
            "paid_calls",
            "session_id",
            "permissions",
            "sandbox",
            "applied",
            "denied_readers",
        )
    }
    | {
        # An unreadable packet has none of these.
        "status_updated_at": or_null(MANIFEST["properties"]["status_updated_at"]),
        "paid_calls": or_null(COUNT),
        "stages": {
            "type": "array",
            "items": of_fields(
                {
                    name: MANIFEST["properties"]["stages"]["items"]["properties"][name]
                    for name in ("name", "state", "agent", "decision", "passed_before")
                },
                optional=("agent", "decision", "passed_before"),
            ),
        },
        "runner_gone": RUNNER_GONE,
        "queue": or_null(
            of_fields(
                {
                    "position": COUNT,
                    "state": TEXT,
                    "waits": TEXT,
                    "held_by": {**TEXT, "description": "the failed task for which it is held"},
                },
                optional=("held_by",),
            ),
        ),
        "group": TEXT,
        "elapsed_s": POSITIVE,
    },
    optional=(
        "over_budget",
        "accept",
        "run",
        "verdict",
        "waiting_for",
        "stopping",
        "concerns",
        "denied",
        "labels",
        "status_updated_at",
        "stages",
        "deadline_at",
        "paid_calls",
        "session_id",
        "permissions",
        "sandbox",
        "applied",
        "denied_readers",
        "runner_gone",
        "queue",
        "asked_s",
        "run_started_at",
        "waited_s",
        "repairs",
        "last_words",
        "group",
        "elapsed_s",
    ),
)

_RATE: Schema = or_null({"type": "number", "minimum": 0, "maximum": 1})
USAGE: Schema = {"type": "object", "required": ["input_tokens", "output_tokens", "cost_usd"]}
TOOLS: Schema = {"type": "object", "required": ["total", "breakdown"]}
_FIGURES: Schema = {
    "type": "object",
    "properties": {
        **each(COUNT, "tasks", "ended", "completed", "interrupts", "retries", "attempts"),
        **each(_RATE, "success_rate", "interrupt_rate"),
        **each(or_null(POSITIVE), "iterations_per_hour", "average_duration_s", "median_duration_s"),
        **each(or_null(POSITIVE), "longest_duration_s"),
        "by_status": OBJECT,
        "active_s": POSITIVE,
        "api_usage": USAGE,
        "tool_usage": TOOLS,
    },
}
_FIGURES["required"] = list(_FIGURES["properties"])
_TASK: dict[str, Schema] = {
    **each(TEXT, "task_id", "status"),
    **each(or_null(TEXT), "agent", "model", "project_dir"),
    **each(or_null(AT), "started_at", "finished_at"),
    "duration_s": {**or_null(POSITIVE), "description": "time of the last run, without waits"},
    "runs": {**COUNT, "description": "the other figures are of all runs"},
    "active_s": POSITIVE,
    **each(COUNT, "attempts", "retries", "interrupts", "messages"),
    "turns": or_null(COUNT),
    "api_usage": USAGE,
    "tool_usage": TOOLS,
    "stages": list_with(
        "stage", "agent", "model", "is_done", "calls", "seconds", "input_tokens", "output_tokens", "cost_usd"
    ),
}
_METRICS = of_fields(
    {
        "at": AT,
        "home": _FIGURES,
        "last_24h": _FIGURES,
        "tasks": OBJECT,
        "removed": {
            **or_null(OBJECT),
            "description": "sums of removed tasks, for the counters of --prometheus; null if there are none",
        },
    },
    optional=("removed",),
)
_REPORT = of_fields(
    {
        "at": AT,
        "since": AT,
        "home": TEXT,
        "keeper": or_null(OBJECT),
        "down": FLAG,
        "counts": OBJECT,
        "attention": TEXTS,
        "queue": list_with("task_id", "state", "since"),
        "active": list_with("task_id", "status", "agent", "elapsed_s"),
        "needs": list_with("task_id", "kind", "text", "next"),
        "ended": list_with("task_id", "status", "reason", "finished_at", "took_s"),
        "interrupts": list_with("at", "task_id", "reason", "resolved_at"),
        "takeovers": list_with("at", "task_id", "stage", "agent", "by", "ended_at", "how", "files"),
        "statistics": _FIGURES,
        "statistics_of_all": _FIGURES,
        "schedules": {"type": "array", "items": _SCHEDULE},
        "removed_usd": {
            **or_null(POSITIVE),
            "description": "what removed tasks cost today, as far as that is known; not in the statistics",
        },
    },
    optional=("removed_usd", "schedules"),
)
_PRUNE = of_fields(
    {
        "removed": FLAG,
        "tasks": list_with("task_id", "ended_at", "bytes", "archived", "why", "removed", "error"),
    }
)

_DIGEST = of_fields(
    {
        "cursor": {**TEXT, "description": "for --since of the next digest"},
        "full": {**FLAG, "description": "not a difference: without --since, or for an unknown cursor"},
        "counts": {
            "type": "object",
            "additionalProperties": COUNT,
            "description": "state → number of tasks, as in status",
        },
        "tasks": {
            "type": "array",
            "items": of_fields(
                {
                    "id": TEXT,
                    "state": {"enum": [*SHOWN_STATUS["enum"], *HELD]},
                    **each(TEXT, "stage", "question", "reason", "waits", "concerns"),
                    "needs": {"enum": ["answer", "approve", "retry"]},
                    "labels": {"type": "object", "additionalProperties": TEXT},
                    "attempt": COUNT,
                    "asking": {**TEXTS, "description": "of a fan-out: tasks that wait for a person"},
                },
                optional=(
                    "asking",
                    "stage",
                    "question",
                    "reason",
                    "waits",
                    "concerns",
                    "needs",
                    "labels",
                    "attempt",
                ),
            ),
        },
        "gone": {**TEXTS, "description": "tasks that were removed or archived"},
        "left_out": {**COUNT, "description": "changes that did not fit; the next digest has them"},
        "held": {
            **of_fields({"count": COUNT, "tasks": {**TEXTS, "description": "the first three"}}),
            "description": "tasks that the queue does not start by itself",
        },
        "asking": {
            **of_fields({"count": COUNT, "tasks": {**TEXTS, "description": "the first three"}}),
            "description": "fan-outs in which only a person can let something go on",
        },
        "note": TEXT,
    },
    optional=("note", "held", "asking"),
)

#: Name → schema and description.
SCHEMAS: dict[str, tuple[Schema, str]] = {
    "short-manifest": (SHORT, "ls --json: one entry of the list"),
    "digest": (_DIGEST, "digest --json: what changed"),
    "queue": (_QUEUE, "queue ls --json: the queue in order"),
    "queue-item": (_QUEUE_ITEM, "queue show --json: a task's place in the queue"),
    "queue-check": (_QUEUE_CHECK, "queue check --json: the number of waiting tasks"),
    "queue-import": (_QUEUE_IMPORT, "queue import --json: the imported items"),
    "metrics": (_METRICS, "metrics --json and metrics.json: figures of the home and of every task"),
    "task-metrics": (of_fields(_TASK, optional=("runs",)), "metrics TASK --json: figures of one task"),
    "report": (_REPORT, "report --json"),
    "prune": (_PRUNE, "prune --json: what was removed, or would be"),
}
