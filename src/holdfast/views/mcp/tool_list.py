"""What `tools/list` answers: at most 6 KB, because every agent reads it in every session."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _text(about: str = "", **more: Any) -> dict[str, Any]:
    return {"type": "string", **({"description": about} if about else {}), **more}


_STRING: dict[str, Any] = {"type": "string"}
_FLAG: dict[str, Any] = {"type": "boolean"}
_COUNT: dict[str, Any] = {"type": "integer"}
_LIST: dict[str, Any] = {"type": "array", "items": _STRING}
_LABELS: dict[str, Any] = {"type": "object", "additionalProperties": _STRING}
_TASK = _text("Id, or the beginning of it")
_READS = {"readOnlyHint": True, "openWorldHint": False}
_CHOICE: dict[str, Any] = {
    "tasks": {**_LIST, "description": "Ids; default: all"},
    "labels": _LABELS,
    "since": _text("Cursor of the last digest or wait"),
}
_DIGEST: dict[str, Any] = {
    "cursor": _STRING,
    "counts": {"type": "object", "additionalProperties": _COUNT},
    "tasks": {
        "type": "array",
        "items": _object(
            {
                "id": _STRING,
                "state": _STRING,
                "needs": _text("Verb for say"),
                "question": _STRING,
                "reason": _STRING,
            },
            "id",
            "state",
        ),
    },
    "gone": _LIST,
    "left_out": _COUNT,
}
_STATE: dict[str, Any] = {"task_id": _STRING, "state": _STRING}

TOOLS: list[dict[str, Any]] = [
    {
        "name": "start",
        "description": "Start a coding agent with a prompt, a command, or a written packet (pipeline) as a "
        "supervised task in the queue. Returns its id at once.",
        "inputSchema": _object(
            {
                "prompt": _STRING,
                "agent": _text("claude, codex, gemini, …; default: the user's"),
                "command": {**_LIST, "description": "Program and arguments"},
                "packet": _text("Directory with manifest.yaml"),
                "project": _text("Default: the current directory"),
                "worktree": {**_FLAG, "description": "Work in a new git worktree"},
                "split": {**_FLAG, "description": "Split the prompt among agents; merge their work"},
                "labels": {**_LABELS, "description": "To find the task by"},
                "model": _STRING,
                "failover": {**_LIST, "description": "Agents"},
                "permissions": _text("Default: edit", enum=["read", "edit"]),
                "sandbox": _FLAG,
                "accept": {**_LIST, "description": "Commands that must pass on the work"},
                "name": _STRING,
                "id": _STRING,
                "priority": _text("high, medium or low"),
                "after": {**_LIST, "description": "Tasks that complete first"},
                "deadline": _text("For example 2h"),
                "budget_usd": {"type": "number"},
                "max_turns": _COUNT,
            }
        ),
        "outputSchema": _object({**_STATE, "notes": _LIST}, "task_id", "state"),
        "annotations": {"destructiveHint": True, "openWorldHint": True},
    },
    {
        "name": "digest",
        "description": "Tasks by state and what changed since a cursor, at most 4 KB. What is left_out comes "
        "with the next.",
        "inputSchema": _object(_CHOICE),
        "outputSchema": _object(_DIGEST, "cursor", "counts", "tasks"),
        "annotations": _READS,
    },
    {
        "name": "wait",
        "description": "Wait until a task has ended or needs a person, at most 50 s; returns a digest. If "
        "not finished, call it again with the cursor.",
        "inputSchema": _object(
            {
                **_CHOICE,
                "until": _text("Default: any", enum=["any", "all", "change"]),
                "timeout_s": {"type": "number"},
            }
        ),
        "outputSchema": _object(
            {**_DIGEST, "finished": _FLAG, "waited_s": {"type": "number"}}, "cursor", "tasks", "finished"
        ),
        "annotations": _READS,
    },
    {
        "name": "show",
        "description": "Summary, end of the log, diff, gate results or findings of a task.",
        "inputSchema": _object(
            {
                "task": _TASK,
                "what": _text("Default: summary", enum=["summary", "log", "diff", "gate", "findings"]),
                "begin": {**_COUNT, "description": "First byte"},
                "end": {**_COUNT, "description": "Log: what is before this byte"},
                "bytes": {**_COUNT, "description": "Default: 8192"},
            },
            "task",
        ),
        "outputSchema": _object(
            {
                **_STATE,
                "text": _STRING,
                "left_out_bytes": _COUNT,
                "begin": _COUNT,
                "end": _COUNT,
                "size": _COUNT,
            },
            "task_id",
            "state",
            "text",
        ),
        "annotations": _READS,
    },
    {
        "name": "say",
        "description": "Answer a task's question, approve or reject a stage, interrupt or resume it. An "
        "agent may not do this with its own task.",
        "inputSchema": _object(
            {
                "task": _TASK,
                "verb": _text(enum=["answer", "approve", "reject", "interrupt", "resume"]),
                "message": _STRING,
            },
            "task",
            "verb",
        ),
        "outputSchema": _object(_STATE, "task_id", "state"),
        "annotations": {"destructiveHint": True, "openWorldHint": False},
    },
    {
        "name": "stop",
        "description": "Stop a task and everything it started. Returns at once; wait tells its end.",
        "inputSchema": _object(
            {
                "task": _TASK,
                "message": _text("Reason"),
                "now": {**_FLAG, "description": "Kill at once"},
            },
            "task",
        ),
        "outputSchema": _object(_STATE, "task_id", "state"),
        "annotations": {"destructiveHint": True, "idempotentHint": True, "openWorldHint": False},
    },
]
