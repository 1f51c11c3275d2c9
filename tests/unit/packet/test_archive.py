"""The archive: a task that has ended is put away, and one that a person has just retried is not."""

from __future__ import annotations

import os
import threading

import pytest

from holdfast import clock
from holdfast.errors import HoldfastError, NotPossible
from holdfast.model.spec import Limits, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.packet import archive, inbox
from holdfast.packet.create import create
from holdfast.paths import ensure_home
from holdfast.store import atomic
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet


@pytest.fixture
def packet(home: str) -> Packet:
    ensure_home(home)
    spec = TaskSpec(
        task_id="it", task_name="it", goal="", agent="command", command=["true"], project_dir=home,
        stages=(StageSpec(name="command_run", agent="command"),), limits=Limits(),
    )  # fmt: skip
    packet = create(Home(home), spec, prompt=None, env={"env": {}}, status=Status.COMPLETED)
    atomic.write_json(packet.task_done, {}, durable=False)
    return packet


def test_a_retry_that_comes_while_the_archive_waits_for_the_runner_is_not_put_away(
    packet: Packet, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[HoldfastError] = []

    def put_away() -> None:
        try:
            archive.archive(packet)
        except HoldfastError as error:
            errors.append(error)

    def noted_sleep(seconds: float) -> None:
        waits.set()
        sleep(seconds)

    waits, sleep = threading.Event(), clock.sleep
    monkeypatch.setattr(clock, "sleep", noted_sleep)
    lock = locks.acquire(packet.runner_lock, role="runner")
    thread = threading.Thread(target=put_away)
    thread.start()
    # It has looked once when it waits for the lock.
    assert waits.wait(10)
    inbox.drop(packet, "retry", {}, by="a test")
    lock.release()
    thread.join(10)
    assert [type(error) for error in errors] == [NotPossible]
    assert os.path.isdir(packet.path)


def test_what_has_ended_is_put_away(packet: Packet) -> None:
    put_away = archive.archive(packet)
    assert os.path.exists(put_away.task_done)
    assert not os.path.exists(packet.path)
    assert not os.path.exists(put_away.env)
