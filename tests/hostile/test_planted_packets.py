"""The keeper runs only packets that a command of this home created, or that a person has named."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from holdfast.model import events as ev
from holdfast.store.journal import encode_line
from tests.support.tasks import Task, holdfast
from tests.support.waiting import eventually


def plant(home: str, status: str, *, request: str = "", name: str = "evil") -> str:
    """Write a packet as an agent can, with another task as a model. Returns the file that its command
    makes."""
    done = holdfast("submit", "--id", "model", "--", "true")
    assert done.returncode == 0, done.stderr
    model = os.path.join(home, "tasks", "model")
    packet = os.path.join(home, "tasks", name)
    left_out = shutil.ignore_patterns("bell", "manifest.json", "runner.lock")
    shutil.copytree(model, packet, ignore=left_out)
    proof = os.path.join(os.path.dirname(home), f"ran-{name}")
    with open(os.path.join(model, "events.jsonl"), encoding="utf-8") as file:
        first = json.loads(file.readline().replace('"model"', f'"{name}"'))
    first["status"] = status
    first["spec"]["command"] = ["touch", proof]
    text = json.dumps(first) + "\n"
    if status == "interrupted":
        first["status"] = "queued"
        moved = ev.TaskMoved(old="queued", new="interrupted", reason="a question", interrupt="a question")
        text = json.dumps(first) + "\n" + encode_line(moved, first["at"]).decode()
    with open(os.path.join(packet, "events.jsonl"), "w", encoding="utf-8") as file:
        file.write(text)
    if request:
        wish = {"schema": "holdfast.request/1", "id": "01K00000000000000000000000", "verb": request}
        wish |= {"args": {}, "at": first["at"], "by": "you"}
        path = os.path.join(packet, "inbox", "01K00000000000000000000000.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(wish, file)
    return proof


def settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a keeper look at everything: a task that was created later has ended."""
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("up").returncode == 0
    later = holdfast("submit", "--id", "later", "--", "true")
    assert later.returncode == 0, later.stderr
    done = holdfast("wait", "later", "model", "--timeout", "40s")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("status", "request_verb"),
    [("queued", ""), ("queued", "start"), ("spawning", ""), ("interrupted", "resume"), ("running", "retry")],
)
def test_a_planted_packet_is_not_run(
    home: str, status: str, request_verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = plant(home, status, request=request_verb)
    settle(monkeypatch)
    shown = holdfast("status").stdout
    assert "evil was not created by a command" in shown
    # Also after the queue is asked, and by a keeper that starts with it.
    holdfast("queue", "ls")
    holdfast("down", "--now")
    holdfast("up")
    holdfast("run", "--id", "last", "--", "true")
    assert not os.path.exists(proof)
    assert not Task(os.path.join(home, "tasks", "evil")).events("attempt.opened")
    assert holdfast("rm", "--force", "evil").returncode == 0
    assert not os.path.exists(proof)


def test_a_planted_schedule_does_not_run(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    proof = os.path.join(os.path.dirname(home), "ran")
    done = holdfast("submit", "--every", "1h", "--id", "model", "--", "true")
    assert done.returncode == 0, done.stderr
    with open(os.path.join(home, "schedules", "model.json"), encoding="utf-8") as file:
        planted = json.loads(file.read().replace('"model"', '"evil"'))
    planted |= {"created_at": "2026-01-01T00:00:00.000Z", "every": "60s"}
    planted["spec"]["command"] = ["touch", proof]
    with open(os.path.join(home, "schedules", "evil.json"), "w", encoding="utf-8") as file:
        json.dump(planted, file)
    # One of a command, changed.
    with open(os.path.join(home, "schedules", "model.json"), "w", encoding="utf-8") as file:
        json.dump({**planted, "name": "model"}, file)
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    assert holdfast("up").returncode == 0
    assert holdfast("submit", "--id", "later", "--", "true").returncode == 0
    assert holdfast("wait", "later", "--timeout", "40s").returncode == 0
    assert os.listdir(os.path.join(home, "tasks")) == ["later"]
    assert not os.path.exists(proof)


@pytest.mark.parametrize("status", ["queued", "spawning", "interrupted"])
def test_a_person_may_adopt_a_packet(home: str, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A packet from a backup, for example."""
    proof = plant(home, status)
    settle(monkeypatch)
    done = holdfast("resume", "--all")
    assert not os.path.exists(proof), done.stderr
    done = holdfast("resume", "evil")
    assert done.returncode == 0, done.stderr
    eventually(lambda: os.path.exists(proof), within_s=30, what="it has run")
    Task(os.path.join(home, "tasks", "evil")).wait_for("completed", within_s=30)
    assert "not created" not in holdfast("status").stdout


def test_tasks_of_a_home_without_records_are_run(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of an older version: what is there when the first record is made, counts as created here."""
    proof = plant(home, "queued")
    shutil.rmtree(os.path.join(home, "admitted"))
    settle(monkeypatch)
    eventually(lambda: os.path.exists(proof), within_s=30, what="it has run")
    Task(os.path.join(home, "tasks", "evil")).wait_for("completed", within_s=30)


def test_an_id_can_be_used_again(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    for _ in range(2):
        assert holdfast("submit", "--id", "it", "--", "true").returncode == 0
        assert holdfast("wait", "it", "--timeout", "40s").returncode == 0
        assert holdfast("rm", "it").returncode == 0
        assert os.listdir(os.path.join(home, "admitted")) == []
