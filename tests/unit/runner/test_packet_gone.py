"""A packet is gone if, at two checks, its directory has no name left and is not at its path."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from holdfast import clock
from holdfast.runner.wake.packet_gone import CONFIRM_S, PacketWatch
from holdfast.store import lock as locks
from holdfast.store.layout import Packet


def test_only_what_was_removed_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packet = Packet(str(tmp_path / "tasks" / "it"))
    os.makedirs(packet.path)
    vanished = PacketWatch(packet, locks.acquire(packet.runner_lock, role="runner"))
    now_mono = 100.0
    monkeypatch.setattr(clock, "mono", lambda: now_mono)
    assert not vanished.is_suspected()
    # Away, and back: the directory still has a name somewhere.
    os.rename(tmp_path / "tasks", tmp_path / "away")
    assert not vanished.is_suspected()
    os.rename(tmp_path / "away", tmp_path / "tasks")
    # An agent that removes the lock alone has not removed the packet, wherever that is.
    os.unlink(packet.runner_lock)
    assert not vanished.is_suspected()
    os.rename(tmp_path / "tasks", tmp_path / "away")
    assert not vanished.is_suspected()
    os.rename(tmp_path / "away", tmp_path / "tasks")
    shutil.rmtree(packet.path)
    assert vanished.is_suspected()
    assert not vanished.is_certain()
    now_mono += CONFIRM_S
    assert vanished.is_certain()
    # Another directory in its place is not ours.
    os.mkdir(packet.path)
    assert vanished.is_certain()
    assert vanished.is_lost
