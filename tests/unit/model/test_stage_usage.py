"""What each stage of a task used."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model.stage_usage import StageUsages

pytestmark = pytest.mark.req("TEA-5")


def opened(attempt: int, stage: str, mode: str = "fresh", **more: Any) -> dict[str, Any]:
    at = "2026-01-01T00:00:00.000Z"
    return {
        "type": "attempt.opened",
        "at": at,
        "attempt": attempt,
        "stage": stage,
        "agent": "a",
        "mode": mode,
        **more,
    }


def usage(attempt: int, tokens: int | None, cost: float | None = None, **more: Any) -> dict[str, Any]:
    return {
        "type": "agent.usage",
        "attempt": attempt,
        "input_tokens": tokens,
        "output_tokens": None,
        "cost_usd": cost,
        **more,
    }


def ended(attempt: int, lived_s: float) -> dict[str, Any]:
    return {"type": "attempt.ended", "attempt": attempt, "outcome": "success", "lived_s": lived_s}


def figures(*lines: dict[str, Any]) -> dict[str, Any]:
    usages = StageUsages()
    for line in lines:
        usages.apply(line)
    return {each["stage"]: each for each in usages.to_json()}


def test_reports_of_an_attempt_add_up() -> None:
    found = figures(
        opened(1, "s"), usage(1, 10, 0.5), usage(1, 5), ended(1, 2.0), {"type": "stage.done", "stage": "s"}
    )
    assert found["s"] == {
        "stage": "s", "agent": "a", "model": None, "is_done": True, "calls": 1, "seconds": 2.0,
        "input_tokens": 15, "output_tokens": None, "cost_usd": 0.5,
    }  # fmt: skip


def test_a_cumulative_report_replaces_the_one_before() -> None:
    found = figures(opened(1, "s"), usage(1, 10, cumulative=True), usage(1, 30, cumulative=True))
    assert found["s"]["input_tokens"] == 30


def test_attempts_add_up() -> None:
    found = figures(
        opened(1, "s"), usage(1, 10), ended(1, 1.0), opened(2, "s", "resume"), usage(2, 7), ended(2, 2.0)
    )
    assert (found["s"]["calls"], found["s"]["seconds"], found["s"]["input_tokens"]) == (2, 3.0, 17)


def test_figures_of_a_session_count_once() -> None:
    whole = {"cumulative": True, "of_session": True}
    found = figures(
        opened(1, "s"), usage(1, 10, **whole), ended(1, 1.0),
        opened(2, "s", "resume"), usage(2, 12, **whole), usage(2, 25, **whole), ended(2, 1.0),
        opened(3, "s"), usage(3, 4, **whole), ended(3, 1.0),
    )  # fmt: skip
    assert found["s"]["input_tokens"] == 25 + 4


def test_chores_are_not_calls_and_parallel_stages_are_kept_apart() -> None:
    found = figures(
        opened(1, "s", kind="gate"), opened(2, "s"), opened(3, "t"), usage(3, 5), usage(2, 1), usage(1, 100)
    )
    assert {name: (each["calls"], each["input_tokens"]) for name, each in found.items()} == {
        "s": (1, 1),
        "t": (1, 5),
    }


def test_the_model_is_that_of_the_spec() -> None:
    created = {"type": "task.created", "spec": {"stages": [{"name": "s", "model": "m"}]}}
    assert figures(created, opened(1, "s"))["s"]["model"] == "m"
