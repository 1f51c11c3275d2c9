"""Schemas of what commands print, and of the keeper's and the queue's own files. Data only; `schema` names them."""

from __future__ import annotations

from holdfast.model.schema_parts import (
    AT,
    COUNT,
    SECONDS,
    STATUS,
    TASK_ID,
    TEXT,
    TEXTS,
    WHOLE,
    Schema,
    of_fields,
    of_record,
    or_null,
)
from holdfast.model.spec import PipelineSpec, StageSpec

OWNER = or_null(of_fields({"pid": COUNT, "version": or_null(TEXT)}, optional=("version",)))
HOME_STATUS = of_fields(
    {
        "home": TEXT,
        "keeper": OWNER,
        "seed": OWNER,
        "down": {"type": "boolean"},
        "counts": {
            "type": "object",
            "description": "state → number of tasks",
            "propertyNames": STATUS,
            "additionalProperties": COUNT,
        },
        "runners_gone": {
            "type": "array",
            "items": TEXT,
            "description": "tasks at work that have no runner",
        },
        "keeper_starts": {"type": "array", "items": AT, "description": "starts in the last ten minutes"},
        "outbox": of_fields(
            {
                "pending": COUNT,
                "given_up": COUNT,
                "failing": {"type": "object", "description": "rule → its last failure"},
            }
        ),
        "queue": or_null(
            of_fields(
                {
                    "states": {
                        "type": "object",
                        "description": "state in the queue → number of tasks",
                        "additionalProperties": COUNT,
                    },
                    "paused": {"type": "array", "items": TEXT, "description": "paused pools; * is all"},
                    "loop": {"type": "object", "description": "how far the loop is (loop.json)"},
                }
            )
        ),
        "attention": {"type": "array", "items": TEXT, "description": "what a person should look at"},
    },
    optional=("outbox", "queue", "runners_gone"),
)
STARTS = of_fields(
    {"starts": {"type": "array", "items": SECONDS, "description": "seconds since 1970, oldest first"}}
)

