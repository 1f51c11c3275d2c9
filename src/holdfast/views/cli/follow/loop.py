"""The loop that follows tasks, for `run`, `attach` and `logs -f`.

(`wait` may have a thousand: `views/settle`.) It polls the manifests: that is cheap, and works when no
other holdfast process is alive.
"""

from __future__ import annotations

from holdfast import clock
from holdfast.packet import load
from holdfast.store.layout import Packet
from holdfast.views.cli.show import out
from holdfast.views.output_refresh import OutputRefresher
from holdfast.views.settle import Settled, Watched
from holdfast.views.text import home_down

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    Until = Callable[[Packet, dict[str, Any]], bool]

#: The first pause between two rounds. Each is longer than the one before, up to the view's `pause_s`.
_FIRST_PAUSE_S, _LONGER = 0.005, 1.3


class View:
    """What a follower shows. This one shows messages only."""

    #: Whether the readable log is shown, so that the runner has to keep it up to date.
    shows_output = False
    #: The longest pause between two rounds.
    pause_s = 0.2

    def show(self, packet: Packet, manifest: dict[str, Any], *, is_last: bool) -> None:
        """Show what is new. With `is_last`, the task is not followed any further."""

    def say(self, text: str) -> None:
        """Print a message."""
        out.talk(text)

    def close(self) -> None:
        """Leave the terminal as it was. May be called twice."""


def follow(
    packets: Sequence[Packet],
    view: View,
    *,
    until: Until = load.is_settled,
    stays: bool = False,
    timeout_s: float | None = None,
) -> Iterator[Settled]:
    """Follow each task until `until` is true for it, or nothing will drive it any more; yield it then.

    With `stays`, a task without a runner is followed further: someone may type `holdfast up`. Ends early,
    without the remaining tasks, after `timeout_s`.
    """
    ends_mono = None if timeout_s is None else clock.mono() + timeout_s
    pause_s = _FIRST_PAUSE_S
    has_said_down = False
    watched = [_Followed(packet) for packet in packets]
    try:
        while True:
            for each in list(watched):
                settled = each.round(view, until, stays=stays)
                if settled is not None:
                    watched.remove(each)
                    yield settled
                elif not has_said_down and each.watched.is_held_back:
                    has_said_down = True
                    view.say(home_down.QUEUE_WAITS)
            if not watched or (ends_mono is not None and clock.mono() >= ends_mono):
                return
            clock.sleep(pause_s)
            pause_s = min(pause_s * _LONGER, view.pause_s)
    finally:
        view.close()


def follow_one(
    packet: Packet, view: View, *, until: Until = load.is_settled, stays: bool = False
) -> dict[str, Any]:
    """Follow one task; returns its last manifest."""
    (settled,) = follow([packet], view, until=until, stays=stays)
    return settled.manifest


class _Followed:
    """One task, and what a follower does for it: look after it, and keep its log up to date."""

    def __init__(self, packet: Packet) -> None:
        self.watched, self._refresher = Watched(packet), OutputRefresher()

    def round(self, view: View, until: Until, *, stays: bool) -> Settled | None:
        """Look after it, and show what is new."""
        watched, packet = self.watched, self.watched.packet
        # The manifest is read first: output from before the end is then shown below.
        settled = watched.look(until, stays=view.say if stays else None)
        view.show(packet, watched.manifest, is_last=settled is not None)
        if settled is not None:
            return settled
        watched.care()
        if view.shows_output:
            self._refresher.poll(packet, watched.manifest["status"])
        return None
