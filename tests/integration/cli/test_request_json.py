"""--json of the verbs that send requests: the resulting manifest or status."""

from __future__ import annotations

import json
import os
from typing import Any

import jsonschema
import pytest

from contracts import schema
from tests.support import kin
from tests.support.tasks import Task, holdfast

SCHEMAS = schema.schemas()


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    """Use an empty home."""


def printed(*words: str, as_a: str, status: int = 0) -> Any:
    done = holdfast(*words, "--json")
    assert done.returncode == status, done.stderr
    assert len(done.stdout.splitlines()) == 1
    data = json.loads(done.stdout)
    jsonschema.validate(data, SCHEMAS[as_a])
    return data


def test_stop_interrupt_resume_and_retry_print_the_manifest() -> None:
    task = Task.shell(kin.WAIT, "--id", "it", "--stop-pause", "1s")
    task.agent_pid()
    assert printed("interrupt", "it", "-m", "which?", as_a="manifest")["task_id"] == "it"
    task.wait_for("interrupted")
    assert printed("resume", "it", "-m", "this", as_a="manifest")["status"] != "interrupted"
    task.agent_pid()
    assert printed("stop", "it", as_a="manifest")["task_id"] == "it"
    task.wait_for("killed")
    assert printed("retry", "it", as_a="manifest")["run"] == 2
    task.agent_pid()
    task.stop()


def test_a_refusal_prints_no_json() -> None:
    task = Task.shell("true")
    task.wait_for("completed")
    done = task.ask("interrupt", "--json")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: ")


def test_rm_lists_what_was_removed_and_what_was_not() -> None:
    for name in ("one", "two"):
        Task.shell("true", "--id", name).wait_for("completed")
    data = printed("rm", "one", "nobody", "two", as_a="removed", status=3)
    assert data["removed"] == ["one", "two"]
    (kept,) = data["kept"]
    assert kept["task"] == "nobody"
    assert kept["code"] == "not-found"
    assert "no task 'nobody'" in kept["error"]


def test_up_and_down_print_the_status(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    data = printed("up", as_a="status")
    assert data["keeper"]["pid"] > 0
    assert not data["down"]
    task = Task.shell(kin.WAIT, "--id", "it", "--stop-pause", "1s")
    task.agent_pid()
    data = printed("down", "--now", as_a="status")
    assert data["keeper"] is None
    assert data["down"]
    task.wait_for("interrupted")
    task.stop()
    assert os.path.exists(os.path.join(home, "down"))
