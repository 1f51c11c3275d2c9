"""Schemas of what commands print with --json."""

from __future__ import annotations

from contracts.packet_files import MANIFEST, RUNNER_GONE
from contracts.parts import (
    AT,
    COUNT,
    FLAG,
    INTEGER,
    OBJECT,
    POSITIVE,
    SECONDS,
    STATUS,
    TASK_ID,
    TEXT,
    TEXTS,
    Schema,
    each,
    list_with,
    of_fields,
    of_record,
    or_null,
)
from holdfast.model import history
from holdfast.model.soundness import UNREADABLE
from holdfast.model.spec import PipelineSpec, StageSpec
from holdfast.packet.fan_out import ItemFacts
from holdfast.views.facts import detail_records
from holdfast.views.facts.diff import Diff
from holdfast.views.facts.packet_files import PacketFile

_OWNER = or_null(of_fields({"pid": COUNT, "version": or_null(TEXT)}, optional=("version",)))
#: A packet that cannot be read has a row of its own in lists.
_SHOWN_STATUS: Schema = {"enum": [*STATUS["enum"], UNREADABLE]}
_HOME_STATUS = of_fields(
    {
        "home": TEXT,
        "keeper": _OWNER,
        "seed": _OWNER,
        "down": FLAG,
        "counts": {
            "type": "object",
            "description": "state → number of tasks",
            "propertyNames": _SHOWN_STATUS,
            "additionalProperties": COUNT,
        },
        "slots": of_fields({"count": COUNT, "used": COUNT}),
        "running": {
            "type": "array",
            "items": of_fields(
                {
                    "task_id": TEXT,
                    "status": _SHOWN_STATUS,
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
                }
            )
        ),
        "attention": {"type": "array", "items": TEXT, "description": "problems to look at"},
        "alerts": {
            "type": "array",
            "items": of_fields({"level": {"enum": ["urgent", "question", "note"]}, "text": TEXT}),
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
#: The fields of the adapter's capabilities are there too.
_AGENT = of_fields({"agent": TEXT, "path": or_null(TEXT)})
_SHARE = of_fields(
    {
        "task_id": {"type": "string", "pattern": TASK_ID},
        "path": TEXT,
        "bytes": COUNT,
        "left_out": {**TEXTS, "description": "what the file does not have, in words"},
    }
)
_NEW = of_fields({"task_id": {"type": "string", "pattern": TASK_ID}, "path": TEXT})
_PROBLEM = of_fields({"file": TEXT, "line": COUNT, "path": TEXT, "message": TEXT, "hint": TEXT})
_PIPELINES = of_fields(
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
            "additionalProperties": of_fields({"about": TEXT, "purpose": TEXT, "writes": FLAG}),
        },
        "digest_policies": TEXTS,
        "workspaces": TEXTS,
    }
)
_SOURCES: Schema = {"type": "object", "additionalProperties": TEXT}
_RESOLVED_STAGE = of_record(StageSpec)
_RESOLVED_STAGE["properties"] = {
    **_RESOLVED_STAGE["properties"],
    "max_wallclock_s": SECONDS,
    "sources": _SOURCES,
}
_PIPELINE = of_record(PipelineSpec)
_PIPELINE["properties"] = {
    "task_id": {"type": "string", "pattern": TASK_ID},
    "project_dir": TEXT,
    "workspace": TEXT,
    "flags": {"type": "object", "additionalProperties": FLAG},
    "options": {"type": "object", "additionalProperties": TEXT},
    **_PIPELINE["properties"],
    "stages": {"type": "array", "items": _RESOLVED_STAGE},
    "not_installed": TEXTS,
    "estimate": {
        "type": "object",
        "required": ["stages", "total", "unknown", "tasks"],
        "description": "only with --estimate; each figure has p10, p50 and p90",
    },
}
_PIPELINE_CHECK = of_fields(
    {
        "path": TEXT,
        "valid": FLAG,
        "problems": {"type": "array", "items": _PROBLEM},
        "accepted_by": {
            "type": "array",
            "items": TEXT,
            "description": "the stages in whose gates the acceptance commands run",
        },
        "not_installed": TEXTS,
        "refusal": {
            **or_null(of_fields({"message": TEXT, "hint": TEXT})),
            "description": "why 'run --packet' would refuse a valid packet here",
        },
    },
    optional=("refusal",),
)
_AGENTS = of_fields({"agents": {"type": "array", "items": _AGENT}})
_AGENT_PROBED = of_fields({"agent": TEXT, "path": or_null(TEXT), "version": or_null(TEXT)})

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
_SHORT = of_fields(
    {
        name: _SHOWN_STATUS
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
            "last_words",
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
                    for name in ("name", "state", "agent", "decision")
                },
                optional=("agent", "decision"),
            ),
        },
        "runner_gone": RUNNER_GONE,
        "group": TEXT,
        "elapsed_s": POSITIVE,
    },
    optional=(
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
        "asked_s",
        "last_words",
        "group",
        "elapsed_s",
    ),
)

