"""Work items: valid fields, and the errors for invalid ones."""

from __future__ import annotations

import pytest

from holdfast.errors import UsageError
from holdfast.queue.work_item import from_json


def test_bootstrap_rig_options_and_variables_are_taken_over() -> None:
    item = {"id": "a", "rig": "snd", "bootstrap": "none", "options": {"k": "v"}, "variables": {"N": 1}}
    found = from_json(item, source="test", where="here")
    assert found is not None
    assert (found.rig, found.bootstrap, found.options, found.variables) == ("snd", "none", ("k=v",), ("N=1",))


def test_an_item_has_the_default_bootstrap_unless_it_says_otherwise() -> None:
    found = from_json({"id": "a"}, source="test", where="here")
    assert found is not None
    assert found.bootstrap == "default"


@pytest.mark.parametrize("value", ["text", ["a"], {"a": {}}, {"a": None}, 3])
def test_options_are_an_object_of_texts(value: object) -> None:
    with pytest.raises(UsageError, match="here: options must be an object of strings"):
        from_json({"id": "a", "options": value}, source="test", where="here")


@pytest.mark.parametrize(
    "fields",
    [
        {"priority": float("inf")},
        {"title": "\ud800 t"},
        {"command": ["\ud800"]},
        {"variables": {"\ud800": 1}},
    ],
)
def test_values_that_json_can_hold_and_no_task_are_errors_of_their_item(fields: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="here: "):
        from_json({"id": "a", **fields}, source="test", where="here")
