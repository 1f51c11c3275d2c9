"""Wait for the death of a process.

`watch_death(identity)` returns a pidfd watch (Linux), a kqueue watch (macOS, BSD), or one that must be
polled. All of them work for processes that are not our children, such as an adopted agent.
"""

from __future__ import annotations

import os
import select
import sys

from holdfast.model.process import ProcessIdentity
from holdfast.store.process import exit_status, is_alive, start_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class DeathWatch(Protocol):
        """Waits for the end of one process."""

        #: Readable when the process is gone; -1 if the watch must be polled.
        descriptor: int

        def has_died(self) -> bool:
            """Whether the process is gone."""
            ...

        def exit_status(self) -> int | None:
            """The status from wait(2) of a process that is gone; None if the kernel tells only its parent."""
            ...

        def close(self) -> None:
            """Stop watching."""
            ...


#: Poll interval of a watch without a descriptor.
POLL_S = 0.1


def watch_death(identity: ProcessIdentity) -> DeathWatch:
    """The best watch that this machine supports. The process may be gone already."""
    if hasattr(os, "pidfd_open"):
        return _PidfdWatch.open(identity) or PollWatch(identity)
    if sys.platform != "linux" and hasattr(select, "kqueue"):
        return _KqueueWatch.open(identity) or PollWatch(identity)
    return PollWatch(identity)


class _PidfdWatch:
    def __init__(self, identity: ProcessIdentity, descriptor: int) -> None:
        self.identity = identity
        self.descriptor = descriptor

    @classmethod
    def open(cls, identity: ProcessIdentity) -> _PidfdWatch | None:
        if not is_alive(identity):
            return None
        try:
            descriptor = os.pidfd_open(identity.pid)
        except OSError:
            return None
        # The pid may have been reused between the check and the call: check again.
        if start_time(identity.pid) != identity.start_time:
            os.close(descriptor)
            return None
        return cls(identity, descriptor)

    def has_died(self) -> bool:
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        return bool(poll.poll(0)) or not is_alive(self.identity)

    def exit_status(self) -> int | None:
        return exit_status(self.identity, self.descriptor)

    def close(self) -> None:
        os.close(self.descriptor)


if sys.platform != "linux":

    class _KqueueWatch:
        def __init__(self, identity: ProcessIdentity, queue: select.kqueue) -> None:
            self.identity = identity
            self.queue = queue
            self.descriptor = queue.fileno()

        @classmethod
        def open(cls, identity: ProcessIdentity) -> _KqueueWatch | None:
            queue = select.kqueue()
            exit_of = select.kevent(
                identity.pid,
                select.KQ_FILTER_PROC,
                select.KQ_EV_ADD | select.KQ_EV_ONESHOT,
                select.KQ_NOTE_EXIT,
            )
            try:
                queue.control([exit_of], 0)
            except OSError:
                queue.close()
                return None
            return cls(identity, queue)

        def has_died(self) -> bool:
            return not is_alive(self.identity)

        def exit_status(self) -> int | None:
            return None

        def close(self) -> None:
            self.queue.close()


class PollWatch:
    """For systems without anything better, and if no descriptor is left."""

    def __init__(self, identity: ProcessIdentity) -> None:
        self.identity = identity
        self.descriptor = -1

    def has_died(self) -> bool:
        """Whether the process is gone."""
        return not is_alive(self.identity)

    def exit_status(self) -> int | None:
        """See DeathWatch."""
        return exit_status(self.identity)

    def close(self) -> None:
        """Nothing to close."""
        return