_RATE: Schema = or_null({"type": "number", "minimum": 0, "maximum": 1})
_USAGE: Schema = {"type": "object", "required": ["input_tokens", "output_tokens", "cost_usd"]}
_TOOLS: Schema = {"type": "object", "required": ["total", "breakdown"]}
_FIGURES: Schema = {
    "type": "object",
    "properties": {
        **each(COUNT, "tasks", "ended", "completed", "interrupts", "retries", "attempts"),
        **each(_RATE, "success_rate", "interrupt_rate"),
        **each(or_null(POSITIVE), "iterations_per_hour", "average_duration_s", "median_duration_s"),
        **each(or_null(POSITIVE), "longest_duration_s"),
        "by_status": OBJECT,
        "active_s": POSITIVE,
        "api_usage": _USAGE,
        "tool_usage": _TOOLS,
    },
}
_FIGURES["required"] = list(_FIGURES["properties"])
_TASK: dict[str, Schema] = {
    **each(TEXT, "task_id", "status"),
    **each(or_null(TEXT), "agent", "model", "project_dir"),
    **each(or_null(AT), "started_at", "finished_at"),
    "duration_s": or_null(POSITIVE),
    "active_s": POSITIVE,
    **each(COUNT, "attempts", "retries", "interrupts", "messages"),
    "turns": or_null(COUNT),
    "api_usage": _USAGE,
    "tool_usage": _TOOLS,
    "stages": list_with(
        "stage", "agent", "model", "is_done", "calls", "seconds", "input_tokens", "output_tokens", "cost_usd"
    ),
}
_METRICS = of_fields({"at": AT, "home": _FIGURES, "last_24h": _FIGURES, "tasks": OBJECT})
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
        "statistics": _FIGURES,
        "statistics_of_all": _FIGURES,
    }
)
_PRUNE = of_fields(
    {
        "removed": FLAG,
        "tasks": list_with("task_id", "ended_at", "bytes", "archived", "why", "removed", "error"),
    }
)
_EVENT_SUMMARY = of_fields(
    {
        **each(TEXT, "task_id", "status"),
        "agent": or_null(TEXT),
        "usage": or_null(_USAGE),
        "active_s": or_null(POSITIVE),
        **each(or_null(AT), "first_at", "last_at"),
        "span_s": POSITIVE,
        "events": OBJECT,
        **each(COUNT, "moves", "retries", "interrupts", "messages", "errors"),
        "turns": or_null(COUNT),
        "attempts": list_with("attempt", "attempt_id", "stage", "agent", "outcome", "lived_s", "tool_calls"),
        "stages_done": TEXTS,
        "tool_usage": _TOOLS,
    }
)
_DIFF = of_record(Diff)
_DIFF["properties"] |= {
    "changes": list_with("path", "kind", "old_path", "is_symlink", "target"),
    "patch": {**TEXT, "description": "only in diff --json: the whole difference for git apply"},
}
_APPLY = of_fields(
    {
        **each(TEXT, "task_id", "into"),
        "how": {"enum": ["merge", "patch"]},
        **each(or_null(TEXT), "branch", "commit"),
        **each(TEXTS, "paths", "left_out", "submodules"),
        "squashed": FLAG,
        "was_there": {"type": "boolean", "description": "it was there, and the task did not show it"},
    },
    optional=("left_out", "submodules", "squashed", "was_there"),
)
_PR = of_fields(
    {
        **each(TEXT, "task_id", "branch", "commit", "remote", "url"),
        "repository": {"type": "string", "description": "owner/name, or host/owner/name; empty if unknown"},
        "was_there": {"type": "boolean", "description": "the remote had the branch before"},
        **each(TEXTS, "paths", "left_out"),
        "pull_request": or_null(TEXT),
        "is_new": FLAG,
        "checks": list_with("name", "bucket"),
    },
    optional=("left_out", "checks"),
)

