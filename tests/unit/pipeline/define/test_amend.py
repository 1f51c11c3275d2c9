"""What `retry --set` changes."""

from __future__ import annotations

import pytest

from holdfast.errors import UsageError
from holdfast.model.spec import Limits, StageSpec, TaskSpec
from holdfast.pipeline.define import amend

SPEC = TaskSpec(
    task_id="t1",
    task_name="t1",
    goal="",
    agent="command",
    command=["true"],
    project_dir="/p",
    stages=(StageSpec(name="command_run", agent="command"),),
    limits=Limits(timeout_s=5, deadline_s=60),
)


@pytest.mark.parametrize(
    ("text", "field", "new"),
    [
        ("timeout=1m", "budgets.max_wallclock_sec", 60),
        ("timeout=90s", "budgets.max_wallclock_sec", 90),
        ("budgets.max_wallclock_sec=90", "budgets.max_wallclock_sec", 90),
        ("timeout=3d", "budgets.max_wallclock_sec", 259200),
        ("deadline=2h", "budgets.deadline_sec", 7200),
        ("deadline=300d", "budgets.deadline_sec", 25920000),
        ("deadline=none", "budgets.deadline_sec", None),
    ],
)
def test_the_names_of_options_take_units(text: str, field: str, new: int | None) -> None:
    (change,) = amend.read(SPEC, [text])
    assert (change["field"], change["new"]) == (field, new)


@pytest.mark.parametrize("text", ["timeout=soon", "timeout=0.5s", "timeout+=1m", "timeout=99d"])
def test_a_time_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        amend.read(SPEC, [text])


@pytest.mark.parametrize("name", ["timeout", "deadline"])
def test_a_time_needs_a_unit(name: str) -> None:
    with pytest.raises(UsageError, match="needs a unit: 1s, 1m, 1h or 1d"):
        amend.read(SPEC, [f"{name}=1"])
