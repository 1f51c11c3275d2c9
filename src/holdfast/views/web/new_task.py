"""The form for a new task: what it offers, the check of its fields, and the command that does the same."""

from __future__ import annotations

import os
from shlex import quote

from holdfast.errors import HoldfastError, UsageError
from holdfast.views.create.options import TaskOptions
from holdfast.views.facts import task_list
from holdfast.views.web import form_fields
from holdfast.views.web.form_fields import FORM, FormField

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Home


class BadFields(UsageError):
    """Fields of the form that do not fit its schema, with what is wrong with each."""

    def __init__(self, problems: dict[str, str]) -> None:
        told = "; ".join(f"{name}: {problem}" for name, problem in problems.items())
        super().__init__(told, hint="the command line has more options")
        self.problems = problems


def form(home: Home) -> dict[str, Any]:
    """What the form offers: its schema, the agents, and the projects of earlier tasks."""
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
    return {
        "schema": form_fields.schema(),
        "agents": agents,
        "projects": sorted(each for each in projects if each),
    }


def create(body: dict[str, Any]) -> dict[str, Any]:
    """Create a task. With `check`, only say what is wrong with it: nothing is written. Raises BadFields,
    UsageError, …"""
    from holdfast.views.create import from_options, start

    fields: Any = body.get("fields")
    if not isinstance(fields, dict):
        raise UsageError("no fields")
    is_queued = body.get("is_queued") is True
    notes: list[str] = []
    options = options_of(fields)  # pyright: ignore[reportUnknownArgumentType]
    command = command_line(options, is_queued=is_queued)
    if body.get("check") is True:
        # The same checks as those of `run`.
        from_options.read(options.values(), verb="submit" if is_queued else "run", talk=notes.append)
        return {"notes": notes, "command": command}
    packet = (start.submit if is_queued else start.run)(options, talk=notes.append)
    return {"notes": notes, "command": command, "task_id": packet.task_id}


def options_of(fields: dict[str, Any]) -> TaskOptions:
    """The options of a new task. Raises BadFields for what a page may not choose."""
    from holdfast.agents import registry

    problems = form_fields.problems(fields)
    if "project" not in problems and not os.path.isabs(fields["project"]):
        problems["project"] = "must be an absolute path"
    has_permissions = False
    if "agent" not in problems:
        try:
            able = registry.adapter(fields["agent"]).capabilities
            has_permissions = bool(able.permissions)
            if not able.program:
                problems["agent"] = "commands are started on the command line"
        except HoldfastError as error:
            problems["agent"] = str(error)
    if problems:
        raise BadFields(problems)
    given: dict[str, Any] = {}
    for field in FORM:
        value = fields.get(field.name)
        if value not in (None, "", []):
            given[field.option] = _option(field, value)
    if has_permissions:
        # Said here, so that no setting makes it `full`.
        given.setdefault("permissions", "edit")
    return TaskOptions(**given)


def _option(field: FormField, value: Any) -> Any:
    if field.switch_on:
        return value == field.switch_on
    return tuple(value) if isinstance(value, list) else f"{value}{field.unit}"  # pyright: ignore


def command_line(options: TaskOptions, *, is_queued: bool) -> str:
    """The command that creates the same task."""
    words = ["holdfast", *(["submit"] if is_queued else ["run", "-d"])]
    values = options.values()
    for field in FORM:
        value: Any = values[field.option]
        if not field.flag or not value:
            continue
        if field.switch_on:
            words.append(field.flag)
        else:
            words += [_word(field.flag, each) for each in (value if isinstance(value, list) else [value])]  # pyright: ignore
    prompt = options.prompt or ""
    if prompt.startswith("-"):  # it would be taken for an option
        return f"printf %s {quote(prompt)} | {' '.join(words)} --file -"
    return " ".join([*words, quote(prompt)])


def _word(flag: str, value: str) -> str:
    return f"{flag}={quote(value)}" if value.startswith("-") else f"{flag} {quote(value)}"
