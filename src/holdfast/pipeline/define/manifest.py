"""manifest.yaml as a person wrote it → a checked value. Every problem is noted; what is sound is kept for further checks."""

from __future__ import annotations

from holdfast.model.record import Record
from holdfast.pipeline.define.checker import Checker, dotted, words
from holdfast.pipeline.define.manifest_fields import FIELDS, Field, tree
from holdfast.pipeline.define.problem import Problem, join_hints, listed, near
from holdfast.pipeline.define.yaml_file import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any


class Manifest(Record):
    """What a packet asks for, by the paths of its fields. Fields that were left out have their defaults, or None."""

    file: str
    values: dict[str, Any]
    #: Path → line, of everything that was written.
    lines: dict[str, int]

    def get(self, path: str) -> Any:
        """The value of a field."""
        return self.values.get(path)

    def below(self, path: str) -> dict[str, Any]:
        """The values of `path.*`, by key."""
        start = path + "."
        return {
            name.removeprefix(start): value for name, value in self.values.items() if name.startswith(start)
        }

    def problem(self, path: str, message: str, hint: str = "") -> Problem:
        """A problem with one of its values."""
        line = self.lines.get(path) or self.lines.get(path.partition("[")[0], 0)
        return Problem(file=self.file, line=line, path=path, message=message, hint=hint)

    def unknown(self, path: str, what: str, name: str, known: Iterable[str]) -> Problem:
        """A name that nobody has."""
        names = list(known)
        hint = join_hints(near(name, names), listed(names))
        return self.problem(path, f"there is no {what} {name[:60]!r}", hint)


def check(node: Node, file: str, problems: list[Problem]) -> Manifest:
    """The manifest in `node`. With problems it is incomplete, and good for more checks only."""
    checker = Checker(file, problems)
    values: dict[str, Any] = {
        field.path: field.default for field in FIELDS if field.default is not None and "*" not in field.path
    }
    written: dict[str, Node] = {}
    if not isinstance(node.value, dict):
        hint = "'holdfast new' writes one to begin with"
        checker.blame(node, "", f"a manifest is a map of keys, not {words(node)}", hint)
        return Manifest(file=file, values=values, lines={})
    for path, inner, field in _walk(checker, node, "", known=tree(), written=written):
        value = _value(checker, field, inner, path)
        if value is not None:
            values[path] = value
    for field in FIELDS:
        head = field.path.rpartition(".")[0]
        # What should be a map and is none was blamed already.
        is_told = head in written and not isinstance(written[head].value, dict)
        if field.required and field.path not in written and not is_told:
            hint = listed(field.choices) if field.choices else field.about
            checker.blame(written.get(head, node), field.path, "it is required", hint)
    lines = {path: inner.line for path, inner in written.items()}
    return Manifest(file=file, values=values, lines=lines)


def _walk(
    checker: Checker, node: Node, path: str, *, known: dict[str, object], written: dict[str, Node]
) -> Iterator[tuple[str, Node, Field]]:
    """Every value that the table knows, with its field; keys that it does not know are blamed."""
    entries = checker.mapping(node, path, None if "*" in known else known)
    for key, inner in entries.items():
        place = dotted(path, key)
        written[place] = inner
        below = known.get(key, known.get("*"))
        if isinstance(below, Field):
            yield place, inner, below
        else:
            yield from _walk(checker, inner, place, known=below, written=written)  # pyright: ignore[reportArgumentType]


def _value(checker: Checker, field: Field, node: Node, path: str) -> Any:
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
        case "options":
            return checker.scalars(node, path)
        case _:
            return checker.text(node, path)


def _distinct(checker: Checker, node: Node, path: str) -> tuple[str, ...] | None:
    found = checker.items(node, path, checker.text)
    if found is not None and len(set(found)) < len(found):
        twice = next(item for item in found if found.count(item) > 1)
        checker.blame(node, path, f"{twice!r} is here twice")
    return found
