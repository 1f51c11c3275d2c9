"""Wait until tasks have stopped, and say what they wait for."""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import HoldfastError
from holdfast.model.status import ENDS, EXIT_STATUS, Status
from holdfast.packet import load
from holdfast.store.layout import Packet
from holdfast.views.cli.follow import loop
from holdfast.views.cli.show import out
from holdfast.views.requests import Insistence
from holdfast.views.text import home_down

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

#: When what is waited for is said first, and how often after that.
_FIRST_S, _EVERY_S = 1.0, 10.0
#: Tasks that are named each time.
_NAMED = 5


def has_ended(packet: Packet, manifest: dict[str, Any]) -> bool:
    """Whether the task has ended and its last file is written."""
    return manifest["status"] in ENDS and load.is_settled(packet, manifest)


def wait(
    packets: Sequence[Packet],
    until: loop.Until,
    report: Callable[[Packet, dict[str, Any]], None],
    *,
    kills: bool = False,
) -> int:
    """Wait until `until` is true for each task, and report each then. Returns the exit status.

    With `kills`, a runner that does nothing is killed, and another is started.
    """
    status, left = 0, {packet.task_id: packet for packet in packets}
    try:
        for stop in loop.follow(packets, _StoppingView(kills=kills), until=until):
            del left[stop.packet.task_id]
            if stop.is_lost:
                out.talk(home_down.runner_lost(stop.packet, stop.manifest["status"]))
                status = EXIT_STATUS[Status.INTERRUPTED]
            else:
                report(load.wherever(stop.packet), stop.manifest)
    except KeyboardInterrupt:
        ids = " ".join(left)
        out.talk(f"not waiting any more; the request is pending: 'holdfast wait {ids}' waits for it")
        raise
    return status


class _StoppingView(loop.View):
    """A message about each task that takes longer than a moment."""

    def __init__(self, *, kills: bool) -> None:
        self._kills = kills
        self._insistence: dict[str, Insistence] = {}
        self._due_mono = clock.mono() + _FIRST_S
        self._waiting: dict[str, tuple[Packet, dict[str, Any]]] = {}

    def show(self, packet: Packet, manifest: dict[str, Any], *, is_last: bool) -> None:
        """Note the task; when a message is due and this is the last of a round, print all."""
        if is_last:
            self._waiting.pop(packet.task_id, None)
            return
        if self._kills:
            self._insist(packet)
        is_new_round = next(iter(self._waiting), None) == packet.task_id
        if is_new_round and clock.mono() >= self._due_mono:
            self._due_mono = clock.mono() + _EVERY_S
            self._print()
        self._waiting[packet.task_id] = packet, manifest

    def _insist(self, packet: Packet) -> None:
        if packet.task_id not in self._insistence:
            self._insistence[packet.task_id] = Insistence(packet)
        self._insistence[packet.task_id].look()

    def _print(self) -> None:
        for packet, manifest in list(self._waiting.values())[:_NAMED]:
            self.say(f"{packet.task_id}: {_waits_for(packet, manifest, clock.now())}")
        if len(self._waiting) > _NAMED:
            self.say(f"and {len(self._waiting) - _NAMED} more tasks")


def _waits_for(packet: Packet, manifest: dict[str, Any], now: float) -> str:
    """`waiting for claude (process 12) to exit; it is killed in 8s`."""
    stopping: dict[str, Any] | None = manifest.get("stopping")
    if manifest["status"] in ENDS:
        return "waiting for its last files"
    if stopping is None:
        return f"waiting for its runner; the task is {manifest['status']}"
    if not manifest.get("pid"):
        return "ending what its agent left running"
    line = f"waiting for {manifest['agent']} (process {manifest['pid']}) to exit"
    if stopping["kills"]:
        return f"{line} after KILL"
    left_s = clock.parse_iso(stopping["since"]) + _grace_s(packet, manifest) - now
    line += f"; it is killed in {clock.duration_text(max(0.0, left_s))}"
    if stopping["intent"] == "stop":
        line += f" ('holdfast stop {packet.task_id}' again kills it now)"
    return line


def _grace_s(packet: Packet, manifest: dict[str, Any]) -> float:
    """How long the agent may take to exit before it is killed."""
    from holdfast.agents import registry  # only for a stop that takes long

    try:
        steps = registry.adapter(manifest["agent"]).capabilities.stop
        pause_s = load.fold(packet).spec.limits.stop_pause_s
    except HoldfastError:
        return 0.0
    return sum(step.pause_s if pause_s is None else pause_s for step in steps if step.signal != "KILL")
