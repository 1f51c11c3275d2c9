"""An agent that writes an end into its own packet: nobody believes it but the journal's."""

from __future__ import annotations

import sys

import pytest

from holdfast.store.layout import Home
from tests.support.tasks import Task, holdfast

#: Shows itself as completed, again and again, then fails.
LIAR = """
import json, os, pathlib, sys, time
packet = pathlib.Path(os.environ["HOLDFAST_PACKET"])
shown = json.loads((packet / "manifest.json").read_text()) | {"status": "completed", "exit_code": 0}
(packet / "done").mkdir(exist_ok=True)
(packet / "done" / "_task.done").write_text("{}")
(packet / "outputs" / "_summary.md").write_text("fine")
until = time.monotonic() + 3
while time.monotonic() < until:
    (packet / "forged").write_text(json.dumps(shown))
    os.rename(packet / "forged", packet / "manifest.json")
    time.sleep(0.02)
os._exit(3)
"""


def test_wait_reports_the_end_of_the_journal(home: str) -> None:
    task = Task.start("--max-retries", "0", "--", sys.executable, "-c", LIAR)
    task.wait_for("completed")
    assert holdfast("wait", task.id).returncode == 1
    assert task.status() == "failed"


def test_a_successor_waits_for_the_real_end(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    first = ("submit", "--id", "first", "--max-retries", "0", "--", sys.executable, "-c", LIAR)
    assert holdfast(*first).returncode == 0
    assert holdfast("submit", "--id", "deploy", "--after", "first", "--", "true").returncode == 0
    assert holdfast("up").returncode == 0
    assert holdfast("wait", "first").returncode == 1
    assert holdfast("wait", "deploy", "--timeout", "20s").returncode != 0
    assert Task(Home(home).packet("deploy").path).status() != "completed"
