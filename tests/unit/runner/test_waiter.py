"""What wakes a runner, and what makes it leave."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from holdfast.runner.wake.waiter import DETACH, Waiter
from holdfast.store.layout import Packet


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_understood_while_modules_are_being_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The handler loads nothing: what it would load may be half loaded by the code that it interrupts."""
    packet = Packet(str(tmp_path))
    os.mkfifo(packet.bell)
    before = {each: signal.getsignal(each) for each in DETACH}
    waiter = Waiter(packet)
    try:
        monkeypatch.setitem(sys.modules, "signal", None)
        os.kill(os.getpid(), number)
        assert waiter.wait(5.0) == {"signal"}
        assert waiter.detached_by == signal.Signals(number).name
    finally:
        waiter.close()
        for each, handler in before.items():
            signal.signal(each, handler)
