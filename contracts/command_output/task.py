"""Schemas of what commands print with --json about one task."""

from __future__ import annotations

from contracts.command_output.lists import TOOLS, USAGE
from contracts.packet_files import MANIFEST
from contracts.parts import (
    AT,
    COUNT,
    FLAG,
    OBJECT,
    POSITIVE,
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
from holdfast.packet.fan_out import ItemFacts
from holdfast.views.facts import detail_records
from holdfast.views.facts.diff import Diff
from holdfast.views.facts.packet_files import PacketFile

_SHARE = of_fields(
    {
        "task_id": {"type": "string", "pattern": TASK_ID},
        "path": TEXT,
        "bytes": COUNT,
        "left_out": {**TEXTS, "description": "what the file does not have, in words"},
    }
)
_EVENT_SUMMARY = of_fields(
    {
        **each(TEXT, "task_id", "status"),
        "agent": or_null(TEXT),
        "usage": or_null(USAGE),
        "active_s": or_null(POSITIVE),
        **each(or_null(AT), "first_at", "last_at"),
        "span_s": POSITIVE,
        "events": OBJECT,
        **each(COUNT, "moves", "runs", "retries", "interrupts", "messages", "errors"),
        "turns": or_null(COUNT),
        "attempts": list_with("attempt", "attempt_id", "stage", "agent", "outcome", "lived_s", "tool_calls"),
        "stages_done": TEXTS,
        "tool_usage": TOOLS,
    },
    optional=("runs",),
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
        "unreadable": {**TEXTS, "description": "directories that cannot be read: not applied"},
        "squashed": FLAG,
        "was_there": {"type": "boolean", "description": "it was there, and the task did not show it"},
    },
    optional=("left_out", "submodules", "squashed", "was_there", "unreadable"),
)
_PR = of_fields(
    {
        **each(TEXT, "task_id", "branch", "commit", "remote", "url"),
        "repository": {"type": "string", "description": "owner/name, or host/owner/name; empty if unknown"},
        "was_there": {"type": "boolean", "description": "the remote had the branch before"},
        **each(TEXTS, "paths", "left_out"),
        "unreadable": {**TEXTS, "description": "directories that cannot be read: not pushed"},
        "pull_request": or_null(TEXT),
        "is_new": FLAG,
        "checks": list_with("name", "bucket"),
    },
    optional=("left_out", "unreadable", "checks"),
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
        "attempts": {"type": "array", "items": of_record(history.ExecutionEntry)},
        "gates": {"type": "array", "items": of_record(history.GateEntry)},
        "items": {"type": "array", "items": of_record(ItemFacts)},
        "budgets": {"type": "array", "items": of_record(detail_records.Budget)},
        "interrupts": {"type": "array", "items": of_record(history.InterruptEntry)},
        "question": or_null(of_record(history.InterruptEntry)),
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
                    "kind": {"enum": ["attempt", "chore", "takeover", "wait", "interrupt", "queue"]},
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
                            "question",
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
                    "answered_s": {
                        **or_null(POSITIVE),
                        "description": "of a question: until a person decided",
                    },
                },
                optional=(
                    "after_s",
                    "healed_s",
                    "noticed_s",
                    "silent_s",
                    "took_s",
                    "gap_s",
                    "until",
                    "answered_s",
                ),
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
                    "session": {**COUNT, "description": "the first attempt of its session"},
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
    "summary": (_SUMMARY, "show --summary --json: the summary of a task"),
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
