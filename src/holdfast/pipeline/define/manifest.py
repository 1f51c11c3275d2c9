"""Checking manifest.yaml. All problems are collected; valid values are kept for further checks."""

from __future__ import annotations

from holdfast.model.record import Record
from holdfast.pipeline.define.checker import Checker, described, dotted
from holdfast.pipeline.define.manifest_fields import FIELDS, Field, tree
from holdfast.pipeline.define.problem import Problem, listed, unknown_hint
from holdfast.pipeline.define.yaml_file import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any


class Manifest(Record):
    """The values of a manifest by path. Fields that were left out have their default, or None."""

    file: str
    values: dict[str, Any]
    #: Path → line of every value in the file.
    lines: dict[str, int]

    def get(self, path: str) -> Any:
        """The value of a field."""
        return self.values.get(path)

    def below(self, path: str) -> dict[str, Any]:
        """The values of `path.*` by key."""
        start = path + "."
        return {
            name.removeprefix(start): value for name, value in self.values.items() if name.startswith(start)
        }

    def problem(self, path: str, message: str, hint: str = "") -> Problem:
        """A problem with one value."""
        line = self.lines.get(path) or self.lines.get(path.partition("[")[0], 0)
        return Problem(file=self.file, line=line, path=path, message=message, hint=hint)

    def unknown(self, path: str, what: str, name: str, known: Iterable[str], *, where: str = "") -> Problem:
        """A problem with an unknown name of a flag, an agent, …"""
        return self.problem(path, f"unknown {what} {name[:60]!r}{where}", unknown_hint(name, known))


def check(node: Node, file: str, problems: list[Problem]) -> Manifest:
    """The manifest in `node`. If there are problems, it is incomplete, but can be checked further."""
    checker = Checker(file, problems)
    values: dict[str, Any] = {
        field.path: field.default for field in FIELDS if field.default is not None and "*" not in field.path
    }
    written: dict[str, Node] = {}
    if not isinstance(node.value, dict):
        message = f"a manifest must be a map, not {described(node)}"
        checker.blame(node, "", message, "'holdfast new' creates one")
        return Manifest(file=file, values=values, lines={})
    for path, inner, field in _walk(checker, node, "", known=tree(), written=written):
        value = checked_value(checker, field, inner, path)
        if value is not None:
            values[path] = value
    for field in FIELDS:
        head = field.path.rpartition(".")[0]
        # A value that should be a map but is not was reported above.
        is_reported = head in written and not isinstance(written[head].value, dict)
        if field.required and field.path not in written and not is_reported:
            hint = listed(field.choices) if field.choices else field.about
            checker.blame(written.get(head, node), field.path, "missing", hint)
    lines = {path: inner.line for path, inner in written.items()}
    return Manifest(file=file, values=values, lines=lines)


def _walk(
    checker: Checker, node: Node, path: str, *, known: dict[str, object], written: dict[str, Node]
) -> Iterator[tuple[str, Node, Field]]:
    """Every value of a known field; unknown keys are reported."""
    entries = checker.mapping(node, path, None if "*" in known else known)
    for key, inner in entries.items():
        inner_path = dotted(path, key)
        written[inner_path] = inner
        below = known.get(key, known.get("*"))
        if isinstance(below, Field):
            yield inner_path, inner, below
        else:
            yield from _walk(checker, inner, inner_path, known=below, written=written)  # pyright: ignore[reportArgumentType]


def checked_value(checker: Checker, field: Field, node: Node, path: str) -> Any:
    """The value of one field; None if it is not valid, which the checker has noted."""
    match field.kind:
        case "id":
            return checker.task_id(node, path)
        case "choice":
            return checker.one_of(node, path, field.choices)
        case "whole":
            return checker.whole(node, path, field.least, field.most)
        case "number":
            return checker.number(node, path, field.most)
        case "flag":
            return checker.boolean(node, path)
        case "texts":
            return checker.items(node, path, checker.text)
        case "paths":
            return checker.items(node, path, checker.inner_path)
        case "patterns":
            return checker.items(node, path, checker.pattern)
        case "stages" | "agents":
            return _distinct(checker, node, path)
        case "variables":
            return checker.items(node, path, checker.variable)
        case "labels":
            return checker.items(node, path, checker.task_label)
        case "options":
            return checker.scalars(node, path)
        case _:
            return checker.text(node, path)


def _distinct(checker: Checker, node: Node, path: str) -> tuple[str, ...] | None:
    items = checker.items(node, path, checker.text)
    if items is not None and len(set(items)) < len(items):
        duplicate = next(item for item in items if items.count(item) > 1)
        checker.blame(node, path, f"duplicate {duplicate!r}")
    return items
