"""The failpoints in the source."""

from __future__ import annotations

import ast
import os
from functools import cache
from typing import NamedTuple

import holdfast
from tests.support import sources


class Point(NamedTuple):
    """One call of `failpoint` in the source. `name` is None if the argument is not a literal."""

    name: str | None
    file: str
    line: int


def find() -> list[Point]:
    """Every call of `failpoint` in the package, found by parsing it."""
    root = os.path.dirname(os.path.abspath(holdfast.__file__))
    found: list[Point] = []
    for path, text in sources.below(root):
        found += _calls(text, os.path.relpath(path, root))
    return found


@cache
def names() -> tuple[str, ...]:
    """Each name once, in the order of the source."""
    return tuple(dict.fromkeys(point.name for point in find() if point.name is not None))


def _calls(source: str, file: str) -> list[Point]:
    found: list[Point] = []
    if "failpoint(" not in source:
        return found
    for node in ast.walk(ast.parse(source, file)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "failpoint":
            argument = node.args[0] if node.args else None
            name = argument.value if isinstance(argument, ast.Constant) else None
            found.append(Point(name if isinstance(name, str) else None, file, node.lineno))
    return sorted(found, key=lambda point: point.line)
