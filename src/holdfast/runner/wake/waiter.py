"""The only place where a runner sleeps, and everything that can wake it."""

from __future__ import annotations

import os
import select

from holdfast import files
from holdfast.packet import inbox
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from types import FrameType
else:
    # The C module, and poll instead of `selectors`: import time delays the start of the agent.
    import _signal as signal

#: Signals that detach the runner; its agent keeps running. Names are listed here because a signal handler
#: must not import anything: the interrupted code may hold the import lock.
DETACH: dict[int, str] = {signal.SIGTERM: "SIGTERM", signal.SIGINT: "SIGINT", signal.SIGHUP: "SIGHUP"}


#: Sent when something was written in a directory that `watch.growth` watches.
_WRITTEN = signal.SIGIO
#: Sent when something changed beside the interrupt files (`interrupt_file_watch`). By default it is ignored.
INTERRUPT_FILE = signal.SIGURG


class Waiter:
    """Sleeps until a descriptor is ready, a signal arrives, or the timeout expires."""

    def __init__(self, packet: Packet) -> None:
        self._poll = select.poll()
        self._names: dict[int, str] = {}
        #: Names that a SIGIO is reported as.
        self._growing: set[str] = set()
        self._bell = inbox.open_bell(packet.bell)
        self.watch(self._bell, "bell")
        self._woken, self._wake = os.pipe()
        for descriptor in (self._woken, self._wake):
            os.set_blocking(descriptor, False)
        self.watch(self._woken, "signal")
        #: The signal that detached us.
        self.detached_by: str | None = None
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in DETACH:
            signal.signal(number, self._on_signal)
        for number in (_WRITTEN, INTERRUPT_FILE):
            signal.signal(number, _do_nothing)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.detached_by = DETACH[number]

    def watch(self, descriptor: int, name: str) -> None:
        """Wake up when `descriptor` is readable, and report it as `name`."""
        self._poll.register(descriptor, select.POLLIN)
        self._names[descriptor] = name

    def unwatch(self, descriptor: int) -> None:
        """Stop waking up for `descriptor`."""
        if self._names.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def watch_writes(self, name: str) -> None:
        """Wake up at SIGIO, and report it as `name`. Several names may be watched, and each is reported."""
        self._growing.add(name)

    def unwatch_writes(self, name: str) -> None:
        """Stop reporting SIGIO as `name`."""
        self._growing.discard(name)

    def wait(self, timeout_s: float) -> set[str]:
        """Sleep. Returns the names of ready descriptors; empty after a timeout."""
        ready = {self._names[descriptor] for descriptor, _ in self._poll.poll(max(0.0, timeout_s) * 1000)}
        if "bell" in ready:
            files.drain(self._bell)
        if "signal" in ready:
            numbers = set(files.drain(self._woken))
            if _WRITTEN in numbers:
                ready |= self._growing
            if numbers <= {_WRITTEN, INTERRUPT_FILE}:
                ready.discard("signal")
        return ready

    def close(self) -> None:
        """Close the bell (ringing it then fails with ENXIO) and the signal pipe."""
        signal.set_wakeup_fd(-1)
        for descriptor in (self._bell, self._woken, self._wake):
            os.close(descriptor)


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """Its byte in the pipe is enough."""
