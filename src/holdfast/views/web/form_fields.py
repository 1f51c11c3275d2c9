"""The fields of the form for a new task: those of manifest.yaml that a page may choose. Pure.

Type, choices, limits and description of a field are those of the manifest's schema. A field is never a
command, a variable or a file, and of the permissions `full` is missing.
"""

from __future__ import annotations

from holdfast.model.record import Record
from holdfast.pipeline.define import field_schema
from holdfast.pipeline.define.manifest_fields import FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PROMPT_CHARS = 30_000
#: Not for pages.
_REFUSED = ("full",)


class FormField(Record):
    """One field, and the option of the command line that it becomes."""

    name: str
    title: str
    #: Its path in manifest.yaml; empty for what only the command line has.
    path: str = ""
    #: Of TaskOptions.
    option: str
    flag: str
    #: Whether it is among the few that are shown first.
    is_main: bool = False
    is_required: bool = False
    #: A description for this form, where that of the manifest does not fit.
    about: str = ""
    #: The choice that makes a switch of the command line true.
    switch_on: str = ""
    #: Appended to a number on the command line.
    unit: str = ""


FORM = (
    FormField(
        name="prompt",
        title="What to do",
        path="goal",
        option="prompt",
        flag="",
        is_main=True,
        is_required=True,
        about="The request to the agent.",
    ),
    FormField(
        name="agent",
        title="Agent",
        path="routing.agent",
        option="agent",
        flag="--agent",
        is_main=True,
        is_required=True,
        about="The program that does the work.",
    ),
    FormField(
        name="model",
        title="Model",
        path="routing.model.*",
        option="model",
        flag="--model",
        is_main=True,
        about="A model of this agent. Default: the agent's own choice.",
    ),
    FormField(
        name="project",
        title="Project directory",
        path="project",
        option="project",
        flag="--project",
        is_main=True,
        is_required=True,
        about="Absolute path of the directory where the agent works.",
    ),
    FormField(
        name="permissions",
        title="Permissions",
        path="permissions",
        option="permissions",
        flag="--permissions",
        is_main=True,
        about="read: look only. edit: also change files and run commands in the workspace.",
    ),
    FormField(
        name="name",
        title="Name",
        option="name",
        flag="--name",
        is_main=True,
        about="Name shown in lists. Default: the first words of the request.",
    ),
    FormField(
        name="budget_usd",
        title="Budget in dollars",
        path="budgets.budget_usd",
        option="budget_usd",
        flag="--budget-usd",
        is_main=True,
    ),
    FormField(
        name="workspace",
        title="Workspace",
        path="workspace",
        option="worktree",
        flag="--worktree",
        switch_on="worktree",
        is_main=True,
    ),
    FormField(
        name="sandbox",
        title="Sandbox",
        path="sandbox",
        option="sandbox",
        flag="--sandbox",
        switch_on="on",
        is_main=True,
        about="on: the agent runs in bubblewrap. default and off: as the setting sandbox says.",
    ),
    FormField(name="network", title="Network", path="network", option="network", flag="--network"),
    FormField(
        name="budget_tokens",
        title="Budget in tokens",
        path="budgets.budget_tokens",
        option="budget_tokens",
        flag="--budget-tokens",
    ),
    FormField(
        name="max_turns", title="Turns", path="budgets.max_turns", option="max_turns", flag="--max-turns"
    ),
    FormField(
        name="deadline_sec",
        title="Deadline in seconds",
        path="budgets.deadline_sec",
        option="deadline_s",
        flag="--deadline",
        unit="s",
    ),
    FormField(
        name="max_wallclock_sec",
        title="Seconds per attempt",
        path="budgets.max_wallclock_sec",
        option="timeout_s",
        flag="--timeout",
        unit="s",
    ),
    FormField(
        name="on_limit",
        title="At a limit",
        path="budgets.on_limit",
        option="on_limit",
        flag="--on-limit",
    ),
    FormField(
        name="labels",
        title="Labels",
        path="labels",
        option="label",
        flag="--label",
        about="For filters, for example batch=nightly.",
    ),
)
_OF_MANIFEST = {field.path: field for field in FIELDS}


def schema() -> dict[str, Any]:
    """The JSON Schema of the form."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {field.name: property_of(field) for field in FORM},
        "required": [field.name for field in FORM if field.is_required],
    }


def property_of(field: FormField) -> dict[str, Any]:
    """The schema of one field."""
    known = _OF_MANIFEST.get(field.path)
    if known is None:
        value: dict[str, Any] = {"type": "string", "maxLength": 200}
    else:
        value = {**field_schema.of_value(known), "description": known.about}
    if field.name == "prompt":
        value = {**value, "maxLength": _PROMPT_CHARS}
    if field.about:
        value = {**value, "description": field.about}
    if "enum" in value:
        value["enum"] = [each for each in value["enum"] if each not in _REFUSED]
    return {"title": field.title, **value, "x-main": field.is_main}


def problems(fields: dict[str, Any]) -> dict[str, str]:
    """What is wrong, by field; empty if nothing is."""
    found = {name: "a page cannot choose this" for name in fields if name not in _BY_NAME}
    for field in FORM:
        value = fields.get(field.name)
        if value in (None, "", []):
            if field.is_required:
                found[field.name] = "required"
        elif problem := _problem(property_of(field), value):
            found[field.name] = problem
    return found


_BY_NAME = {field.name: field for field in FORM}


def _problem(rule: dict[str, Any], value: Any) -> str:
    if "enum" in rule:
        return "" if value in rule["enum"] else f"must be one of: {', '.join(rule['enum'])}"
    match rule["type"]:
        case "integer" | "number":
            return _number_problem(rule, value)
        case "array":
            is_list = _is_list(value) and all(map(_is_text, value))
            return "" if is_list and len(value) <= rule["maxItems"] else "must be a list of texts"
        case _:
            if not _is_text(value):
                return "must be text"
            return (
                "" if len(value) <= rule["maxLength"] else f"must have at most {rule['maxLength']} characters"
            )


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != "" and "\0" not in value


def _number_problem(rule: dict[str, Any], value: Any) -> str:
    text = str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
    is_whole = rule["type"] == "integer"
    try:
        number = int(text) if is_whole else float(text)
    except ValueError:
        return f"must be a {'whole ' if is_whole else ''}number"
    least = rule.get("minimum", 0)
    if not (number > 0 if "exclusiveMinimum" in rule else number >= least) or not number <= rule["maximum"]:
        if number > rule["maximum"]:
            return f"must be at most {rule['maximum']}"
        return f"must be at least {least}" if least else "must be more than 0"
    return ""
