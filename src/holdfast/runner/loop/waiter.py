"""Waiting: one place where a runner sleeps, and all that can wake it."""

from __future__ import annotations

import os
import select

from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from types import FrameType
else:
    # In C; and poll itself, not what `selectors` makes of it: both are loaded before an agent starts.
    import _signal as signal

#: Signals that mean: let go of the task, it goes on without you. By name: a handler that looked it up would have to load what the
#: code that it interrupts may be in the middle of loading.
DETACH: dict[int, str] = {signal.SIGTERM: "SIGTERM", signal.SIGINT: "SIGINT", signal.SIGHUP: "SIGHUP"}


class Waiter:
    """Sleeps until a descriptor is ready, a signal comes, or the time is over."""

    def __init__(self, packet: Packet) -> None:
        self._poll = select.poll()
        self._names: dict[int, str] = {}
        # Open for writing too: the last ringer's close must not leave an end of file that is ready for ever.
        self._bell = os.open(packet.bell, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self.watch(self._bell, "bell")
        self._woken, self._wake = os.pipe()
        for descriptor in (self._woken, self._wake):
            os.set_blocking(descriptor, False)
        self.watch(self._woken, "signal")
        #: The signal that asked us to leave.
        self.detached_by: str | None = None
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in DETACH:
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.detached_by = DETACH[number]

    def watch(self, descriptor: int, name: str) -> None:
        """Wake up when `descriptor` is readable, and say `name`."""
        self._poll.register(descriptor, select.POLLIN)
        self._names[descriptor] = name

    def unwatch(self, descriptor: int) -> None:
        """Do not wake up for it any more."""
        if self._names.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def wait(self, timeout_s: float) -> set[str]:
        """Sleep; returns the names of what is ready, empty when the time was over."""
        ready = {self._names[descriptor] for descriptor, _ in self._poll.poll(max(0.0, timeout_s) * 1000)}
        for name, descriptor in (("bell", self._bell), ("signal", self._woken)):
            if name in ready:
                _drain(descriptor)
        return ready

    def close(self) -> None:
        """Stop listening: from now on a ring gets ENXIO."""
        signal.set_wakeup_fd(-1)
        for descriptor in (self._bell, self._woken, self._wake):
            os.close(descriptor)


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        return
