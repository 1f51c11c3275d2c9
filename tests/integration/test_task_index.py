"""What a task left, by phase: links in its packet, and an index over the tasks of a home."""

from __future__ import annotations

import json
import os
from typing import Any

import jsonschema
import pytest

from contracts import schema
from holdfast.testing import Scenario
from tests.support import loops
from tests.support.packets import WORK, Written, calls, played
from tests.support.tasks import Task, holdfast
from tests.support.waiting import eventually


@pytest.fixture
def done(home: str) -> Task:
    """A pipeline that is completed."""
    impl = played("impl", before=Scenario().write(WORK, content="hello\n"))
    return Written({"scripted_impl": impl, "scripted_verify": None}).run()


def on_disk(home: str) -> dict[str, Any] | None:
    try:
        with open(os.path.join(home, "task-index.json"), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


@pytest.mark.req("PKT-19")
def test_a_packet_links_each_phase_to_its_main_result(done: Task) -> None:
    links = done.json("state", "phase-links.json")
    jsonschema.validate(links, schema.schemas()["phase-links"])
    assert {name: phase["canonical"] for name, phase in links["phases"].items()} == {
        "impl": "outputs/scripted_impl.scripted.out",
        "verify": "outputs/scripted_verify.artifact.md",
    }
    for phase in links["phases"].values():
        assert os.path.exists(done.path(phase["canonical"]))
    sessions = {event["stage"]: event["session_id"] for event in calls(done)}
    assert links["phases"]["impl"]["stages"]["scripted_impl"]["session_id"] == sessions["scripted_impl"]


@pytest.mark.req("PKT-19")
def test_a_stage_that_failed_has_no_result(home: str) -> None:
    astray = played("impl", before=Scenario().write("elsewhere.txt", content="x\n"))
    task = Written({"scripted_impl": astray, "scripted_verify": None}).run(end="failed")
    links = task.json("state", "phase-links.json")
    assert {name: phase["canonical"] for name, phase in links["phases"].items()} == {
        "impl": None,
        "verify": None,
    }


@pytest.mark.req("PKT-19")
def test_the_index_is_made_when_it_is_asked_for(home: str, done: Task) -> None:
    Task.shell("true").wait_for("completed")
    assert on_disk(home) is None
    asked = holdfast("pipeline", "index", "--json")
    assert asked.returncode == 0, asked.stderr
    index = json.loads(asked.stdout)
    jsonschema.validate(index, schema.schemas()["task-index"])
    assert list(index["tasks"]) == [done.id], "a plain run has no phases"
    entry = index["tasks"][done.id]
    assert (entry["status"], entry["run"], entry["intent"]) == ("completed", 1, "safe_impl")
    assert entry["results"]["verify"] == "outputs/scripted_verify.artifact.md"
    assert entry["phases"]["impl"][0]["session_id"]
    assert entry["policies"]["paid_call_budget"] == 20
    assert os.path.exists(os.path.join(home, entry["links"]))
    assert on_disk(home) == index
    # What has not changed is not written again.
    holdfast("pipeline", "index")
    assert on_disk(home) == index
    table = holdfast("pipeline", "index").stdout
    assert "outputs/scripted_verify.artifact.md" in table


def test_a_packet_that_cannot_be_read_costs_the_others_nothing(home: str, done: Task) -> None:
    bad = os.path.join(home, "tasks", "bad", "state")
    os.makedirs(bad)
    with open(os.path.join(bad, "phase-links.json"), "w", encoding="utf-8") as file:
        file.write('{"phases": []}')
    index = json.loads(holdfast("pipeline", "index", "--json").stdout)
    assert list(index["tasks"]) == [done.id]


@pytest.mark.req("PKT-19")
def test_the_keeper_keeps_it(home: str, done: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    loops.up()
    index = eventually(lambda: on_disk(home), 20.0, "the keeper has written the index")
    assert index is not None
    assert list(index["tasks"]) == [done.id]


def test_an_empty_index_is_reported(home: str) -> None:
    shown = holdfast("pipeline", "index")
    assert (shown.returncode, shown.stdout) == (0, "")
    assert "no task has results of stages" in shown.stderr
