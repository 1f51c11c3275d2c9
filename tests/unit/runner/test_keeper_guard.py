"""The runner's guard of the keeper."""

from __future__ import annotations

import os
from typing import Any

import pytest

from holdfast.runner.loop.keeper_guard import KeeperGuard
from holdfast.store.layout import Packet
from tests.support.waiting import eventually


def _guard(folder: os.PathLike[str]) -> KeeperGuard:
    waiter: Any = None  # nothing is watched here
    return KeeperGuard(Packet(os.path.join(folder, "home", "tasks", "t")), waiter, 1.0)


@pytest.mark.starts_processes
def test_a_keeper_that_was_reaped_is_forgotten(tmp_path: os.PathLike[str]) -> None:
    """By then its pid may belong to another child, which other code waits for."""
    guard = _guard(tmp_path)
    child = os.fork()
    if not child:
        os._exit(0)
    guard._child = child
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    guard._reap()
    assert guard._child is None
    with pytest.raises(ChildProcessError):
        os.waitpid(child, os.WNOHANG)


@pytest.mark.starts_processes
def test_a_keeper_that_lives_is_reaped_later(tmp_path: os.PathLike[str]) -> None:
    guard = _guard(tmp_path)
    ready, go = os.pipe()
    child = os.fork()
    if not child:
        os.close(go)
        os.read(ready, 1)
        os._exit(0)
    os.close(ready)
    guard._child = child
    guard._reap()
    assert guard._child == child
    os.close(go)

    def is_forgotten() -> bool:
        guard._reap()
        return guard._child is None

    eventually(is_forgotten, 10, "it is reaped")
