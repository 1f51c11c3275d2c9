"""The plan of a fan-out: what an agent may write, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.model import work_plan
from holdfast.model.work_plan import Item

ITEM: dict[str, Any] = {"id": "api", "goal": "add it", "request": "Add it.", "paths": ["src/api/", "a.py"]}


def report(*items: object, **more: object) -> str:
    data = {"schema": work_plan.SCHEMA, "items": list(items), **more}
    return f"## Items\n\nas follows\n\n```json\n{json.dumps(data)}\n```\n"


def test_the_items_of_a_report() -> None:
    plan = work_plan.read(report(ITEM, {**ITEM, "id": "web"}))
    assert plan.problems == ()
    assert [item.id for item in plan.items] == ["api", "web"]
    assert plan.items[0] == Item(id="api", goal="add it", request="Add it.", paths=("src/api/", "a.py"))


@pytest.mark.parametrize(
    "text",
    ["no block", "```json\n{}\n```\n", report(ITEM) * 2, "```json\nholdfast.plan/1 {\n```\n", report()],
    ids=("none", "another block", "two", "no JSON", "no items"),
)
def test_a_report_without_one_plan_has_no_items(text: str) -> None:
    plan = work_plan.read(text)
    assert plan.items == ()
    assert len(plan.problems) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "../x"), ("id", "A"), ("id", ""), ("id", 7), ("id", "a" * 32),
        ("goal", ""), ("goal", "two\nlines"), ("goal", "g" * 301), ("goal", None),
        ("request", " "), ("request", "r" * (16 * 1024 + 1)), ("request", ["x"]),
        ("paths", []), ("paths", "src/"), ("paths", ["x"] * 51), ("paths", [1]),
        ("paths", ["/etc"]), ("paths", ["../up"]), ("paths", ["a/../b"]), ("paths", ["src/*.py"]),
        ("paths", ["!src"]), ("paths", [""]), ("paths", ["a//b"]), ("paths", ["x\n"]), ("paths", ["./a"]),
    ],
)  # fmt: skip
def test_one_wrong_field_refuses_the_plan(field: str, value: object) -> None:
    plan = work_plan.read(report(ITEM, {**ITEM, "id": "web", field: value}))
    assert plan.items == ()
    assert plan.problems[0].startswith("items[1]")


def test_more_fields_more_items_and_equal_ids_are_refused() -> None:
    assert work_plan.read(report({**ITEM, "command": "rm"})).problems
    assert work_plan.read(report(*({**ITEM, "id": f"i{n}"} for n in range(21)))).problems
    assert work_plan.read(report(ITEM, ITEM)).problems == ("the id 'api' is used twice",)
