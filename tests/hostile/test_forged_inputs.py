"""What another agent writes into the inbox or the inputs of a task: only what holdfast noted counts."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.errors import RequestRefused
from holdfast.model.request import Request
from holdfast.packet import inbox
from holdfast.store import admitted
from holdfast.store.layout import Packet
from holdfast.testing import Scenario
from holdfast.views.requests import Posted
from tests.support import loops
from tests.support.tasks import Task, workspace


def queued(*command: str) -> Task:
    return loops.submit("--id", "queued", "--", *command)


def read_request(packet: Packet, name: str) -> Request:
    request = inbox.read(packet, f"{name}.json")
    assert not isinstance(request, Exception)
    return request


def test_another_verb_is_another_request(home: str) -> None:
    """The keeper's `start`, changed into `done`, would complete the task without running it."""
    packet = Packet(queued("false").path())
    request = inbox.drop(packet, "start", {}, by="keeper")
    assert inbox.is_admitted(packet, request)
    changed = {**request.to_json(), "verb": "done"}
    with open(packet.request(request.id), "w", encoding="utf-8") as file:
        json.dump(changed, file)
    assert not inbox.is_admitted(packet, read_request(packet, request.id))


def test_a_note_of_another_kind_is_no_request(home: str) -> None:
    packet = Packet(queued("false").path())
    request = inbox.drop(packet, "start", {}, by="keeper")
    name = "01M7JN3ZYZJ6S6E2NVJ0RJTBN3"
    admitted.note(packet, admitted.Kind.SANDBOX_START, name, ["done", {}])
    with open(packet.request(name), "w", encoding="utf-8") as file:
        json.dump({**request.to_json(), "id": name, "verb": "done"}, file)
    assert not inbox.is_admitted(packet, read_request(packet, name))


def test_a_request_that_vanishes_is_told_and_not_applied_later(home: str) -> None:
    task = Task.shell("true")
    task.wait_for("completed")
    packet = Packet(task.path())
    request = inbox.drop(packet, "retry", {}, by="person")
    kept = os.path.join(workspace(), "kept")
    os.rename(packet.request(request.id), kept)
    with pytest.raises(RequestRefused, match="vanished"):
        Posted(packet, request.id, "retry", wakes=False).is_answered()
    os.rename(kept, packet.request(request.id))
    assert not inbox.is_admitted(packet, read_request(packet, request.id))
    os.unlink(packet.request(request.id))


def test_a_command_gets_no_request_that_it_does_not_have(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = queued("sh", "-c", "cat > got")
    with open(task.path("inputs", "user_request.md"), "w", encoding="utf-8") as file:
        file.write("y\n")
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    loops.up()
    task.wait_for("completed")
    assert os.path.getsize(os.path.join(workspace(), "got")) == 0


@pytest.mark.parametrize("removed", [False, True])
def test_an_agent_gets_no_other_request(home: str, removed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Scenario().say("working").result("done").write_to(os.path.join(workspace(), "scenario.json"))
    task = loops.submit(
        "--id", "queued", "--agent", "scripted", "-o", f"scenario={scenario}", "fix the tests"
    )
    path = task.path("inputs", "user_request.md")
    os.unlink(path)
    if not removed:
        with open(path, "w", encoding="utf-8") as file:
            file.write("do something else\n")
    monkeypatch.delenv("HOLDFAST_KEEPER", raising=False)
    loops.up()
    manifest = task.wait_for("failed", "interrupted")
    assert "user_request.md" in json.dumps(manifest), manifest
    assert not task.events("attempt.started")
