"""Schemas of the files in a home that belong to no single task."""

from __future__ import annotations

from contracts.parts import (
    AT,
    COUNT,
    INTEGER,
    OBJECT,
    SECONDS,
    TEXT,
    TEXTS,
    Schema,
    each,
    list_with,
    of_fields,
    or_null,
)

_STARTS = of_fields(
    {
        "starts": {"type": "array", "items": SECONDS, "description": "seconds since 1970, oldest first"},
        "failures": {**COUNT, "description": "how many of the last ones have not worked; default: all"},
    },
    optional=("failures",),
)
_UP = of_fields(
    {
        "at": AT,
        "loop": of_fields(
            {
                "slots": COUNT,
                "max_iterations": COUNT,
                "iteration_delay_s": SECONDS,
                "project": {"type": "string", "description": "project directory for imported tasks"},
            },
            optional=("slots", "max_iterations", "iteration_delay_s", "project"),
        ),
    },
    optional=("loop",),
)
_LOOP = of_fields(
    {
        "iteration": {**COUNT, "description": "tasks dispatched in total"},
        "since_up": {**COUNT, "description": "starts since the last `up`; a resumed task counts again"},
        "failures": {**COUNT, "description": "consecutive failed tasks"},
        "not_before": {**or_null(AT), "description": "no task is dispatched before this time"},
        "ended": {"type": "object", "additionalProperties": COUNT, "description": "ended tasks, by state"},
        "asked": {"type": "boolean", "description": "an interrupt file stops the queue"},
        "short_of": {
            "type": "string",
            "description": "why no task is started: a shortage, failures, --max-iterations; or empty",
        },
        "held_agents": {
            "type": "object",
            "additionalProperties": TEXT,
            "description": "agents of which no task is started, each with the reason",
        },
        "held_pools": {
            "type": "object",
            "additionalProperties": TEXT,
            "description": "pools of which no task is started, each with the reason",
        },
        "full_agents": {
            "type": "object",
            "additionalProperties": TEXT,
            "description": "agents of which as many tasks run as agent_limits allows, each in words",
        },
        "full_pools": {
            "type": "object",
            "additionalProperties": TEXT,
            "description": "pools of which as many tasks run as pool_limits allows, each in words",
        },
        "full_slots": {"type": "string", "description": "how many slots are used, if all are; or empty"},
        "failing": {
            "type": "object",
            "additionalProperties": TEXT,
            "description": "sources whose last import failed, and why",
        },
        "counted": {"type": "string", "description": "the last end that was counted"},
        "spent_day": {"type": "string", "description": "the local day of `spent`"},
        "spent": {
            "type": "object",
            "additionalProperties": {"type": "number"},
            "description": "dollars that tasks of the queue cost on that day, by pool; * is the sum",
        },
        "unpriced": {
            "type": "object",
            "additionalProperties": TEXT,
            "description": "pools, and *, with a task whose cost is not wholly known: the last day of that",
        },
        "charged": {
            "type": "object",
            "additionalProperties": {"type": "number"},
            "description": "started tasks that have not ended: dollars that are counted already",
        },
        "unpriced_calls": {
            "type": "object",
            "additionalProperties": {"type": "integer"},
            "description": "the same tasks: calls without a price that are noted in unpriced already",
        },
        "budgets_told": {
            "type": "object",
            "additionalProperties": TEXT,
            "description": "budgets about which a notice was posted: pool or *, the day and the limit",
        },
        "faults": {
            "type": "object",
            "additionalProperties": TEXT,
            "description": "chores of the keeper that fail with an error that it does not expect",
        },
    },
    optional=(
        "asked",
        "spent_day",
        "spent",
        "unpriced",
        "charged",
        "unpriced_calls",
        "budgets_told",
        "faults",
        "short_of",
        "held_agents",
        "held_pools",
        "full_agents",
        "full_pools",
        "full_slots",
        "failing",
        "counted",
    ),
)
_QUEUE_KEPT = of_fields(
    {
        "paused": {**TEXTS, "description": "paused pools; * means all"},
        "claims": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {"by": TEXT, "at": AT},
                "required": ["by", "at"],
            },
            "description": "claims of external workers, by task",
        },
        "priorities": {
            "type": "object",
            "additionalProperties": INTEGER,
            "description": "changed priorities, by task",
        },
    }
)
_TASK_INDEX = of_fields(
    {
        "updated_at": AT,
        "tasks": {
            "type": "object",
            "additionalProperties": of_fields(
                {
                    "status": or_null(TEXT),
                    "run": or_null(COUNT),
                    "started_at": or_null(AT),
                    "finished_at": or_null(AT),
                    "intent": or_null(TEXT),
                    "profile": or_null(TEXT),
                    "policies": OBJECT,
                    "phases": {
                        "type": "object",
                        "additionalProperties": {
                            "type": "array",
                            "items": of_fields(
                                {
                                    "stage": TEXT,
                                    "agent": TEXT,
                                    "session_id": or_null(TEXT),
                                    "artifact": or_null(TEXT),
                                },
                                optional=("artifact",),
                            ),
                        },
                    },
                    "results": {"type": "object", "additionalProperties": or_null(TEXT)},
                    "links": TEXT,
                },
                optional=("run", "results"),
            ),
        },
    }
)
_NOTICE = of_fields(
    {
        **each(TEXT, "id", "event", "text", "reason", "home"),
        "at": AT,
        **each(or_null(TEXT), "task_id", "task_name", "status", "project_dir", "agent", "stage", "packet"),
        "interrupt": {**COUNT, "description": "with `interrupted`: the number of the task's interrupt"},
        "approval": {**or_null(TEXT), "description": "with `interrupted`: the stage that waits for approval"},
        "asked_by": {
            "enum": ["agent", "person", ""],
            "description": "with `interrupted`: who asked; empty for a limit, a failure or a gate",
        },
        "rule": or_null(OBJECT),
        "tries": COUNT,
        "next_at": or_null(AT),
        "after": or_null(TEXT),
        "error": or_null(TEXT),
    },
    optional=(
        *("task_id", "task_name", "status", "project_dir", "agent", "stage", "packet"),
        *("interrupt", "approval", "asked_by"),
        *("rule", "tries", "next_at", "after", "error"),
    ),
)
_REPLY = of_fields(
    {
        **each(TEXT, "notice", "task_id", "stage"),
        "interrupt": {**COUNT, "description": "the number of the task's interrupt"},
        "rule": {**OBJECT, "description": "the rule that sent the notice"},
        "forget_at": {**SECONDS, "description": "seconds since 1970: from then on no button works"},
    }
)
_REPLY_TAKEN = of_fields(
    {
        **each(TEXT, "notice"),
        "verb": {"enum": ["approve", "reject"]},
        "request": {**TEXT, "description": "the id of the request that it becomes"},
        "at": AT,
        "is_sent": {"type": "boolean", "description": "the request was put into the inbox"},
    }
)
_SETTINGS = of_fields(
    {
        "loop": {**OBJECT, "description": "the settings of the loop"},
        "notify": {**or_null(list_with()), "description": "the rules; null if they were never readable"},
        "wrong": {
            "type": "string",
            "description": "why the current settings are ignored; empty if they are in effect",
        },
        "wrong_in": {
            "enum": ["", "file", "environment"],
            "description": "where the error is; `environment` is that of the keeper",
        },
    },
    optional=("wrong_in",),
)
_AUDIT = of_fields(
    {
        "at": AT,
        "level": {"enum": ["info", "warn", "error"]},
        **each(TEXT, "operation", "by", "task_id", "old", "new", "reason", "answer"),
        "iteration": COUNT,
    },
    optional=("by", "task_id", "old", "new", "reason", "answer", "iteration"),
)

#: Name → schema and description.
SCHEMAS: dict[str, tuple[Schema, str]] = {
    "down": (of_fields({"at": AT}), "<home>/down: the home must have no keeper"),
    "up": (_UP, "<home>/up: the keeper keeps running when idle"),
    "loop": (_LOOP, "<home>/loop.json: progress of the keeper's loop over the queue"),
    "queue-kept": (_QUEUE_KEPT, "<home>/queue.json: what users changed in the queue"),
    "keeper-starts": (_STARTS, "<home>/keeper-starts.json: starts of the keeper"),
    "task-index": (_TASK_INDEX, "<home>/task-index.json: tasks, sessions and policies"),
    "settings": (_SETTINGS, "<home>/settings.json: the last settings that were valid"),
    "notice": (_NOTICE, "outbox/<id>.json; notifiers get it without the last five fields"),
    "outbox": (of_fields({"failing": OBJECT}), "outbox/status.json: the last failure of each failing rule"),
    "reply": (_REPLY, "replies/<notice>.json: what the buttons of a notice answer"),
    "reply-taken": (_REPLY_TAKEN, "replies/<notice>.taken: the reply that was used"),
    "audit": (_AUDIT, "audit.jsonl: one line"),
}
