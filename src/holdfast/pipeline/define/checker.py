"""Checks of single values. Each returns the value, or None after adding a problem."""

from __future__ import annotations

import math
import re

from holdfast import ids, patterns
from holdfast.errors import InvalidId
from holdfast.model import labels
from holdfast.pipeline.define.problem import Problem, join_hints, listed, near, unknown_hint
from holdfast.pipeline.define.yaml_file import Node
from holdfast.pipeline.prompt import forbidden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    T = TypeVar("T")

MAX_TEXT = 10_000
MAX_ITEMS = 1_000
_MAX_PATTERN = 1_000


class Checker:
    """Checks the values of one file and collects the problems."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file = file
        self.problems = problems

    def blame(self, node: Node | None, path: str, message: str, hint: str = "") -> None:
        """Add a problem."""
        line = node.line if node is not None else 0
        self.problems.append(Problem(file=self.file, line=line, path=path, message=message, hint=hint))

    def mapping(self, node: Node, path: str, known: Iterable[str] | None = None) -> dict[str, Node]:
        """The entries of a map with known keys. `known` None: any key is allowed."""
        if not isinstance(node.value, dict):
            self.blame(node, path, f"must be a map, not {described(node)}")
            return {}
        if known is None:
            return node.value
        allowed = list(known)
        entries: dict[str, Node] = {}
        for key, inner in node.value.items():
            if key in allowed:
                entries[key] = inner
            else:
                self.blame(inner, dotted(path, key), "unknown key", unknown_hint(key, allowed))
        return entries

    def text(self, node: Node, path: str) -> str | None:
        """A string that is not blank."""
        value = node.value
        if not isinstance(value, str):
            hint = "put it in quotes" if isinstance(value, (int, float)) else ""
            self.blame(node, path, f"must be a string, not {described(node)}", hint)
        elif not value.strip():
            self.blame(node, path, "must not be empty")
        elif len(value) > MAX_TEXT:
            self.blame(node, path, f"longer than {MAX_TEXT} characters")
        elif "\0" in value:
            self.blame(node, path, "must not contain a NUL character")
        else:
            return value
        return None

    def one_of(self, node: Node, path: str, allowed: Iterable[str]) -> str | None:
        """One of a set of strings."""
        choices = list(allowed)
        value = node.value
        if isinstance(value, str) and value in choices:
            return value
        hint = near(value, choices) if isinstance(value, str) else ""
        self.blame(node, path, f"{described(node)} is not allowed", join_hints(hint, listed(choices)))
        return None

    def whole(self, node: Node, path: str, least: int, most: int) -> int | None:
        """An integer, not a boolean."""
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.blame(node, path, f"must be an integer from {least} to {most}, not {described(node)}")
        return None

    def number(self, node: Node, path: str, most: float) -> float | None:
        """A positive, finite number."""
        value = node.value
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            value = math.nan
        if 0 < value <= most:
            return float(value)
        self.blame(node, path, f"must be a number above 0, at most {most:g}, not {described(node)}")
        return None

    def boolean(self, node: Node, path: str) -> bool | None:
        """true or false; not `no` or 0."""
        if isinstance(node.value, bool):
            return node.value
        self.blame(node, path, f"must be true or false, not {described(node)}")
        return None

    def items(self, node: Node, path: str, check: Callable[[Node, str], T | None]) -> tuple[T, ...] | None:
        """A list whose items pass a check."""
        if not isinstance(node.value, list):
            self.blame(node, path, f"must be a list, not {described(node)}", "write [] for an empty list")
            return None
        if len(node.value) > MAX_ITEMS:
            self.blame(node, path, f"more than {MAX_ITEMS} items")
            return None
        checked = [check(item, f"{path}[{at}]") for at, item in enumerate(node.value)]
        return tuple(item for item in checked if item is not None)

    def inner_path(self, node: Node, path: str) -> str | None:
        """A path or pattern inside the project, as in .gitignore."""
        value = self.text(node, path)
        if value is None:
            return None
        hint = "paths are relative to the project: src/, docs/*.md; ./x is x at its top only"
        if value.startswith(("/", "~", "\\")) or re.match(r"[A-Za-z]:[\\/]", value):
            self.blame(node, path, f"{shown(value)} is absolute", hint)
        elif ".." in re.split(r"[\\/]", value):
            self.blame(node, path, f"{shown(value)} leaves the project", hint)
        elif value.startswith("!"):
            self.blame(node, path, f"{shown(value)} begins with '!'", "put exclusions into scope.deny")
        elif not value.isprintable():
            self.blame(node, path, f"{shown(value)} contains a control character")
        elif (why := forbidden.check(value)) is not None:
            self.blame(node, path, f"{shown(value)} is not a valid pattern: {why[:200]}", hint)
        else:
            return value
        return None

    def pattern(self, node: Node, path: str) -> str | None:
        """A regular expression that can be used for redaction."""
        value = self.text(node, path)
        if value is None:
            return None
        if len(value) > _MAX_PATTERN:
            self.blame(node, path, f"longer than {_MAX_PATTERN} characters")
            return None
        why = patterns.objection(value)
        if why is not None:
            self.blame(node, path, why[:_MAX_PATTERN], "in YAML, use 'single quotes'")
            return None
        return value

    def task_id(self, node: Node, path: str) -> str | None:
        """A valid task id."""
        value = self.text(node, path)
        try:
            return None if value is None else ids.check_task_id(value)
        except InvalidId as error:
            self.blame(node, path, f"{shown(value or '')} is not a valid task id", error.hint)
            return None

    def variable(self, node: Node, path: str) -> str | None:
        """The name of an environment variable."""
        value = self.text(node, path)
        if value is None or (value.isascii() and value.isidentifier()):
            return value
        self.blame(node, path, f"{shown(value)} is not a valid variable name")
        return None

    def task_label(self, node: Node, path: str) -> str | None:
        """A label, as `--label` takes it."""
        value = self.text(node, path)
        try:
            labels.parse(() if value is None else (value,))
        except ValueError as error:
            self.blame(node, path, str(error), "for example team=web")
            return None
        return value

    def scalars(self, node: Node, path: str) -> dict[str, Any]:
        """Options of an adapter: strings, numbers, booleans and lists of strings."""
        options: dict[str, Any] = {}
        for key, inner in self.mapping(node, path).items():
            value = inner.value
            if isinstance(value, list) and all(isinstance(item.value, str) for item in value):
                options[key] = [item.value for item in value]
            elif isinstance(value, float) and not math.isfinite(value):
                self.blame(inner, dotted(path, key), f"must be finite, not {described(inner)}")
            elif value is None or isinstance(value, (list, dict)):
                message = f"must be a string, a number, true or false, not {described(inner)}"
                self.blame(inner, dotted(path, key), message)
            else:
                options[key] = value
        return options


def dotted(path: str, key: str) -> str:
    """The path of a key below another path."""
    return f"{path}.{shown_key(key)}" if path else shown_key(key)


def shown_key(key: str) -> str:
    """A key for a message: printable, at most 60 characters."""
    return "".join(char if char.isprintable() else "?" for char in key[:60])


def shown(value: str) -> str:
    """A string for a message: quoted, at most 60 characters."""
    return repr(value if len(value) <= 60 else value[:57] + "…")


def described(node: Node) -> str:
    """What a value is, for a message."""
    value = node.value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, str):
        return shown(value)
    return f"{value:.12g}" if isinstance(value, float) else f"{value}"
