"""Checks of single values: each gives the value, or None and a problem. Nothing is guessed, and nothing stops at the first."""

from __future__ import annotations

import math
import re

from holdfast import ids, patterns
from holdfast.errors import InvalidId
from holdfast.pipeline.define.problem import Problem, join_hints, listed, near
from holdfast.pipeline.define.yaml_file import Node
from holdfast.pipeline.prompt import forbidden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    T = TypeVar("T")

MOST_TEXT = 10_000
MOST_ITEMS = 1_000
_MOST_PATTERN = 1_000


class Checker:
    """The checks for one file; it gathers the problems."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file = file
        self.problems = problems

    def blame(self, node: Node | None, path: str, message: str, hint: str = "") -> None:
        """Note a problem."""
        line = node.line if node is not None else 0
        self.problems.append(Problem(file=self.file, line=line, path=path, message=message, hint=hint))

    def mapping(self, node: Node, path: str, known: Iterable[str] | None = None) -> dict[str, Node]:
        """The entries of a map; a key that is not known is a problem. `known` None: any key."""
        if not isinstance(node.value, dict):
            self.blame(node, path, f"it is a map of keys, not {words(node)}")
            return {}
        if known is None:
            return node.value
        allowed = list(known)
        found: dict[str, Node] = {}
        for key, inner in node.value.items():
            if key in allowed:
                found[key] = inner
            else:
                hint = join_hints(near(key, allowed), listed(allowed))
                self.blame(inner, dotted(path, key), "there is no such key", hint)
        return found

    def text(self, node: Node, path: str) -> str | None:
        """A text that says something."""
        value = node.value
        if not isinstance(value, str):
            hint = "put it in quotes" if isinstance(value, (int, float)) else ""
            self.blame(node, path, f"it is a text, not {words(node)}", hint)
        elif not value.strip():
            self.blame(node, path, "it is empty")
        elif len(value) > MOST_TEXT:
            self.blame(node, path, f"it is longer than {MOST_TEXT} characters")
        elif "\0" in value:
            self.blame(node, path, "it has a NUL in it")
        else:
            return value
        return None

    def one_of(self, node: Node, path: str, allowed: Iterable[str]) -> str | None:
        """One of a few words."""
        choices = list(allowed)
        value = node.value
        if isinstance(value, str) and value in choices:
            return value
        hint = near(value, choices) if isinstance(value, str) else ""
        self.blame(node, path, f"{words(node)} is not a value of it", join_hints(hint, listed(choices)))
        return None

    def whole(self, node: Node, path: str, least: int, most: int) -> int | None:
        """A whole number; true is none."""
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.blame(node, path, f"it is a whole number from {least} to {most}, not {words(node)}")
        return None

    def number(self, node: Node, path: str, most: float) -> float | None:
        """More than nothing, and finite."""
        value = node.value
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            value = math.nan
        if 0 < value <= most:
            return float(value)
        self.blame(node, path, f"it is a number above 0, at most {most:g}, not {words(node)}")
        return None

    def boolean(self, node: Node, path: str) -> bool | None:
        """true or false; `no` and 0 are not."""
        if isinstance(node.value, bool):
            return node.value
        self.blame(node, path, f"it is true or false, not {words(node)}")
        return None

    def items(self, node: Node, path: str, each: Callable[[Node, str], T | None]) -> tuple[T, ...] | None:
        """A list, every item of it checked."""
        if not isinstance(node.value, list):
            self.blame(node, path, f"it is a list, not {words(node)}", "write [] for an empty one")
            return None
        if len(node.value) > MOST_ITEMS:
            self.blame(node, path, f"it has more than {MOST_ITEMS} items")
            return None
        found = [each(item, f"{path}[{at}]") for at, item in enumerate(node.value)]
        return tuple(item for item in found if item is not None)

    def inner_path(self, node: Node, path: str) -> str | None:
        """A path or a pattern inside the project, as in .gitignore."""
        value = self.text(node, path)
        if value is None:
            return None
        hint = "paths are relative to the project: src/, docs/*.md; ./x is x at its top only"
        if value.startswith(("/", "~", "\\")) or re.match(r"[A-Za-z]:[\\/]", value):
            self.blame(node, path, f"{shown(value)} is absolute", hint)
        elif ".." in re.split(r"[\\/]", value):
            self.blame(node, path, f"{shown(value)} leaves the project", hint)
        elif value.startswith("!"):
            self.blame(node, path, f"{shown(value)} begins with '!'", "what is excluded goes into scope.deny")
        elif not value.isprintable():
            self.blame(node, path, f"{shown(value)} has a control character in it")
        elif (why := forbidden.check(value)) is not None:
            self.blame(node, path, f"{shown(value)} is no pattern: {why[:200]}", hint)
        else:
            return value
        return None

    def pattern(self, node: Node, path: str) -> str | None:
        """A regular expression that compiles, asks for something, and ends in time."""
        value = self.text(node, path)
        if value is None:
            return None
        if len(value) > _MOST_PATTERN:
            self.blame(node, path, f"it is longer than {_MOST_PATTERN} characters")
            return None
        why = patterns.objection(value)
        if why is not None:
            self.blame(node, path, why[:_MOST_PATTERN], "in YAML, use 'single quotes'")
            return None
        return value

    def task_id(self, node: Node, path: str) -> str | None:
        """An id that a task can have."""
        value = self.text(node, path)
        try:
            return None if value is None else ids.check_task_id(value)
        except InvalidId as error:
            self.blame(node, path, f"{shown(value or '')} is no task id", error.hint)
            return None

    def variable(self, node: Node, path: str) -> str | None:
        """The name of an environment variable."""
        value = self.text(node, path)
        if value is None or (value.isascii() and value.isidentifier()):
            return value
        self.blame(node, path, f"{shown(value)} is not the name of a variable")
        return None

    def scalars(self, node: Node, path: str) -> dict[str, Any]:
        """Options of an adapter: words, numbers, true or false, and lists of words."""
        found: dict[str, Any] = {}
        for key, inner in self.mapping(node, path).items():
            value = inner.value
            if isinstance(value, list) and all(isinstance(item.value, str) for item in value):
                found[key] = [item.value for item in value]
            elif isinstance(value, float) and not math.isfinite(value):
                self.blame(inner, dotted(path, key), f"{words(inner)} is no number to use")
            elif value is None or isinstance(value, (list, dict)):
                self.blame(
                    inner, dotted(path, key), f"it is a text, a number, true or false, not {words(inner)}"
                )
            else:
                found[key] = value
        return found


def dotted(path: str, key: str) -> str:
    """The path of a key below another."""
    return f"{path}.{shown_key(key)}" if path else shown_key(key)


def shown_key(key: str) -> str:
    """A key as a message shows it: one line, not too long."""
    return "".join(char if char.isprintable() else "?" for char in key[:60])


def shown(value: str) -> str:
    """A text as a message shows it."""
    return repr(value if len(value) <= 60 else value[:57] + "…")


def words(node: Node) -> str:
    """What a value is, for a message."""
    value = node.value
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a map"
    return (
        shown(value)
        if isinstance(value, str)
        else f"{value:.12g}"
        if isinstance(value, float)
        else f"{value}"
    )
