"""Wait until tasks have settled, for `wait`: it reads a manifest only when that has changed."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.store import lock as locks
from holdfast.store.layout import Home, Packet
from holdfast.views.cli.follow.loop import Stop, View, Watched
from holdfast.views.text import home_down

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Protocol

    class Until(Protocol):
        """Whether a task has settled."""

        def __call__(self, packet: Packet, manifest: dict[str, Any]) -> bool:
            """For the task with this manifest."""
            ...

        def others(self) -> set[str]:
            """Tasks that may have settled although nothing in their packets changed."""
            ...


#: How often everything else is looked at: the queue, and tasks without a runner, with and without a keeper.
_LOOK_S, _CARE_S, _KEPT_S = 0.5, 0.5, 5.0


def settle(
    home: Home, packets: Sequence[Packet], until: Until, *, timeout_s: float | None = None
) -> Iterator[Stop]:
    """Yield each task when `until` is true for it, or nothing will drive it any more.

    Ends early, without the remaining tasks, after `timeout_s`.
    """
    ends_mono = float("inf") if timeout_s is None else clock.mono() + timeout_s
    view = View()
    watched = {packet.task_id: Watched(packet) for packet in packets}
    yield from _round(watched, set(watched), view, until, changed=set(watched))
    if not watched or clock.mono() >= ends_mono:
        return
    from holdfast.views.facts.changes import Changes  # not needed for tasks that have settled

    changes = Changes(home, only=watched)
    changed, due, cared_mono = set(watched), set(watched), clock.mono()
    has_said_down = False
    try:
        while True:
            yield from _round(watched, due, view, until, changed=changed)
            if not has_said_down and any(each.is_held_back for each in watched.values()):
                has_said_down = True
                view.say(home_down.QUEUE_WAITS)
            if not watched or clock.mono() >= ends_mono:
                return
            changed = changes.wait(min(_LOOK_S, max(0.0, ends_mono - clock.mono())))
            due = changed | until.others()
            if clock.mono() - cared_mono >= (_KEPT_S if _is_kept(home) else _CARE_S):
                due, cared_mono = due | watched.keys(), clock.mono()
    finally:
        changes.close()


def _round(
    watched: dict[str, Watched], due: set[str], view: View, until: Until, *, changed: set[str]
) -> Iterator[Stop]:
    for task_id in [task_id for task_id in watched if task_id in due]:
        stop = watched[task_id].round(view, until, stays=False, reads=task_id in changed)
        if stop is not None:
            del watched[task_id]
            yield stop


def _is_kept(home: Home) -> bool:
    """Whether a keeper looks after tasks that lose their runner."""
    return not os.path.exists(home.down) and locks.is_held(home.keeper_lock)
