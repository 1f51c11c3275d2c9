"""Schemas of what commands print with --json about a home and this installation."""

from __future__ import annotations

from contracts.parts import (
    AT,
    COUNT,
    FLAG,
    POSITIVE,
    SECONDS,
    STATUS,
    TEXT,
    Schema,
    of_fields,
    or_null,
)
from holdfast.model.soundness import UNREADABLE
from holdfast.views.text.describe import HELD

_OWNER = or_null(of_fields({"pid": COUNT, "version": or_null(TEXT)}, optional=("version",)))
#: A packet that cannot be read has a row of its own in lists.
SHOWN_STATUS: Schema = {"enum": [*STATUS["enum"], UNREADABLE]}
_HOME_STATUS = of_fields(
    {
        "home": TEXT,
        "keeper": _OWNER,
        "seed": _OWNER,
        "down": FLAG,
        "counts": {
            "type": "object",
            "description": "state → number of tasks; those that the queue holds are `held` or `poison`",
            "propertyNames": {"enum": [*SHOWN_STATUS["enum"], *HELD]},
            "additionalProperties": COUNT,
        },
        "slots": of_fields({"count": COUNT, "used": COUNT}),
        "running": {
            "type": "array",
            "items": of_fields(
                {
                    "task_id": TEXT,
                    "status": SHOWN_STATUS,
                    "is_stopping": FLAG,
                    "agent": TEXT,
                    "stage": or_null(TEXT),
                    "elapsed_s": POSITIVE,
                }
            ),
        },
        "runners_gone": {
            "type": "array",
            "items": TEXT,
            "description": "active tasks without a runner",
        },
        "keeper_starts": {
            "type": "array",
            "items": AT,
            "description": "keeper starts in the last ten minutes",
        },
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
                    "paused": {"type": "array", "items": TEXT, "description": "paused pools; * means all"},
                    "loop": {"type": "object", "description": "progress of the loop (loop.json)"},
                    "at_limit": {
                        "type": "array",
                        "items": TEXT,
                        "description": "limits of agents and pools that are reached while tasks wait",
                    },
                },
                optional=("at_limit",),
            )
        ),
        "attention": {"type": "array", "items": TEXT, "description": "problems to look at"},
        "alerts": {
            "type": "array",
            "items": of_fields(
                {"level": {"enum": ["urgent", "question", "note"]}, "text": TEXT, "kind": TEXT},
                optional=("kind",),
            ),
            "description": "the same with levels of urgency, the most urgent first",
        },
    },
    optional=("outbox", "queue", "runners_gone", "slots", "running", "alerts"),
)
_CONFIG = of_fields(
    {
        "settings": {
            "type": "object",
            "additionalProperties": of_fields({"value": {}, "from": TEXT, "where": TEXT}),
            "description": "setting → value, origin (default, user, project, environment), file or variable",
        }
    }
)
_CONFIG_PATH = of_fields(
    {"files": {"type": "array", "items": of_fields({"of": TEXT, "path": TEXT, "exists": FLAG})}}
)
_DOCTOR = of_fields(
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
#: Without a unit, only `is_installed` is there.
_SERVICE: Schema = {"type": "object", "properties": {"is_installed": FLAG}, "required": ["is_installed"]}
_UNIT = of_fields({"kind": {"enum": ["systemd", "launchd"]}, "path": TEXT, "text": TEXT})
_SKILL = of_fields(
    {
        "name": TEXT,
        "text": TEXT,
        "copies": {
            "type": "array",
            "items": of_fields(
                {
                    "path": TEXT,
                    "readers": {**TEXT, "description": "the agents that look there"},
                    "state": {"enum": ["missing", "current", "old", "changed", "foreign"]},
                    "did": {"enum": ["installed", "updated", "removed", ""]},
                }
            ),
        },
    }
)
_REMOVED = of_fields(
    {
        "removed": {"type": "array", "items": TEXT, "description": "ids"},
        "kept": {
            "type": "array",
            "items": of_fields({"task": TEXT, "code": TEXT, "error": TEXT, "hint": TEXT}),
            "description": "tasks that could not be removed, and why",
        },
    }
)
_KILL: Schema = {
    "type": "object",
    "properties": {
        "what": {"enum": ["agent", "runner", "keeper"]},
        "noticed_ms": COUNT,
        "healed_ms": COUNT,
    },
    "required": ["what", "noticed_ms"],
}
_DEMO = of_fields(
    {"folder": TEXT, "task_id": TEXT, "seconds": SECONDS, "kills": {"type": "array", "items": _KILL}}
)

#: Name → schema and description.
SCHEMAS: dict[str, tuple[Schema, str]] = {
    "status": (_HOME_STATUS, "status --json: the state of a home"),
    "config": (_CONFIG, "config show --json: every setting and its origin"),
    "config-path": (_CONFIG_PATH, "config path --json: the settings files"),
    "doctor": (_DOCTOR, "doctor --json: the results of the checks"),
    "skill": (_SKILL, "skill --json: the skill, and where it is installed"),
    "service-unit": (_UNIT, "service install --print --json: the unit, not installed"),
    "service-status": (_SERVICE, "service status --json: the keeper's unit"),
    "removed": (_REMOVED, "rm --json: tasks that were removed, and tasks that were not"),
    "demo": (_DEMO, "demo --json: what was killed, and how long recovery took"),
}
