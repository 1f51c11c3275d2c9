"""A journal summed up: tools with their times, errors, attempts; and lines that make no sense do no harm."""

from __future__ import annotations

import pytest

from holdfast.model import metrics
from holdfast.model.analysis import analyse


def at(second: float) -> str:
    return f"2026-01-31T12:00:{second:06.3f}Z"


LINES = [
    {"type": "task.created", "at": at(0), "task_id": "it", "status": "spawning", "spec": {}},
    {
        "type": "attempt.opened",
        "at": at(1),
        "attempt": 1,
        "attempt_id": "ses_1",
        "stage": "s",
        "agent": "a",
        "mode": "fresh",
    },
    {
        "type": "attempt.opened",
        "at": at(1),
        "attempt": 2,
        "attempt_id": "ses_2",
        "stage": "s",
        "agent": "a",
        "mode": "fresh",
        "kind": "gate",
    },
    {"type": "agent.text", "at": at(2), "attempt": 1, "text": "hello"},
    {
        "type": "agent.tool_started",
        "at": at(2),
        "attempt": 1,
        "tool_id": "1",
        "name": "Bash",
        "summary": "make",
    },
    {"type": "agent.tool_started", "at": at(3), "attempt": 1, "tool_id": "2", "name": "Read"},
    {"type": "agent.tool_finished", "at": at(5.5), "attempt": 1, "tool_id": "1", "is_error": True},
    {"type": "agent.error", "at": at(6), "attempt": 1, "kind": "overloaded", "message": "busy"},
    {"type": "agent.result", "at": at(6), "attempt": 1, "is_error": False, "turns": 3},
    {
        "type": "attempt.ended",
        "at": at(7),
        "attempt": 1,
        "outcome": "crashed",
        "detail": "signal 9",
        "lived_s": 6.0,
    },
    {"type": "retry.planned", "at": at(7), "stage": "s", "consecutive": 1, "total": 1, "delay_s": 0.0},
    {"type": "task.moved", "at": at(8), "old": "crashed", "new": "interrupted", "reason": "which?"},
    {"type": "task.painted", "at": at(9)},
    {"type": "agent.tool_finished", "at": at(9), "attempt": 1, "tool_id": "nobody's"},
    {"type": "task.moved", "at": at(9)},
    {"nothing": 1},
]


@pytest.mark.req("OUT-9")
def test_tools_errors_and_attempts_are_found() -> None:
    found = analyse(LINES)
    assert [(call["tool"], call["seconds"], call["is_error"]) for call in found.calls] == [
        ("Bash", 3.5, True),
        ("Read", None, None),
    ]
    assert [error["kind"] for error in found.errors] == ["tool_failed", "overloaded", "crashed"]
    (attempt,) = found.attempts
    assert (attempt["outcome"], attempt["tool_calls"], attempt["messages"]) == ("crashed", 2, 1)
    data = found.to_json()
    assert (data["interrupts"], data["retries"], data["turns"]) == (1, 0, 3)
    assert data["tool_usage"]["breakdown"]["Bash"] == {"calls": 1, "errors": 1, "denied": 0, "seconds": 3.5}
    assert data["events"]["task.painted"] == 1


def test_a_request_that_is_refused_after_the_end_is_no_error_and_adds_nothing_to_the_span() -> None:
    refusal = {"request": "r", "verb": "resume", "by": "ada@host", "reason": "it is completed"}
    lines = [
        {"type": "task.created", "at": at(0), "task_id": "it", "status": "spawning", "spec": {}},
        {"type": "task.moved", "at": at(2), "old": "completing", "new": "completed", "reason": "success"},
        {"type": "runner.started", "at": at(40), "pid": 2},
        {"type": "request.refused", "at": at(40), **refusal},
        {"type": "runner.left", "at": at(41), "pid": 2, "reason": "completed"},
    ]
    found = analyse(lines).to_json()
    assert (found["errors"], found["span_s"], found["last_at"]) == (0, 2.0, at(2))


def test_a_retry_counts_once_it_has_begun() -> None:
    (planned,) = (line for line in LINES if line.get("type") == "retry.planned")
    opened = next(line for line in LINES if line.get("type") == "attempt.opened")
    chore = {**opened, "kind": "gate"}
    by_person = {"type": "run.opened", "at": at(8)}
    assert analyse([opened, planned]).retries == 0
    assert analyse([opened, planned, chore]).retries == 0
    assert analyse([opened, planned, chore, opened]).retries == 1
    assert analyse([opened, planned, by_person, opened]).retries == 0
    assert analyse([opened, {**planned, "burned": False}, opened]).retries == 0


def test_a_line_with_wrong_types_is_only_counted() -> None:
    created = {"type": "task.created", "at": "x", "spec": {"stages": [{"name": "a"}]}}
    for wrong in ([], [None], "x", 5, None):
        lines = [
            {name: wrong if name != "type" else value for name, value in line.items()}
            for line in (created, *LINES)
        ]
        assert sum(analyse(lines).to_json()["events"].values()) == len(lines)


