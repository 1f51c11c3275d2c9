"""Templates of packets (`holdfast new --template`): saved options of `new`, with variables.

`templates/<name>.yaml` of the project (with trust) goes before that of the user. `{{NAME}}` in a text is
replaced by the value of a variable, in one pass; in a command the value is quoted for the shell.
"""

from __future__ import annotations

import os
import re
from shlex import quote

from holdfast import paths
from holdfast.config import classes, needs
from holdfast.config import project as project_files
from holdfast.errors import InvalidConfig, UnreadableFile, UsageError
from holdfast.model.permissions import PROFILES
from holdfast.model.record import Record
from holdfast.pipeline.define import yaml_file
from holdfast.pipeline.define.checker import Checker, dotted
from holdfast.pipeline.define.intents import INTENTS, WORKSPACES
from holdfast.pipeline.define.problem import Problem, counted, near, sorted_problems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from holdfast.config.needs import Judge
    from holdfast.pipeline.define.yaml_file import Node

_FOLDER = "templates"
_END = ".yaml"
_TEXTS = ("goal", "request", "agent", "profile")
_LISTS = ("allow", "deny", "accept", "criteria")
_NUMBERS = {"paid_call_budget": 10_000, "max_wallclock_sec": 7 * 86_400}
_KEYS = (
    "version", "about", "variables", "intent", "permissions", "workspace", *_TEXTS, *_LISTS, *_NUMBERS
)  # fmt: skip
_VARIABLE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


class Variable(Record):
    """A variable of a template."""

    about: str = ""
    #: None: it must be given.
    default: str | None = None


class PacketTemplate(Record):
    """A template, checked."""

    name: str
    path: str
    about: str
    variables: dict[str, Variable]
    #: The options of `new`, by name; texts with variables.
    values: dict[str, Any]

    def filled(self, given: Mapping[str, str]) -> dict[str, Any]:
        """The options with the values of the variables. Raises UsageError that names all wrong ones."""
        unknown = [name for name in given if name not in self.variables]
        if unknown:
            known = ", ".join(self.variables) or "none"
            hint = f"{near(unknown[0], self.variables)} its variables: {known}".strip()
            raise UsageError(f"the template {self.name} has no variable {', '.join(unknown)}", hint=hint)
        missing = [
            name for name, each in self.variables.items() if name not in given and each.default is None
        ]
        if missing:
            raise UsageError(
                f"the template {self.name} needs {', '.join(missing)}",
                details=tuple(f"{name}: {self.variables[name].about}".rstrip(": ") for name in missing),
                hint=" ".join(f"--var {name}=VALUE" for name in missing),
            )
        values = {name: given.get(name, each.default or "") for name, each in self.variables.items()}
        return {
            key: tuple(_fill(item, values, is_command=key == "accept") for item in value)
            if key in _LISTS
            else _fill(value, values)
            if isinstance(value, str)
            else value
            for key, value in self.values.items()
        }


def _fill(text: str, values: Mapping[str, str], *, is_command: bool = False) -> str:
    def value(match: re.Match[str]) -> str:
        return quote(values[match[1]]) if is_command else values[match[1]]

    return _VARIABLE.sub(value, text)


def load(name: str, project: str, judge: Judge) -> PacketTemplate:
    """The template with this name; of the project only if `judge` allows it.

    Raises UsageError, InvalidConfig with all problems, UnreadableFile.
    """
    if not name or os.sep in name or name.startswith("."):
        raise UsageError(f"{name!r} is not the name of a template", hint=_available(project))
    data = project_files.read(project, _FOLDER, name + _END)
    if data is not None:
        path = os.path.join(paths.project_config_dir(project), _FOLDER, name + _END)
        template = _read(name, path, data)
        if judge(_part(template, data)):
            return template
    path = os.path.join(paths.config_dir(), _FOLDER, name + _END)
    own = project_files.named_file(path)
    if own is not None:
        return _read(name, path, own)
    if data is not None:
        raise UsageError(
            f"the template {name} is the project's, which you do not trust",
            hint=f"'holdfast trust {quote(project)}' shows and allows it; for scripts: --trust-project",
        )
    raise UsageError(f"there is no template {name}", hint=_available(project, name))


def parts(project: str) -> list[needs.Part]:
    """What all templates of a project ask for. One that is invalid asks for nothing, and cannot be used."""
    found: list[needs.Part] = []
    for name in _names(project_files.listing(project, _FOLDER)):
        data = project_files.read(project, _FOLDER, name + _END)
        try:
            template = _read(name, name + _END, data) if data is not None else None
        except InvalidConfig:
            template = None
        if template is not None and data is not None:
            found.append(_part(template, data))
    return found


