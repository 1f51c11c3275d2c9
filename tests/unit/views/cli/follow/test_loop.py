"""The loop of all followers: when it stops, what it prints once, and when it gives up."""

from __future__ import annotations

import os
from typing import Any

import pytest

from holdfast.store.layout import Home, Packet
from holdfast.views.cli.follow import loop


class Recorder(loop.View):
    """A view that records its calls."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, bool]] = []
        self.said: list[str] = []
        self.is_closed = False

    def show(self, packet: Packet, manifest: dict[str, Any], *, is_last: bool) -> None:
        self.shown.append((manifest["status"], is_last))

    def say(self, text: str) -> None:
        self.said.append(text)

    def close(self) -> None:
        self.is_closed = True


def ignored(*_: object) -> None:
    return


@pytest.fixture
def home(tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr("holdfast.clock.sleep", ignored)
    # What a follower does for a task that has no runner is tested with real processes.
    monkeypatch.setattr("holdfast.views.recovery.KeeperStarter.poll", ignored)
    return Home(os.fspath(tmp_path))


def plays(monkeypatch: pytest.MonkeyPatch, **states: list[str]) -> None:
    """Each look at a task's manifest shows its next state; the last one stays."""
    left = {task_id: list(each) for task_id, each in states.items()}

    def read(packet: Packet) -> dict[str, Any]:
        each = left[packet.task_id]
        return {"task_id": packet.task_id, "status": each.pop(0) if len(each) > 1 else each[0]}

    monkeypatch.setattr("holdfast.packet.load.read_manifest", read)


def is_completed(packet: Packet, manifest: dict[str, Any]) -> bool:
    return manifest["status"] == "completed"


def test_a_task_is_shown_until_it_is_over(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    plays(monkeypatch, a=["spawning", "running", "completed"])
    view = Recorder()
    assert loop.follow_one(home.packet("a"), view, until=is_completed)["status"] == "completed"
    assert view.shown == [("spawning", False), ("running", False), ("completed", True)]
    assert view.is_closed


def test_tasks_come_out_as_they_end(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    plays(monkeypatch, a=["running", "running", "completed"], b=["running", "completed"])
    packets = [home.packet("a"), home.packet("b")]
    stops = list(loop.follow(packets, Recorder(), until=is_completed))
    assert [stop.packet.task_id for stop in stops] == ["b", "a"]


def test_a_timeout_leaves_out_what_has_not_ended(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    plays(monkeypatch, a=["running"], b=["completed"])
    packets = [home.packet("a"), home.packet("b")]
    view = Recorder()
    stops = list(loop.follow(packets, view, until=is_completed, timeout_s=0.0))
    assert [stop.packet.task_id for stop in stops] == ["b"]
    assert view.is_closed


def test_a_home_that_is_down_is_mentioned_once(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    plays(monkeypatch, a=["queued", "queued", "completed"], b=["queued", "queued", "completed"])
    with open(home.down, "w", encoding="utf-8"):
        pass
    view = Recorder()
    list(loop.follow([home.packet("a"), home.packet("b")], view, until=is_completed))
    assert len(view.said) == 1
    assert view.said[0].startswith("this home is down")


@pytest.mark.parametrize("stays", [False, True])
def test_a_lost_runner_ends_it_unless_it_stays(
    home: Home, monkeypatch: pytest.MonkeyPatch, stays: bool
) -> None:
    plays(monkeypatch, a=["running", "running", "running", "completed"])

    def poll(self: Any, packet: Packet, status: str) -> bool:
        was, self.is_lost = self.is_lost, True
        return not was

    monkeypatch.setattr("holdfast.views.recovery.LostRunnerWatch.poll", poll)
    view = Recorder()
    (stop,) = loop.follow([home.packet("a")], view, until=is_completed, stays=stays)
    assert stop.is_lost is not stays
    assert stop.manifest["status"] == ("completed" if stays else "running")
    assert len(view.said) == int(stays)