def task(**given) -> dict:
    manifest = {
        "task_id": "it",
        "status": "completed",
        "started_at": "2026-01-31T12:00:00.000Z",
        "finished_at": "2026-01-31T12:30:00.000Z",
        "usage": {"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.5},
        "paid_calls": 1,
        **given,
    }
    return metrics.of_task(manifest, analyse(LINES))


NOW = 1769864400.0  # 2026-01-31T13:00:00Z


@pytest.mark.req("AUD-3", "AUD-4")
def test_rates_and_averages_of_a_home() -> None:
    tasks = [
        task(),
        task(status="failed", finished_at="2026-01-31T12:10:00.000Z", usage={}),
        {**task(status="running", finished_at=None), "interrupts": 0},
    ]
    plain = task(usage={}, paid_calls=0)
    assert metrics.of_home([plain], NOW)["api_usage"]["cost_unknown_of"] == 0
    # Of two calls, only the cost of one is known, which was free: `show` says "cost unknown", too.
    resumed = task(usage={"cost_usd": 0.0, "unpriced_calls": 1}, paid_calls=2)
    assert metrics.of_home([resumed], NOW)["api_usage"]["cost_unknown_of"] == 1
    home = metrics.of_home(tasks, NOW)
    assert (home["tasks"], home["ended"], home["completed"]) == (3, 2, 1)
    assert home["success_rate"] == 0.5
    assert home["interrupt_rate"] == 0.6667
    assert home["average_duration_s"] == 1200.0
    assert home["iterations_per_hour"] == 2.0
    assert home["api_usage"] == {
        "input_tokens": 20,
        "output_tokens": 10,
        "cost_usd": 1.0,
        "cost_unknown_of": 1,
        "unpriced_calls": 0,
        "paid_calls": 3,
    }
    assert home["tool_usage"]["breakdown"] == {"Bash": 3, "Read": 3}
    # From the first start to the last end: a home that was idle before and after was not slower.
    assert metrics.of_home(tasks, NOW + 86400, since=NOW - 86400)["iterations_per_hour"] == 2.0
    assert metrics.of_home(tasks, NOW + 86400)["iterations_per_hour"] == 2.0
    later = metrics.of_home(tasks, NOW, since=NOW - 45 * 60)
    assert (later["ended"], later["by_status"]) == (1, {"completed": 1, "running": 1})


def execution(number: int, begin: float, end: float) -> list[dict]:
    """Its lines. `end` is when it ended, after `begin`."""
    return [
        {"type": "attempt.started", "at": at(begin), "attempt": number, "started_at": at(begin)},
        {
            "type": "attempt.ended",
            "at": at(end),
            "attempt": number,
            "outcome": "success",
            "lived_s": end - begin,
        },
    ]


def test_active_time_is_that_of_all_runs_and_parallel_time_counts_once() -> None:
    before = execution(1, 1, 5)
    first, second = execution(2, 10, 14), execution(3, 12, 18)
    lines = [*before, {"type": "run.opened", "at": at(9), "run": 2}, first[0], second[0], first[1], second[1]]
    one_run = metrics.of_task({"task_id": "it", "status": "failed", "active_s": 4.0}, analyse(before))
    assert (one_run["active_s"], one_run["runs"]) == (4.0, 1)
    manifest = {"task_id": "it", "status": "completed", "active_s": 8.0}  # of the last run
    retried = metrics.of_task(manifest, analyse(lines))
    assert (retried["active_s"], retried["runs"]) == (12.0, 2)
    # Only the summary of an archived task is left.
    assert metrics.of_task(manifest, analyse([]))["active_s"] == 8.0


def test_what_the_queue_holds_is_not_counted_as_queued() -> None:
    tasks = [{**task(status="queued", finished_at=None), "task_id": name} for name in ("held", "next")]
    tasks.append({**task(), "task_id": "done"})
    held = {"held": "held", "done": "held"}  # an item may be left of a task that has ended
    counted = metrics.of_home(tasks, NOW, held=held)["by_status"]
    assert counted == {"completed": 1, "held": 1, "queued": 1}


def test_nothing_is_unknown_and_never_zero() -> None:
    home = metrics.of_home([], NOW)
    assert home["success_rate"] is home["interrupt_rate"] is home["average_duration_s"] is None
    assert home["api_usage"]["cost_usd"] is None
    assert "holdfast_cost_usd_total" not in metrics.prometheus(home, [])


def test_prometheus_labels_are_escaped() -> None:
    odd = task()
    odd["tool_usage"]["breakdown"] = {'say "hi"\n\\': 2}
    text = metrics.prometheus(metrics.of_home([odd], NOW), [odd])
    assert 'holdfast_tool_calls_total{tool="say \\"hi\\"\\n\\\\"} 2\n' in text
    assert text.count("# TYPE holdfast_tasks ") == 1
