"""Reading `FIELD=VALUE`, `FIELD+=VALUE` and `FIELD-=VALUE` of `retry --set`.

The checks of manifest.yaml apply.
"""

from __future__ import annotations

import re

from holdfast import clock
from holdfast.errors import UsageError
from holdfast.model import amendment
from holdfast.pipeline.define.checker import Checker
from holdfast.pipeline.define.manifest import checked_value
from holdfast.pipeline.define.manifest_fields import FIELDS
from holdfast.pipeline.define.problem import Problem, near
from holdfast.pipeline.define.yaml_file import Node, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from holdfast.model.spec import TaskSpec
    from holdfast.pipeline.define.manifest_fields import Field

_SHAPE = re.compile(r"([A-Za-z_.]+)(\+=|-=|=)(.*)", re.DOTALL)
_LISTS = ("texts", "paths")
#: Names of options of `run`, which take a time with a unit.
_TIMES = {"timeout": "budgets.max_wallclock_sec", "deadline": "budgets.deadline_sec"}
#: Values that mean no limit.
_NONE = ("", "none")
_MAY_BE_NONE = ("budgets.deadline_sec", "budgets.budget_usd", "budgets.budget_tokens", "budgets.max_turns")


def read(spec: TaskSpec, texts: Any) -> tuple[dict[str, Any], ...]:
    """The changes that these texts ask for, each with `field`, `old` and `new`. Raises UsageError."""
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):  # pyright: ignore[reportUnknownVariableType]
        raise UsageError("set must be a list of texts")
    known = amendment.fields(spec)
    old: dict[str, Any] = {}
    new: dict[str, Any] = {}
    for text in texts:  # pyright: ignore[reportUnknownVariableType]
        name, how, value = _with_units(*_parts(str(text)))  # pyright: ignore[reportUnknownArgumentType]
        field = next((each for each in FIELDS if each.path == name), None)
        if name not in known or field is None:
            raise UsageError(
                f"--set {name}: this cannot be changed{_why(field, name, known)}",
                hint=f"these can: {', '.join(sorted([*known, *_TIMES]))}",
            )
        if name not in old:
            old[name] = new[name] = _plain(amendment.value(spec, name))
        new[name] = _changed(field, new[name], how, value)
    changes = ({"field": name, "old": old[name], "new": new[name]} for name in new)
    return tuple(change for change in changes if change["old"] != change["new"])


def _parts(text: str) -> tuple[str, str, str]:
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise UsageError(
            f"--set {text}: not FIELD=VALUE",
            hint="for example --set budgets.max_wallclock_sec=900 --set scope.allow+=docs/",
        )
    return match[1], match[2], match[3]


def _with_units(name: str, how: str, value: str) -> tuple[str, str, str]:
    """`timeout=1m` as `budgets.max_wallclock_sec=60`."""
    if name not in _TIMES or value in _NONE:
        return _TIMES.get(name, name), how, value
    try:
        seconds = clock.parse_duration(value, needs_unit=True)
    except ValueError as error:
        raise UsageError(f"--set {name}{how}{value}: {error}", hint=f"--set {name}=10m") from error
    return _TIMES[name], how, str(int(seconds) if seconds.is_integer() else seconds)


def _why(field: Field | None, name: str, known: Iterable[str]) -> str:
    if field is not None:
        return " for this task"
    return f" ({suggestion})" if (suggestion := near(name, known)) else ""


def _changed(field: Field, old: Any, how: str, value: str) -> Any:
    """The new value of a field."""
    text = f"{field.path}{how}{value}"
    if field.kind not in _LISTS:
        if how != "=":
            raise UsageError(f"--set {text}: {how} is for lists", hint=f"--set {field.path}={value}")
        is_none = value in _NONE and field.path in _MAY_BE_NONE
        return None if is_none else _plain(_checked(field, Node(value=resolve(value), line=0), text))
    item = Node(value=[Node(value=value, line=0)] if value else [], line=0)
    items: list[Any] = _plain(_checked(field, item, text))
    if how == "=":
        return items
    if how == "+=":
        return [*old, *(item for item in items if item not in old)]
    if missing := [item for item in items if item not in old]:
        raise UsageError(
            f"--set {text}: {missing[0]} is not in {field.path}", hint=f"it has: {', '.join(old)}"
        )
    return [item for item in old if item not in items]


def _checked(field: Field, node: Node, text: str) -> Any:
    problems: list[Problem] = []
    value = checked_value(Checker("", problems), field, node, field.path)
    if problems or value is None:
        problem = problems[0] if problems else None
        raise UsageError(
            f"--set {text}: {problem.message if problem is not None else 'not a value of this field'}",
            hint=problem.hint if problem is not None else field.about,
        )
    return value


def _plain(value: Any) -> Any:
    """As in JSON."""
    return list(value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
