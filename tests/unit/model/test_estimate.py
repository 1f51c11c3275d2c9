"""Estimates from earlier tasks."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model.estimate import Spread, estimate, spread
from holdfast.model.spec import StageSpec

pytestmark = pytest.mark.req("TEA-4")


def stage(name: str, model: str | None = None, group: str | None = None) -> StageSpec:
    return StageSpec(name=name, agent="a", role="impl", model=model, group=group)


def task(task_id: str, *stages: dict[str, Any]) -> dict[str, Any]:
    return {"task_id": task_id, "stages": list(stages)}


def took(name: str, seconds: float, **more: Any) -> dict[str, Any]:
    known = {
        "model": None,
        "is_done": True,
        "calls": 1,
        "input_tokens": None,
        "output_tokens": None,
        "cost_usd": None,
    }
    return {**known, "stage": name, "seconds": seconds, **more}


def test_quantiles() -> None:
    assert spread(range(11)) == Spread(p10=1, p50=5, p90=9)
    assert spread([7]) == Spread(p10=7, p50=7, p90=7)
    assert spread([]) is None


def test_no_history() -> None:
    found = estimate([stage("s")], [])
    assert (found.tasks, found.unknown, found.total) == (0, ("s",), {})


def test_stages_add_up_and_of_parallel_ones_the_longest_counts() -> None:
    history = [task("1", took("s", 10), took("t", 4), took("u", 6))]
    found = estimate([stage("s"), stage("t", group="g"), stage("u", group="g")], history)
    assert found.total["seconds"].p50 == 16
    assert found.total["calls"].p50 == 3
    assert "cost_usd" not in found.total
    assert found.tasks == 1


def test_a_stage_that_did_not_finish_is_no_history() -> None:
    assert estimate([stage("s")], [task("1", took("s", 10, is_done=False))]).unknown == ("s",)


def test_the_same_model_counts_before_others() -> None:
    history = [task("1", took("s", 10, model="big")), task("2", took("s", 2, model="small"))]
    same = estimate([stage("s", "small")], history).stages[0]
    assert (same.tasks, same.is_other_model, same.spread["seconds"].p50) == (1, False, 2)
    other = estimate([stage("s", "new")], history).stages[0]
    assert (other.tasks, other.is_other_model, other.spread["seconds"].p50) == (2, True, 6)


def test_tokens_are_known_if_one_direction_is() -> None:
    history = [task("1", took("s", 1, input_tokens=5)), task("2", took("s", 1))]
    assert estimate([stage("s")], history).total["tokens"].p50 == 5


def test_a_task_of_an_older_version_has_no_stages() -> None:
    assert estimate([stage("s")], [{"task_id": "1"}]).tasks == 0
