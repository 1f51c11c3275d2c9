"""The form for a new task: what it offers, what a page may choose, and the command that does the same."""

from __future__ import annotations

import os
from shlex import quote

from holdfast.errors import UsageError
from holdfast.views.create.options import TaskOptions
from holdfast.views.facts import task_list
from holdfast.views.web.body import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Home

#: Fields of the form: text, and switches.
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


def form(home: Home) -> dict[str, Any]:
    """What the form offers."""
    from holdfast.agents import program, registry

    path = os.environ.get("PATH", os.defpath)
    agents: list[dict[str, Any]] = []
    for name in registry.BUILT_IN:
        able = registry.adapter(name).capabilities
        if able.program:
            agents.append(
                {
                    "name": name,
                    "is_installed": program.which(able.program, path) is not None,
                    "has_permissions": bool(able.permissions),
                }
            )
    projects = {row.get("project_dir") for row in task_list.tasks(home, everything=True, state=None)[:200]}
    return {"agents": agents, "projects": sorted(each for each in projects if each)}


def create(body: dict[str, Any]) -> dict[str, Any]:
    """Create a task; with `check`, only say what is wrong with it. Raises UsageError, …"""
    from holdfast.views.create import from_options, start

    fields: Any = body.get("fields")
    if not isinstance(fields, dict):
        raise UsageError("no fields")
    notes: list[str] = []
    options, command = options_of(fields), command_line(fields)  # pyright: ignore[reportUnknownArgumentType]
    if body.get("check") is True:
        from_options.read(options.values(), talk=notes.append)
        return {"notes": notes, "command": command}
    begin = start.submit if fields.get("is_queued") else start.run  # pyright: ignore
    packet = begin(options, talk=notes.append)
    return {"notes": notes, "command": command, "task_id": packet.task_id}


def options_of(fields: dict[str, Any]) -> TaskOptions:
    """The options of a new task. Raises UsageError for what a page may not choose."""
    unknown = set(fields) - {*_TEXTS, *_SWITCHES, "is_queued"}
    if unknown:
        raise UsageError(f"a page cannot choose {', '.join(sorted(unknown))}", hint="use the command line")
    given: dict[str, Any] = {name: text(fields, name) for name in _TEXTS if fields.get(name)}
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
    words = ["holdfast", "submit" if fields.get("is_queued") else "run -d"]
    for name in _TEXTS[1:]:
        if fields.get(name):
            words += [_FLAGS.get(name, f"--{name}"), quote(text(fields, name))]
    words += [f"--{name}" for name in _SWITCHES if fields.get(name) is True]
    return " ".join([*words, quote(text(fields, "prompt"))])
