"""holdfast status: keeper, counts, and what needs a person."""

from __future__ import annotations

import json
import os

import jsonschema
import pytest

from holdfast import __version__
from holdfast.model import schema
from tests.support import keepers, kin
from tests.support.tasks import Task, holdfast, workspace


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def status() -> dict:
    done = holdfast("status", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    jsonschema.validate(facts, schema.schemas()["status"])
    return facts


def test_an_empty_home_and_none_at_all(home: str) -> None:
    assert status()["counts"] == {}
    os.rmdir(home)
    facts = status()
    assert (facts["keeper"], facts["seed"], facts["down"], facts["attention"]) == (None, None, False, [])
    assert not os.path.exists(home)
    assert "keeper   not running" in holdfast("status").stdout


def test_keeper_seed_and_counts(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    for number in range(25):
        if number < 2:
            Task.shell("exit 1", "--id", f"bad-{number}").wait_for("failed")
    Task.shell("true").wait_for("completed")
    pid = keepers.wait_for(home)
    facts = status()
    assert facts["keeper"] == {"pid": pid, "version": __version__}
    assert facts["counts"] == {"failed": 2, "completed": 1}
    text = holdfast("status").stdout
    assert f"keeper   process {pid}" in text
    assert "tasks    1 completed, 2 failed" in text


def test_a_task_that_waits_for_a_person_is_named() -> None:
    task = Task.shell(kin.WAIT, "--id", "it")
    task.agent_pid()
    task.ask("interrupt", "-m", "which one?")
    task.wait_for("interrupted")
    assert status()["attention"] == ["it waits for a person: which one?"]
    assert "!        it waits for a person: which one?" in holdfast("status").stdout
    task.stop()


def test_errors() -> None:
    assert holdfast("status", "it").returncode == 2
