"""The context of an interrupt: everything that a person needs, redacted, and never in the way."""

from __future__ import annotations

import errno
import json
import os
import subprocess

import jsonschema
import pytest

from contracts import schema
from holdfast.packet import load
from holdfast.redact import Redactor
from holdfast.runner.ledger import Ledger
from holdfast.runner.user_files import context as saved_context
from holdfast.runner.user_files.context import save
from holdfast.store.layout import Packet
from holdfast.testing import Scenario
from tests.support.journals import opened
from tests.support.tasks import Task, workspace


@pytest.fixture(autouse=True)
def in_a_home(home: str) -> None:
    workspace()


def git(*words: str) -> None:
    named = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *named, "-C", workspace(), *words], check=True, capture_output=True)


def repository() -> None:
    git("init", "-q", "-b", "trunk")
    git("commit", "-q", "--allow-empty", "-m", "first")


@pytest.fixture
def task() -> Task:
    scenario = (
        Scenario().say("first words").say("my token is hunter2hunter2").tool("bash").write("new.txt", "x")
    )
    task = Task.play(scenario, "--id", "it")
    task.wait_for("completed")
    return task


def ledger(task: Task) -> Ledger:
    packet = Packet(task.packet)
    return Ledger(packet, load.fold(packet), opened(packet), Redactor({"MY_TOKEN": "hunter2hunter2"}))


def read(folder: str, name: str) -> str:
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


@pytest.mark.req("INT-4")
def test_context_summary_logs_and_work_are_kept(task: Task) -> None:
    repository()
    with open(task.path("state", "work.json"), "w", encoding="utf-8") as file:
        json.dump({"id": "issue-1", "progress": {"steps_completed": 3, "steps_total": 9}}, file)
    folder = save(ledger(task), "which branch? (hunter2hunter2)")
    assert folder is not None
    assert folder == task.path("state", "interrupts", "1")
    assert sorted(os.listdir(folder)) == ["context.json", "logs.txt", "summary.md", "work.json"]
    context = json.loads(read(folder, "context.json"))
    assert context["schema"] == "holdfast.context/1"
    assert context["interrupt_reason"] == "which branch? (***)"
    assert context["session_id"].startswith("ses_")
    assert context["agent_session_id"] == task.manifest()["session_id"]
    assert context["cwd"] == workspace()
    assert context["git"]["branch"] == "trunk"
    assert "? new.txt" in context["git"]["status"]
    assert context["work"]["progress"]["steps_completed"] == 3
    assert context["events"] == [
        json.loads(json.dumps(event).replace("hunter2hunter2", "***")) for event in task.events()[-20:]
    ]
    assert "first words" in read(folder, "logs.txt")
    summary = read(folder, "summary.md")
    assert "- reason: which branch? (***)" in summary
    assert "- git: trunk at" in summary
    assert "holdfast resume it -m" in summary
    for name in os.listdir(folder):
        assert "hunter2" not in read(folder, name)
        assert os.stat(os.path.join(folder, name)).st_mode & 0o777 == 0o600


@pytest.mark.req("INT-4")
def test_each_interrupt_has_its_own_and_a_project_without_git_has_no_git(task: Task) -> None:
    first, second = save(ledger(task), "one"), save(ledger(task), "two")
    assert [os.path.basename(folder or "") for folder in (first, second)] == ["1", "2"]
    assert json.loads(read(second or "", "context.json"))["git"] is None
    assert "work.json" not in os.listdir(second or "")


def test_only_the_last_hundred_lines_are_kept(home: str) -> None:
    task = Task.shell("seq 1000")
    task.wait_for("completed")
    folder = save(ledger(task), "why")
    assert read(folder or "", "logs.txt").splitlines() == [str(number) for number in range(901, 1001)]


def test_a_git_that_hangs_costs_a_few_seconds_and_nothing_else(
    task: Task, place, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository()
    folder = os.path.join(place.root, "bin")
    os.mkdir(folder)
    with open(os.path.join(folder, "git"), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexec sleep 60\n")
    os.chmod(os.path.join(folder, "git"), 0o700)
    monkeypatch.setenv("PATH", folder + ":" + os.environ["PATH"])
    monkeypatch.setattr(saved_context, "GIT_S", 0.3)
    found = save(ledger(task), "why")
    assert "exceeded its limit" in json.loads(read(found or "", "context.json"))["git"]["error"]


def test_what_cannot_be_kept_is_said_and_nothing_is_raised(
    task: Task, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    book = ledger(task)
    really_open = os.open

    def read_only(path: str, flags: int, *args: int, **named: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return really_open(path, flags, *args, **named)

    monkeypatch.setattr(os, "open", read_only)
    assert save(book, "why") is None
    assert "the context of the interrupt was not saved" in capfd.readouterr().err


@pytest.mark.req("INT-4")
def test_an_interrupt_leaves_its_context_beside_the_question() -> None:
    repository()
    scenario = Scenario().say("looking").write("new.txt", "x").interrupt_request("which branch?").hang()
    task = Task.play(scenario, "--id", "it", "--base-interval", "0.3s")
    task.wait_for("interrupted")
    folder = task.path("state", "interrupts", "1")
    context = json.loads(read(folder, "context.json"))
    assert context["interrupt_reason"] == "which branch?"
    assert context["attempt"] == 1
    assert "? new.txt" in context["git"]["status"]
    assert "looking" in read(folder, "logs.txt")
    jsonschema.validate(context, schema.schemas()["context"])
    task.stop()


def test_a_work_item_that_the_agent_wrote_by_itself_is_complete_at_the_end() -> None:
    task = Task.shell("""echo '{"progress": {"steps_completed": 2}}' > "$HOLDFAST_PACKET/state/work.json\"""")
    task.wait_for("completed")
    with open(task.path("state", "work.json"), encoding="utf-8") as file:
        item = json.load(file)
    assert (item["id"], item["status"], item["progress"]["steps_completed"]) == (task.id, "completed", 2)
    started = task.events("attempt.started")[0]
    assert item["assigned_session"] == task.events("attempt.opened")[0]["attempt_id"]
    assert item["started_at"] == started["started_at"]
    assert item["last_updated"] > item["started_at"]
