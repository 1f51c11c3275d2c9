"""The runner's restarter of the keeper."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from holdfast import clock
from holdfast.runner.wake.restart_keeper import KeeperRestarter
from holdfast.runner.wake.waiter import Waiter
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet
from tests.support.waiting import eventually


def _restarter(folder: os.PathLike[str]) -> KeeperRestarter:
    waiter: Any = None  # nothing is watched here
    return KeeperRestarter(Packet(os.path.join(folder, "home", "tasks", "t")), waiter, 1.0)


@pytest.mark.starts_processes
def test_a_keeper_that_was_reaped_is_forgotten(tmp_path: os.PathLike[str]) -> None:
    """By then its pid may belong to another child, which other code waits for."""
    restarter = _restarter(tmp_path)
    child = os.fork()
    if not child:
        os._exit(0)
    restarter._child = child
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    restarter._reap()
    assert restarter._child is None
    with pytest.raises(ChildProcessError):
        os.waitpid(child, os.WNOHANG)


@pytest.mark.starts_processes
def test_a_keeper_that_lives_is_reaped_later(tmp_path: os.PathLike[str]) -> None:
    restarter = _restarter(tmp_path)
    ready, go = os.pipe()
    child = os.fork()
    if not child:
        os.close(go)
        os.read(ready, 1)
        os._exit(0)
    os.close(ready)
    restarter._child = child
    restarter._reap()
    assert restarter._child == child
    os.close(go)

    def is_forgotten() -> bool:
        restarter._reap()
        return restarter._child is None

    eventually(is_forgotten, 10, "it is reaped")


def test_a_runner_that_wakes_up_for_its_heartbeat_needs_not_wake_up_again_for_the_keeper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_mono = 1000.0
    monkeypatch.setattr(clock, "mono", lambda: now_mono)
    packet = Home(str(tmp_path)).packet("t")
    os.makedirs(packet.path)
    os.mkfifo(packet.bell)
    os.mkfifo(packet.home.keeper_bell)
    keeper = locks.acquire(packet.home.keeper_lock, role="keeper")
    waiter = Waiter(packet)
    restarter = KeeperRestarter(packet, waiter, 30.0)
    now_mono += 1.0
    assert restarter.check(set()) == 60.0
    for _ in range(3):
        now_mono += 30.1
        assert restarter.check(set()) == 60.0
    restarter.close()
    waiter.close()
    keeper.release()


def test_a_home_that_may_have_no_keeper_wakes_no_runner_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_KEEPER", "off")
    now_mono = 1000.0
    monkeypatch.setattr(clock, "mono", lambda: now_mono)
    waiter: Any = None
    restarter = KeeperRestarter(Packet(str(tmp_path / "home" / "tasks" / "t")), waiter, 30.0)
    now_mono += 5.0
    assert restarter.check(set()) == 30.0