def _part(template: PacketTemplate, data: bytes) -> needs.Part:
    """A template is a text for agents, with commands: all of it needs trust."""
    # Shown as they would run: a default can be the command itself.
    shown = {name: each.default or f"{{{{{name}}}}}" for name, each in template.variables.items()}
    values = template.filled(shown)
    asked = [
        needs.Need(kind, name, needs.text(values[name]))
        for name, kind in (("accept", classes.COMMANDS), ("permissions", classes.PERMISSIONS))
        if values.get(name)
    ]
    whole = needs.Need(classes.PROMPTS, "template", f"{len(data)} bytes for packets and agents", data)
    return needs.Part(f"{_FOLDER}/{template.name}{_END}", [*asked, whole])


def _available(project: str, name: str = "") -> str:
    """A hint with the names that there are."""
    own = os.path.join(paths.config_dir(), _FOLDER)
    try:
        in_project = project_files.listing(project, _FOLDER)
    except UnreadableFile:
        in_project = []
    mine = os.listdir(own) if os.path.isdir(own) else []
    names = sorted(set(_names([*in_project, *mine])))
    if not names:
        return f"there are none; write {os.path.join(own, (name or 'NAME') + _END)}"
    return f"{near(name, names)} there are {', '.join(names)}".strip()


def _names(listing: list[str]) -> Iterator[str]:
    return (name.removesuffix(_END) for name in listing if name.endswith(_END) and not name.startswith("."))


def _read(name: str, path: str, data: bytes) -> PacketTemplate:
    problems: list[Problem] = []
    node = yaml_file.parse(data, path, problems)
    template = None if node is None else _checked(name, path, node, problems)
    if problems or template is None:
        in_order = sorted_problems(problems)
        raise InvalidConfig(
            f"the template {path} has {counted(in_order)}", details=tuple(str(each) for each in in_order)
        )
    return template


def _checked(name: str, path: str, node: Node, problems: list[Problem]) -> PacketTemplate:
    checker = Checker(path, problems)
    entries = checker.mapping(node, "", _KEYS)
    if "version" not in entries and isinstance(node.value, dict):
        checker.blame(node, "version", "missing", "version: 1")
    values: dict[str, Any] = {}
    for key, inner in entries.items():
        if key == "version":
            checker.whole(inner, key, 1, 1)
        elif key in ("intent", "permissions", "workspace"):
            allowed = {"intent": tuple(INTENTS), "permissions": PROFILES, "workspace": WORKSPACES}[key]
            values[key] = checker.one_of(inner, key, allowed)
        elif key in _TEXTS:
            values[key] = checker.text(inner, key)
        elif key in _LISTS:
            values[key] = checker.items(inner, key, checker.text)
        elif key in _NUMBERS:
            values[key] = checker.whole(inner, key, 1, _NUMBERS[key])
    about = checker.text(entries["about"], "about") if "about" in entries else None
    variables = _variables(checker, entries["variables"]) if "variables" in entries else {}
    for key, value in values.items():
        texts: tuple[Any, ...] = value if key in _LISTS and value is not None else (value,)
        for used in (name for text in texts if isinstance(text, str) for name in _VARIABLE.findall(text)):
            if used not in variables:
                hint = near(used, variables) or "declare it in variables"
                checker.blame(entries[key], key, f"{{{{{used}}}}} is not one of its variables", hint)
    kept = {key: value for key, value in values.items() if value is not None}
    return PacketTemplate(name=name, path=path, about=about or "", variables=variables, values=kept)


def _variables(checker: Checker, node: Node) -> dict[str, Variable]:
    """`NAME: what it is`, or `NAME: {about: …, default: …}`."""
    found: dict[str, Variable] = {}
    for name, inner in checker.mapping(node, "variables").items():
        path = dotted("variables", name)
        if not _VARIABLE.fullmatch(f"{{{{{name}}}}}"):
            checker.blame(inner, path, "a name has letters, digits and '_'")
        elif not isinstance(inner.value, dict):
            found[name] = Variable(about=checker.text(inner, path) or "")
        else:
            entries = checker.mapping(inner, path, ("about", "default"))
            texts = {key: checker.text(each, f"{path}.{key}") for key, each in entries.items()}
            found[name] = Variable(about=texts.get("about") or "", default=texts.get("default"))
    return found