FLAG = {"type": "boolean"}
CONFIG = of_fields(
    {
        "settings": {
            "type": "object",
            "additionalProperties": of_fields({"value": {}, "from": TEXT, "where": TEXT}),
            "description": "setting → its value, default, user, project or environment, and the file or variable",
        }
    }
)
CONFIG_PATH = of_fields(
    {"files": {"type": "array", "items": of_fields({"of": TEXT, "path": TEXT, "exists": FLAG})}}
)
DOCTOR = of_fields(
    {
        "home": TEXT,
        "is_well": FLAG,
        "findings": {
            "type": "array",
            "items": of_fields(
                {"check": TEXT, "level": {"enum": ["ok", "warn", "fail"]}, "said": TEXT, "fix": TEXT}
            ),
        },
    }
)
#: Without a unit there is nothing but `is_installed` to say.
SERVICE: Schema = {"type": "object", "properties": {"is_installed": FLAG}, "required": ["is_installed"]}
UNIT = of_fields({"kind": {"enum": ["systemd", "launchd"]}, "path": TEXT, "text": TEXT})
REMOVED = of_fields(
    {
        "removed": {"type": "array", "items": TEXT, "description": "ids"},
        "kept": {
            "type": "array",
            "items": of_fields({"task": TEXT, "code": TEXT, "error": TEXT, "hint": TEXT}),
            "description": "what was asked for and could not be removed, with the error that says why",
        },
    }
)
KILL: Schema = {
    "type": "object",
    "properties": {
        "what": {"enum": ["agent", "runner", "keeper"]},
        "noticed_ms": COUNT,
        "healed_ms": COUNT,
    },
    "required": ["what", "noticed_ms"],
}
DEMO = of_fields(
    {"folder": TEXT, "task_id": TEXT, "seconds": SECONDS, "kills": {"type": "array", "items": KILL}}
)
#: Beside these stand the fields of an adapter's capabilities, which this room does not know.
AGENT = of_fields({"agent": TEXT, "path": or_null(TEXT)})
NEW = of_fields({"task_id": {"type": "string", "pattern": TASK_ID}, "path": TEXT})
PROBLEM = of_fields({"file": TEXT, "line": COUNT, "path": TEXT, "message": TEXT, "hint": TEXT})
PIPELINES = of_fields(
    {
        "intents": {
            "type": "object",
            "additionalProperties": of_fields({"group": TEXT, "about": TEXT, "stages": TEXTS}),
        },
        "groups": {
            "type": "object",
            "additionalProperties": of_fields(
                {
                    "default_profile": or_null(TEXT),
                    "flags": {"type": "object", "additionalProperties": TEXTS},
                    "options": {"type": "object", "additionalProperties": TEXTS},
                    "profiles": {"type": "object"},
                }
            ),
        },
        "agents": {
            "type": "object",
            "additionalProperties": of_fields(
                {
                    "default_model": or_null(TEXT),
                    "allowed_models": or_null(TEXTS),
                    "efforts": TEXTS,
                }
            ),
        },
        "roles": {
            "type": "object",
            "additionalProperties": of_fields(
                {"about": TEXT, "purpose": TEXT, "writes": {"type": "boolean"}}
            ),
        },
        "digest_policies": TEXTS,
        "workspaces": TEXTS,
    }
)
SOURCES: Schema = {"type": "object", "additionalProperties": TEXT}
RESOLVED_STAGE = of_record(StageSpec)
RESOLVED_STAGE["properties"] = {
    **RESOLVED_STAGE["properties"],
    "max_wallclock_s": SECONDS,
    "sources": SOURCES,
}
PIPELINE = of_record(PipelineSpec)
PIPELINE["properties"] = {
    "task_id": {"type": "string", "pattern": TASK_ID},
    "project_dir": TEXT,
    "workspace": TEXT,
    "flags": {"type": "object", "additionalProperties": {"type": "boolean"}},
    "options": {"type": "object", "additionalProperties": TEXT},
    **PIPELINE["properties"],
    "stages": {"type": "array", "items": RESOLVED_STAGE},
    "not_installed": TEXTS,
}
PIPELINE_CHECK = of_fields(
    {
        "path": TEXT,
        "valid": {"type": "boolean"},
        "problems": {"type": "array", "items": PROBLEM},
        "not_installed": TEXTS,
    }
)
PHASE_LINKS = of_fields(
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
                                "done": {"type": "boolean"},
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
TASK_INDEX = of_fields(
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
                    "policies": {"type": "object"},
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
AGENTS = of_fields({"agents": {"type": "array", "items": AGENT}})
AGENT_PROBED = of_fields({"agent": TEXT, "path": or_null(TEXT), "version": or_null(TEXT)})

UP = of_fields(
    {
        "at": AT,
        "loop": of_fields(
            {
                "slots": COUNT,
                "max_iterations": COUNT,
                "iteration_delay_s": SECONDS,
                "project": {"type": "string", "description": "where what the sources bring is done"},
            },
            optional=("slots", "max_iterations", "iteration_delay_s", "project"),
        ),
    },
    optional=("loop",),
)
LOOP = of_fields(
    {
        "iteration": {**COUNT, "description": "tasks that were dispatched, ever"},
        "since_up": {**COUNT, "description": "and since the last `up`"},
        "failures": {**COUNT, "description": "tasks that failed in a row"},
        "not_before": {**or_null(AT), "description": "no task is dispatched before this"},
        "ended": {"type": "object", "additionalProperties": COUNT, "description": "ends, by state"},
        "short_of": {
            "type": "string",
            "description": "why tasks are not started: a shortage, failures, enough iterations; or empty",
        },
        "failing": {
            "type": "object",
            "additionalProperties": TEXT,
            "description": "sources whose last import went wrong, and why",
        },
        "counted": {"type": "string", "description": "the end that was counted last"},
    },
    optional=("short_of", "failing", "counted"),
)
QUEUE_ITEM = of_fields(
    {
        "task_id": {"type": "string", "pattern": TASK_ID},
        "priority": {**WHOLE, "description": "higher goes first; among equals the older"},
        "pool": TEXT,
        "agent": TEXT,
        "after": {**TEXTS, "description": "tasks that must be completed first"},
        "waits_for": {**TEXTS, "description": "those of them that are not yet"},
        "not_before": or_null(AT),
        "state": {"enum": ["queued", "claimed", "held", "poison"]},
        "reason": {"type": "string", "description": "why it is held or poison"},
        "front": {
            "type": "boolean",
            "description": "before all others: an interrupted task that was resumed",
        },
        "claimed_by": or_null(TEXT),
        "claimed_at": or_null(AT),
        "attempts": {**COUNT, "description": "deliveries so far"},
        "lost": {**COUNT, "description": "deliveries that were lost with whoever had claimed it"},
        "added_at": AT,
        "memory_mb": COUNT,
    }
)
QUEUE = of_fields(
    {
        "paused": {**TEXTS, "description": "paused pools; * is all of them"},
        "items": {"type": "array", "items": QUEUE_ITEM},
    }
)
QUEUE_KEPT = of_fields(
    {
        "paused": {**TEXTS, "description": "paused pools; * is all of them"},
        "claims": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {"by": TEXT, "at": AT},
                "required": ["by", "at"],
            },
            "description": "claims of workers outside, by task",
        },
        "priorities": {
            "type": "object",
            "additionalProperties": WHOLE,
            "description": "other priorities, by task",
        },
    }
)
QUEUE_CHECK = of_fields(
    {"ready": COUNT, "queued": COUNT, "claimed": COUNT, "held": COUNT, "poison": COUNT, "paused": TEXTS}
)
QUEUE_IMPORT = of_fields(
    {
        "source": TEXT,
        "added": TEXTS,
        "skipped": {**TEXTS, "description": "there already, waiting or ended"},
        "left": {**COUNT, "description": "as many more are ready: the next import takes them in"},
        "failed": {**TEXTS, "description": "what was not taken in, and why"},
    },
    optional=("left", "failed"),
)
