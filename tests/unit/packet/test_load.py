"""Reading packets: which of them need a runner."""

from __future__ import annotations

import os

import pytest

from holdfast.model.spec import Limits, StageSpec, TaskSpec
from holdfast.model.status import ENDS, Status
from holdfast.packet import inbox, load
from holdfast.packet.create import create
from holdfast.paths import ensure_home
from holdfast.store import atomic
from holdfast.store.layout import Home, Packet


@pytest.fixture
def packet(home: str) -> Packet:
    ensure_home(home)
    spec = TaskSpec(
        task_id="it", task_name="it", goal="", agent="command", command=["true"], project_dir=home,
        stages=(StageSpec(name="command_run", agent="command"),), limits=Limits(),
    )  # fmt: skip
    return create(Home(home), spec, prompt=None, env={"env": {}}, status=Status.SPAWNING)


@pytest.mark.parametrize("status", Status)
def test_a_task_needs_a_runner_until_it_is_parked_or_its_end_is_marked(
    packet: Packet, status: Status
) -> None:
    is_parked = status in (Status.QUEUED, Status.INTERRUPTED)
    assert load.is_live(packet, status) is not is_parked
    if status in ENDS:
        atomic.write_json(packet.task_done, {}, durable=False)
        assert not load.is_live(packet, status)


@pytest.mark.parametrize("status", Status)
def test_a_request_needs_a_runner_whatever_the_state(packet: Packet, status: Status) -> None:
    atomic.write_json(packet.task_done, {}, durable=False)
    inbox.drop(packet, "retry", {}, by="a test")
    assert load.is_live(packet, status)


def test_the_archive_is_listed_only_for_a_text_with_which_no_live_task_begins(
    packet: Packet, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = packet.home
    for name in ("i", "other"):
        os.makedirs(home.archived(name).path)
    listed: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (listed.append(path), scandir(path))[1])
    assert load.find(home, "it", archived=True).path == packet.path
    os.rename(packet.path, f"{packet.path}-2")
    assert load.find(home, "it", archived=True).path == f"{packet.path}-2"
    assert home.archive not in listed
    # The id of an archived task means no other one.
    assert load.find(home, "i", archived=True).path == home.archived("i").path
    assert home.archive not in listed
    assert load.find(home, "oth", archived=True).path == home.archived("other").path
    assert home.archive in listed
