"""What pages may ask for: requests to tasks, and new tasks for an agent.

There is no command to execute, no terminal, and no way to choose `full` permissions: a page can be asked by a
person alone, but a mistake in it must not give away the machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from holdfast.errors import UsageError
from holdfast.views.web.answers import Json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.views.create.options import TaskOptions

_WITHIN_S = 60.0
_TEXT_CHARS = 32 * 1024


def _stop(body: dict[str, Any]) -> dict[str, Any]:
    args: dict[str, Any] = {"reason": _text(body, "message")} if body.get("message") else {}
    return {**args, "now": True} if body.get("now") is True else args


def _message(body: dict[str, Any]) -> dict[str, Any]:
    return {"message": _text(body, "message")} if body.get("message") else {}


def _reason(body: dict[str, Any]) -> dict[str, Any]:
    return {"reason": _text(body, "message")} if body.get("message") else {}


#: Verb → its arguments, from the body of a request.
VERBS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "stop": _stop,
    "interrupt": _reason,
    "resume": _message,
    "approve": _message,
    "reject": _reason,
}
#: Fields of the form for a new task: text, and switches.
_TEXTS = (
    "prompt",
    "agent",
    "model",
    "project",
    "permissions",
    "name",
    "budget_usd",
    "budget_tokens",
    "deadline_s",
)
_SWITCHES = ("worktree", "sandbox")
_FLAGS = {"budget_usd": "--budget-usd", "budget_tokens": "--budget-tokens", "deadline_s": "--deadline"}


def options(fields: dict[str, Any]) -> TaskOptions:
    """The options of a new task. Raises UsageError for what a page may not choose."""
    from holdfast.views.create.options import TaskOptions

    unknown = set(fields) - {*_TEXTS, *_SWITCHES, "is_queued"}
    if unknown:
        raise UsageError(f"a page cannot choose {', '.join(sorted(unknown))}", hint="use the command line")
    given: dict[str, Any] = {name: _text(fields, name) for name in _TEXTS if fields.get(name)}
    if given.get("permissions") not in (None, "read", "edit"):
        raise UsageError("a page cannot choose these permissions", hint="read or edit; or the command line")
    if not given.get("agent") or given["agent"] == "command":
        raise UsageError("choose an agent", hint="commands are started on the command line")
    if not os.path.isabs(given.get("project", "")):
        raise UsageError("choose a project directory", hint="an absolute path")
    if not given.get("permissions"):
        from holdfast.agents import registry

        # Said here, so that no setting makes it `full`.
        if registry.adapter(given["agent"]).capabilities.permissions:
            given["permissions"] = "edit"
    given.update({name: fields.get(name) is True for name in _SWITCHES})
    return TaskOptions(**given)


def command_line(fields: dict[str, Any]) -> str:
    """The command that does the same."""
    from shlex import quote

    words = ["holdfast", "submit" if fields.get("is_queued") else "run -d"]
    for name in _TEXTS[1:]:
        if fields.get(name):
            words += [_FLAGS.get(name, f"--{name}"), quote(_text(fields, name))]
    words += [f"--{name}" for name in _SWITCHES if fields.get(name) is True]
    return " ".join([*words, quote(_text(fields, "prompt"))])


async def on_task(task_id: str, verb: str, body: dict[str, Any]) -> Json:
    """Send a request to a task."""
    return await _execute({"verb": verb, "task": task_id, "args": VERBS[verb](body)})


async def new_task(body: dict[str, Any]) -> Json:
    """Create a task, or with `check` only say what is wrong with it."""
    fields: Any = body.get("fields")
    if not isinstance(fields, dict):
        raise UsageError("no fields")
    return await _execute({"verb": "new", "fields": fields, "check": body.get("check") is True})


async def _execute(request: dict[str, Any]) -> Json:
    worker = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "holdfast.views.web.worker",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_WITHIN_S):
            output, _ = await worker.communicate(json.dumps(request).encode())
        result: dict[str, Any] = json.loads(output)
    except (TimeoutError, ValueError):
        # It may still work: what it was asked for is in the inbox, or was never written.
        return Json({"error": "no answer in time", "hint": "the task shows whether it was done"}, 504)
    if "error" not in result:
        return Json(result)
    return Json(result, 400 if result["exit_status"] == 2 else 409)


def _text(body: dict[str, Any], name: str) -> str:
    value: Any = body.get(name)
    if not isinstance(value, str) or len(value) > _TEXT_CHARS or "\0" in value:
        raise UsageError(f"{name} is not a text of at most {_TEXT_CHARS} characters")
    return value
