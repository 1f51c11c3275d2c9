"""The plan of a fan-out: what an agent may write, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.model import work_plan
from holdfast.model.spec import PlanItem

ITEM: dict[str, Any] = {"id": "api", "title": "add it", "prompt": "Add it."}


def data(*items: object, **more: object) -> dict[str, object]:
    return {"schema": work_plan.SCHEMA, "items": list(items), **more}


def report(*items: object) -> str:
    return f"## Items\n\nas follows\n\n```json\n{json.dumps(data(*items))}\n```\n"


def test_the_items_of_a_report_and_of_a_file() -> None:
    web = {**ITEM, "id": "web", "depends_on": ["api"], "scope": ["src/web/", "a.py"]}
    plan = work_plan.of(data(ITEM, web, goal="all of it"))
    assert plan.problems == ()
    assert plan.goal == "all of it"
    assert plan.items == (
        PlanItem(id="api", title="add it", prompt="Add it."),
        PlanItem(id="web", title="add it", prompt="Add it.", depends_on=("api",), scope=("src/web/", "a.py")),
    )
    assert work_plan.in_report(report(ITEM, web)).items == plan.items


@pytest.mark.parametrize(
    "text",
    ["no block", "```json\n{}\n```\n", report(ITEM) * 2, "```json\nholdfast.plan/1 {\n```\n", report()],
    ids=("none", "another block", "two", "no JSON", "no items"),
)
def test_a_report_without_one_plan_has_no_items(text: str) -> None:
    plan = work_plan.in_report(text)
    assert plan.items == ()
    assert len(plan.problems) == 1


@pytest.mark.parametrize("value", [None, 7, [], "x", {}, {"schema": "holdfast.plan/2", "items": [ITEM]}])
def test_other_data_is_no_plan(value: object) -> None:
    assert work_plan.of(value).problems == ("schema must be holdfast.plan/1",)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "../x"), ("id", "A"), ("id", ""), ("id", 7), ("id", "a" * 25), ("id", "a.b"), ("id", "a\n"),
        ("title", ""), ("title", "two\nlines"), ("title", "g" * 201), ("title", None),
        ("prompt", " "), ("prompt", "r" * (16 * 1024 + 1)), ("prompt", ["x"]),
        ("depends_on", "api"), ("depends_on", [1]),
        ("scope", "src/"), ("scope", ["x"] * 51), ("scope", [1]),
        ("scope", ["/etc"]), ("scope", ["../up"]), ("scope", ["a/../b"]), ("scope", ["src/*.py"]),
        ("scope", ["!src"]), ("scope", [""]), ("scope", ["a//b"]), ("scope", ["x\n"]), ("scope", ["./a"]),
        ("command", "rm"), ("permissions", "full"),
    ],
)  # fmt: skip
def test_one_wrong_field_refuses_the_plan(field: str, value: object) -> None:
    plan = work_plan.of(data(ITEM, {**ITEM, "id": "web", field: value}))
    assert plan.items == ()
    assert plan.problems[0].startswith("items[1]")


def test_the_order_must_make_sense() -> None:
    assert work_plan.of(data(ITEM, ITEM)).problems == ("the id 'api' is used twice",)
    assert work_plan.of(data(*({**ITEM, "id": f"i{n}"} for n in range(21)))).problems
    assert work_plan.of(data({**ITEM, "depends_on": ["web"]})).problems == (
        "api depends on 'web', which is no item",
    )
    cycle = [{**ITEM, "id": one, "depends_on": [other]} for one, other in ("ab", "bc", "ca")]
    assert work_plan.of(data(ITEM, *cycle)).problems == ("depends_on has a cycle: a, b, c",)
    assert work_plan.of(data(ITEM, evil=1)).problems == ("unknown field 'evil'",)
