"""Schemas of what commands print with --json about packets before they run, and agents."""

from __future__ import annotations

from contracts.parts import (
    COUNT,
    FLAG,
    SECONDS,
    TASK_ID,
    TEXT,
    TEXTS,
    Schema,
    of_fields,
    of_record,
    or_null,
)
from holdfast.model.spec import PipelineSpec, StageSpec

#: The fields of the adapter's capabilities are there too.
_AGENT = of_fields({"agent": TEXT, "path": or_null(TEXT)})
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

#: Name → schema and description.
SCHEMAS: dict[str, tuple[Schema, str]] = {
    "new": (_NEW, "new --json: the packet that was written"),
    "pipelines": (_PIPELINES, "pipeline list --json: the available pipelines and values"),
    "pipeline": (_PIPELINE, "pipeline show --json: what a packet resolves to"),
    "pipeline-check": (_PIPELINE_CHECK, "pipeline check --json: every problem"),
    "agents": (_AGENTS, "agent list --json: every adapter and its capabilities"),
    "agent": (_AGENT_PROBED, "agent probe --json: one adapter, its program and version"),
}
