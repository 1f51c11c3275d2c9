"""The planner decides from values alone. The import contract `planner` covers what it imports of holdfast."""

from __future__ import annotations

import ast
import os

import pytest

from holdfast.runner import plan

FOLDER = os.path.dirname(plan.__file__)
MODULES = sorted(name for name in os.listdir(FOLDER) if name.endswith(".py"))
#: Of the standard library; nothing of it reads a file, a clock or a process.
LIBRARY = {"__future__", "collections.abc", "enum", "typing"}
#: Of holdfast.clock: what converts times. `now`, `mono`, `iso_now` and `sleep` look at a clock.
CLOCK = {"iso", "parse_iso", "parse_duration", "duration_text"}
WORLD = {"open", "print", "input", "exec", "eval", "__import__"}


def parsed(name: str) -> ast.Module:
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return ast.parse(file.read())


def imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_the_planner_touches_nothing_outside(name: str) -> None:
    tree = parsed(name)
    others = {each for each in imported(tree) if not each.startswith("holdfast")}
    assert others <= LIBRARY
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "clock"
    }
    assert used <= CLOCK
    called = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not called & WORLD
