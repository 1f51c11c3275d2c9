"""The plan of a fan-out, as it is read from a file."""

from __future__ import annotations

import os

import pytest

from holdfast.errors import UsageError
from holdfast.views.create import fan_out
from tests.conftest import Place


def test_a_plan_that_is_no_yaml_leads_to_the_page_about_plans(place: Place) -> None:
    path = os.path.join(place.root, "plan.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("items: [a\n- b")
    with pytest.raises(UsageError, match="line 2") as caught:
        fan_out.read_plan(path)
    assert caught.value.hint == "docs/guides/fan-out.md describes a plan"
