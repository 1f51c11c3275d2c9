"""Recovery of a watched task: start a keeper if it has no runner, or notice that no runner will come.

All holdfast processes of the home may have been killed since the task was started.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.status import Status
from holdfast.packet.runner_gone import is_gone, is_gone_for_good
from holdfast.spawn import ensure_keeper, keeper_failures
from holdfast.store import lock as locks
from holdfast.store.layout import Packet

_KEEPER_CHECK_S = 2.0
#: A check costs two lock tests.
_LOST_CHECK_S = 0.5
#: Keepers in a row that died before they had worked: about half a minute after the first start.
_KEEPERS_DIED = 4


class KeeperStarter:
    """Starts a keeper when a task has lost its runner, or is queued and no keeper is alive."""

    def __init__(self) -> None:
        #: The first start ignores the keeper's backoff; later ones obey it, or a broken keeper would be
        #: respawned in a loop.
        self._by_person = True
        # Not at once: a runner may just be replacing another.
        self._due_mono = clock.mono() + _KEEPER_CHECK_S / 4

    def poll(self, packet: Packet, status: str) -> None:
        """Check if it is time; called in a watcher's loop."""
        if clock.mono() < self._due_mono:
            return
        self._due_mono = clock.mono() + _KEEPER_CHECK_S
        try:
            if is_gone(packet, status) or _has_no_keeper(packet, status):
                ensure_keeper(packet.home, by_person=self._by_person)
                self._by_person = False
        except (OSError, HoldfastError):
            return  # watching does not depend on it


class LostRunnerWatch:
    """Detects a task without a runner in a home that is down, or whose keepers die as well: it does not
    continue before `holdfast up`."""

    def __init__(self) -> None:
        self._due_mono = clock.mono()
        self._is_suspected = False
        #: True after two checks in a row: one runner may just be replacing another.
        self.is_lost = False

    def poll(self, packet: Packet, status: str) -> bool:
        """Check if it is time; called in a watcher's loop. Returns True once, when the runner is lost."""
        if clock.mono() < self._due_mono:
            return False
        self._due_mono = clock.mono() + _LOST_CHECK_S
        try:
            is_lost_now = is_gone_for_good(packet, status) or _keepers_die(packet, status)
        except HoldfastError:
            return False
        was_lost, self.is_lost = self.is_lost, is_lost_now and self._is_suspected
        self._is_suspected = is_lost_now
        return self.is_lost and not was_lost


def _keepers_die(packet: Packet, status: str) -> bool:
    """Whether its runner is gone, and the keepers that should start another die before they can."""
    return (
        is_gone(packet, status)
        and not locks.is_held(packet.home.keeper_lock)
        and keeper_failures(packet.home) >= _KEEPERS_DIED
    )


def _has_no_keeper(packet: Packet, status: str) -> bool:
    """Whether the task is queued and there is no keeper to start it."""
    return status == Status.QUEUED and not locks.is_held(packet.home.keeper_lock)