_DIGEST = of_fields(
    {
        "cursor": {**TEXT, "description": "for --since of the next digest"},
        "full": {**FLAG, "description": "not a difference: without --since, or for an unknown cursor"},
        "counts": {"type": "object", "additionalProperties": COUNT, "description": "state → number of tasks"},
        "tasks": {
            "type": "array",
            "items": of_fields(
                {
                    "id": TEXT,
                    "state": _SHOWN_STATUS,
                    **each(TEXT, "stage", "question", "reason", "waits", "concerns"),
                    "needs": {"enum": ["answer", "approve"]},
                    "labels": {"type": "object", "additionalProperties": TEXT},
                    "attempt": COUNT,
                },
                optional=(
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
        "note": TEXT,
    },
    optional=("note",),
)
_SUMMARY = of_fields({"task_id": TEXT, "status": STATUS, "text": TEXT, "left_out_bytes": COUNT, "path": TEXT})

# ── facts about one task ──

_DETAIL = of_fields(
    {
        "task_id": TEXT,
        "path": {**TEXT, "description": "the packet"},
        "is_archived": FLAG,
        "journal_bytes": {**COUNT, "description": "attempts, gates and interrupts are those up to this byte"},
        "state": {**TEXT, "description": "the status, or stopping"},
        "group": TEXT,
        "elapsed_s": POSITIVE,
        "progress_at": or_null(AT),
        "manifest": {**MANIFEST, "description": "manifest.json, with runner_gone"},
        "stages": {"type": "array", "items": of_record(detail_records.Stage)},
        "attempts": {"type": "array", "items": of_record(history.Execution)},
        "gates": {"type": "array", "items": of_record(history.Gate)},
        "items": {"type": "array", "items": of_record(ItemFacts)},
        "budgets": {"type": "array", "items": of_record(detail_records.Budget)},
        "interrupts": {"type": "array", "items": of_record(history.Interrupt)},
        "question": or_null(of_record(history.Interrupt)),
        "queue": or_null(of_record(detail_records.QueuePosition)),
        "worktree": or_null(of_record(detail_records.Worktree)),
        "changed": {
            "enum": ["", "worktree", "in_place"],
            "description": "where there are changes to look at",
        },
        "runner": {**TEXT, "description": "why it has no runner; empty if it needs none or has one"},
        "leftovers": {"type": "array", "items": of_record(detail_records.Leftover)},
        "next": of_record(detail_records.Advice),
        "files": {"type": "array", "items": of_record(PacketFile)},
        "files_left_out": COUNT,
    }
)
_TIMELINE = of_fields(
    {
        "task_id": TEXT,
        "journal_bytes": {**COUNT, "description": "the timeline is that up to this byte of the journal"},
        "spans": {
            "type": "array",
            "items": of_fields(
                {
                    "kind": {"enum": ["attempt", "chore", "wait", "interrupt", "queue"]},
                    "begin": AT,
                    "end": or_null(AT),
                    "seconds": or_null(POSITIVE),
                }
            ),
        },
        "marks": {
            "type": "array",
            "items": of_fields(
                {
                    "kind": {
                        "enum": [
                            "crash",
                            "hang",
                            "resume",
                            "adopt",
                            "sweep",
                            "gate",
                            "limit",
                            "request",
                            "takeover",
                        ]
                    },
                    "at": AT,
                    "after_s": {**or_null(POSITIVE), "description": "since the end of the process before"},
                    "healed_s": {
                        **or_null(POSITIVE),
                        "description": "of a resume: from the death of one process to the start of the next",
                    },
                    "noticed_s": {**or_null(POSITIVE), "description": "of a crash: until it was noticed"},
                    "silent_s": {**or_null(POSITIVE), "description": "of a hang"},
                    "took_s": {**or_null(POSITIVE), "description": "of a gate"},
                    "gap_s": {**or_null(POSITIVE), "description": "of an adoption: without a runner"},
                    "until": {**or_null(AT), "description": "of a limit"},
                },
                optional=("after_s", "healed_s", "noticed_s", "silent_s", "took_s", "gap_s", "until"),
            ),
        },
    }
)
_LOG_WINDOW = of_fields(
    {
        "task_id": TEXT,
        "begin": {**COUNT, "description": "the byte at which the text begins, and the window before it ends"},
        "end": {**COUNT, "description": "the byte at which the window after it begins"},
        "size": {**COUNT, "description": "bytes of the log"},
        "begin_at": or_null(AT),
        "end_at": {
            **or_null(AT),
            "description": "when its last line was printed, at the latest; null: unknown",
        },
        "text": TEXT,
    }
)
_LOG_SEARCH = of_fields(
    {
        "task_id": TEXT,
        "lines": {"type": "array", "items": of_fields({"at": COUNT, "text": TEXT})},
        "end": or_null({**COUNT, "description": "where to search on; null at the end of the log"}),
    }
)
_USAGE_SERIES = of_fields(
    {
        "task_id": TEXT,
        "reports": {
            "type": "array",
            "items": of_fields(
                {
                    "at": AT,
                    "attempt": COUNT,
                    **each(or_null(COUNT), "input_tokens", "output_tokens"),
                    "cost_usd": or_null(POSITIVE),
                    "is_cumulative": {**FLAG, "description": "replaces earlier figures of the attempt"},
                    "is_of_session": {**FLAG, "description": "includes earlier attempts of the session"},
                }
            ),
        },
    }
)
_REPLAY = of_fields(
    {
        "task_id": TEXT,
        "moments": {
            "type": "array",
            "items": of_fields(
                {
                    "at": {**AT, "description": "it was so from here until the next moment"},
                    "state": TEXT,
                    "reason": TEXT,
                    "stage": or_null(TEXT),
                    "attempt": or_null(COUNT),
                    **each(or_null(COUNT), "input_tokens", "output_tokens"),
                    "cost_usd": or_null(POSITIVE),
                }
            ),
        },
    }
)
_CHANGES = of_fields({"tasks": {**TEXTS, "description": "ids of tasks that changed, appeared or are gone"}})

#: Name → schema and description.
SCHEMAS: dict[str, tuple[Schema, str]] = {
    "short-manifest": (_SHORT, "ls --json: one entry of the list"),
    "digest": (_DIGEST, "digest --json: what changed"),
    "summary": (_SUMMARY, "show --summary --json: the summary of a task"),
    "status": (_HOME_STATUS, "status --json: the state of a home"),
    "config": (_CONFIG, "config show --json: every setting and its origin"),
    "config-path": (_CONFIG_PATH, "config path --json: the settings files"),
    "doctor": (_DOCTOR, "doctor --json: the results of the checks"),
    "skill": (_SKILL, "skill --json: the skill, and where it is installed"),
    "service-unit": (_UNIT, "service install --print --json: the unit, not installed"),
    "service-status": (_SERVICE, "service status --json: the keeper's unit"),
    "removed": (_REMOVED, "rm --json: tasks that were removed, and tasks that were not"),
    "demo": (_DEMO, "demo --json: what was killed, and how long recovery took"),
    "new": (_NEW, "new --json: the packet that was written"),
    "pipelines": (_PIPELINES, "pipeline list --json: the available pipelines and values"),
    "pipeline": (_PIPELINE, "pipeline show --json: what a packet resolves to"),
    "pipeline-check": (_PIPELINE_CHECK, "pipeline check --json: every problem"),
    "agents": (_AGENTS, "agent list --json: every adapter and its capabilities"),
    "agent": (_AGENT_PROBED, "agent probe --json: one adapter, its program and version"),
    "queue": (_QUEUE, "queue ls --json: the queue in order"),
    "queue-item": (_QUEUE_ITEM, "queue show --json: a task's place in the queue"),
    "queue-check": (_QUEUE_CHECK, "queue check --json: the number of waiting tasks"),
    "queue-import": (_QUEUE_IMPORT, "queue import --json: the imported items"),
    "metrics": (_METRICS, "metrics --json and metrics.json: figures of the home and of every task"),
    "task-metrics": (of_fields(_TASK), "metrics TASK --json: figures of one task"),
    "report": (_REPORT, "report --json"),
    "prune": (_PRUNE, "prune --json: what was removed, or would be"),
    "event-summary": (_EVENT_SUMMARY, "events TASK --summary --json"),
    "diff": (_DIFF, "diff --json: what a task, or one of its stages, changed"),
    "detail": (_DETAIL, "show --detail --json: everything about a task"),
    "timeline": (_TIMELINE, "facts: spans and marks of a task"),
    "log-window": (_LOG_WINDOW, "facts: a part of a task's log"),
    "log-search": (_LOG_SEARCH, "facts: lines of a task's log with a text"),
    "usage-series": (_USAGE_SERIES, "facts: tokens and cost over time"),
    "replay": (_REPLAY, "facts: a task as it was at each moment"),
    "changes": (_CHANGES, "facts: tasks that changed"),
    "apply": (_APPLY, "apply --json: the changes that were applied"),
    "share": (_SHARE, "share --json: the file that was written"),
    "pr": (_PR, "pr --json: what was pushed, and the pull request"),
}
