"""holdfast wait: until tasks have ended, or need a person."""

from __future__ import annotations

from holdfast import clock, paths
from holdfast.errors import Unanswered
from holdfast.model.status import EXIT_STATUS, Status
from holdfast.packet import load, runner_lost
from holdfast.store.layout import Home
from holdfast.views.cli.parse import option_values
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.show import fit_text, home_down, out
from holdfast.views.wake import LostWatch, Waker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Packet

COMMAND = Command(
    name="wait",
    summary="Wait until tasks have ended, or need a person.",
    description="Prints each task and its state as it settles. The exit status is that of the first task, in the order "
    "given, that did not complete; 0 when all did (see 'holdfast help exit-codes'). It ends with 4, too, where a task has lost "
    "its runner and the home is down.",
    examples=(
        "holdfast wait 20260131-fix --timeout 10m",
        "holdfast wait --any one two three",
        "holdfast wait $(holdfast ls -q --state running)",
    ),
    arguments=(Argument(dest="task", metavar="TASK…", many=True, completes="task"),),
    options=(
        Option(
            flags=("--timeout",), dest="timeout", metavar="TIME", help="Give up after this long (exit 6)."
        ),
        Option(flags=("--any",), dest="any", kind="flag", help="Return when the first of them has settled."),
        JSON.evolve(help="Print the manifest of each task as it settles, one a line."),
    ),
)

#: How often the queue is asked about tasks that wait in it.
_STUCK_LOOK_S = 1.0


def run(values: dict[str, Any]) -> int:
    """Wait; the exit status says how it ended."""
    home = Home(paths.home())
    packets = [load.find(home, text, archived=True) for text in dict.fromkeys(values["task"])]
    timeout_s = option_values.duration(values["timeout"], "--timeout", "10m")
    settled: dict[str, int] = {}
    for packet, manifest in _as_they_settle(packets, timeout_s):
        # Whoever cannot be told in words is told by the exit status.
        out.task_line(f"{packet.task_id} {manifest['status']}", manifest if values["json"] else None)
        # One that is held in the queue, or nobody drives, waits for a person, as an interrupted one does.
        settled[packet.path] = EXIT_STATUS.get(Status(manifest["status"]), EXIT_STATUS[Status.INTERRUPTED])
        if values["any"]:
            return settled[packet.path]
    return next((settled[packet.path] for packet in packets if settled[packet.path]), 0)


def _as_they_settle(packets: list[Packet], timeout_s: float | None) -> Any:
    """Poll the manifests; cheap, and it works when no process of ours lives."""
    ends_mono = None if timeout_s is None else clock.mono() + timeout_s
    pause_s = 0.005
    left = list(packets)
    is_told = False
    stuck_mono = clock.mono()
    wakers = {packet.path: Waker() for packet in packets}
    watches = {packet.path: LostWatch() for packet in packets}
    while True:
        for packet in list(left):
            there = load.wherever(packet)  # a task may be put away as soon as it has ended
            manifest = load.read_manifest(there)
            if load.is_settled(there, manifest):
                left.remove(packet)
                yield packet, manifest
                continue
            if manifest["status"] == Status.QUEUED and clock.mono() >= stuck_mono and _is_stuck(packet):
                left.remove(packet)
                yield packet, manifest
                continue
            if watches[packet.path].look(packet, manifest["status"]):
                out.talk(home_down.runner_lost(packet, manifest["status"]))
                left.remove(packet)
                yield packet, manifest
                continue
            if home_down.holds_back(packet, manifest) and not is_told:
                out.talk(home_down.QUEUE_WAITS)
                is_told = True
            wakers[packet.path].look(packet, manifest["status"])
        if not left:
            return
        if clock.mono() >= stuck_mono:
            stuck_mono = clock.mono() + _STUCK_LOOK_S
        if ends_mono is not None and clock.mono() >= ends_mono:
            status = load.read_manifest(left[0])["status"]
            others = (
                f", and {len(left) - 1} more {'has' if len(left) == 2 else 'have'} not ended"
                if left[1:]
                else ""
            )
            raise Unanswered(
                f"{left[0].task_id} is still {status}{others}",
                hint=home_down.RUNNER_LOST
                if runner_lost.is_lost(left[0], status)
                else f"it goes on; wait again, or look with 'holdfast show {left[0].task_id}'",
            )
        clock.sleep(pause_s)
        pause_s = min(pause_s * 1.3, 0.2)


def _is_stuck(packet: Packet) -> bool:
    """Whether its turn never comes by itself; says why."""
    from holdfast.views.cli.queue import wait_reason

    item, paused = wait_reason.find_item(packet.home, packet.task_id)
    if item is None or item.state not in wait_reason.NEEDS_PERSON:
        return False
    out.talk(
        fit_text.printable(
            f"{packet.task_id} is {item.state}: {wait_reason.reason(item, paused)}; 'holdfast queue retry {packet.task_id}' lets it go"
        )
    )
    return True
