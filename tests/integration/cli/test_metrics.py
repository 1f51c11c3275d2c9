"""holdfast metrics: statistics of real tasks."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.store.layout import Home
from holdfast.testing import Scenario
from tests.support import kin
from tests.support.tasks import Task, holdfast, workspace


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def figures(*words: str) -> dict:
    done = holdfast("metrics", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.req("AUD-3")
def test_a_task_has_tokens_tool_calls_and_duration() -> None:
    scenario = (
        Scenario().say("hi").tool("bash").tool("bash").usage(input_tokens=7, output_tokens=3, cost_usd=0.25)
    )
    Task.play(scenario, "--id", "it").wait_for("completed")
    task = figures("it")
    assert task["schema"] == "holdfast.task-metrics/1"
    assert task["api_usage"] == {
        "input_tokens": 7,
        "output_tokens": 3,
        "cost_usd": 0.25,
        "paid_calls": 1,
        "unpriced_calls": 0,
    }
    assert task["tool_usage"] == {"total": 2, "errors": 0, "breakdown": {"bash": 2}}
    assert task["duration_s"] > 0
    text = holdfast("metrics", "it").stdout
    assert "usage       7 tokens in, 3 out, cost $0.25" in text
    assert "tools       2: bash 2" in text


@pytest.mark.req("AUD-3", "AUD-4")
def test_a_home_has_rates_and_keeps_them_in_a_file(home: str) -> None:
    Task.shell("true", "--id", "good").wait_for("completed")
    Task.shell("exit 3", "--id", "bad").wait_for("failed")
    asked = Task.shell(kin.WAIT, "--id", "asked")
    asked.agent_pid()
    asked.ask("interrupt", "-m", "which?")
    asked.wait_for("interrupted")
    metrics = figures()
    assert metrics["schema"] == "holdfast.metrics/1"
    assert metrics["home"]["by_status"] == {"completed": 1, "failed": 1, "interrupted": 1}
    assert metrics["home"]["success_rate"] == 0.5
    assert metrics["home"]["interrupt_rate"] == 0.3333
    assert metrics["home"]["api_usage"]["cost_usd"] is None
    with open(Home(home).metrics, encoding="utf-8") as file:
        kept = json.load(file)
    assert kept["home"] == {**metrics["home"], "iterations_per_hour": kept["home"]["iterations_per_hour"]}
    assert "success     50 % of 2 ended" in holdfast("metrics").stdout
    asked.stop()
    assert figures()["home"]["by_status"] == {"completed": 1, "failed": 1, "killed": 1}


def test_what_was_read_is_not_read_again_and_a_broken_cache_does_no_harm(home: str) -> None:
    task = Task.shell("true", "--id", "it")
    task.wait_for("completed")
    figures()
    with open(Home(home).metrics, encoding="utf-8") as file:
        kept = json.load(file)
    kept["tasks"]["it"]["interrupts"] = 41
    with open(Home(home).metrics, "w", encoding="utf-8") as file:
        json.dump(kept, file)
    assert figures()["home"]["interrupts"] == 41
    with open(Home(home).metrics, "w", encoding="utf-8") as file:
        file.write("{")
    assert figures()["home"]["interrupts"] == 0


def test_the_text_for_prometheus_has_a_number_on_each_line() -> None:
    Task.shell("true").wait_for("completed")
    done = holdfast("metrics", "--prometheus")
    assert done.returncode == 0
    assert 'holdfast_tasks{status="completed"} 1\n' in done.stdout
    for line in done.stdout.splitlines():
        assert line.startswith(("# HELP holdfast_", "# TYPE holdfast_", "holdfast_"))
        assert line.startswith("#") or float(line.rsplit(" ", 1)[1]) >= 0


def test_a_counter_does_not_fall_when_tasks_are_removed(home: str) -> None:
    def counters() -> dict[str, float]:
        lines = holdfast("metrics", "--prometheus").stdout.splitlines()
        names = [line.split()[2] for line in lines if line.endswith(" counter")]
        values = (line.rsplit(" ", 1) for line in lines if line.startswith(tuple(names)))
        return {name: float(value) for name, value in values}

    def play(*, cost_usd: float) -> None:
        scenario = Scenario().tool("bash").usage(input_tokens=7, output_tokens=3, cost_usd=cost_usd).result()
        Task.play(scenario, "--id", "it").wait_for("completed")

    play(cost_usd=0.25)
    before = counters()
    assert before["holdfast_cost_usd_total"] == 0.25
    assert before['holdfast_tool_calls_total{tool="bash"}'] == 1
    assert holdfast("rm", "it").returncode == 0
    assert counters() == before
    assert counters() == before  # counted once
    assert figures()["home"]["tasks"] == 0
    assert figures()["home"]["api_usage"]["cost_usd"] is None  # statistics are of what is there
    play(cost_usd=0.5)
    assert counters()["holdfast_cost_usd_total"] == 0.75
    # Another task with the same id.
    assert holdfast("rm", "it").returncode == 0
    play(cost_usd=1.0)
    before = counters()
    assert before["holdfast_cost_usd_total"] == 1.75
    # One that cannot be read is not removed.
    journal = Home(home).packet("it").journal
    os.rename(journal, f"{journal}.away")
    assert counters() == before
    os.rename(f"{journal}.away", journal)
    assert counters() == before


def test_a_home_without_tasks_and_errors(home: str) -> None:
    assert figures()["home"]["tasks"] == 0
    assert "tasks       none" in holdfast("metrics").stdout
    assert holdfast("metrics", "nobody").returncode == 3
    assert holdfast("metrics", "--json", "--prometheus").returncode == 2
    os.chmod(home, 0o700)
