"""holdfast wait: wait until tasks have ended or need a person."""

from __future__ import annotations

from holdfast import clock, paths
from holdfast.errors import Unanswered
from holdfast.model.status import EXIT_STATUS, Status
from holdfast.packet import load, runner_gone
from holdfast.store.layout import Home
from holdfast.views.cli.parse import option_values
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.show import fit_text, home_down, out
from holdfast.views.recovery import KeeperStarter, LostRunnerWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.store.layout import Packet

COMMAND = Command(
    name="wait",
    summary="Wait until tasks have ended or need a person.",
    description="Prints each task with its state. The exit status is that of the first task in the given "
    "order that did not complete, or 0 ('holdfast help exit-codes'). A task that lost its runner in a home "
    "that is down counts as 4.",
    examples=(
        "holdfast wait 20260131-fix --timeout 10m",
        "holdfast wait --any one two three",
        "holdfast wait $(holdfast ls -q --state running)",
    ),
    arguments=(Argument(dest="task", metavar="TASK…", many=True, completes="task"),),
    options=(
        Option(
            flags=("--timeout",), dest="timeout", metavar="TIME", help="Give up after this time (exit 6)."
        ),
        Option(flags=("--any",), dest="any", kind="flag", help="Return as soon as one task is finished."),
        JSON.evolve(help="Print each task's manifest, one per line."),
    ),
)

#: How often the queue is checked for tasks that will never start.
_STUCK_CHECK_S = 1.0


def run(values: dict[str, Any]) -> int:
    """Wait for all tasks; the exit status tells how they ended."""
    home = Home(paths.home())
    packets = [load.find(home, text, archived=True) for text in dict.fromkeys(values["task"])]
    timeout_s = option_values.duration(values["timeout"], "--timeout", "10m")
    exit_statuses: dict[str, int] = {}
    for packet, manifest in _finished(packets, timeout_s):
        # A closed stdout is no error: the exit status has the result.
        out.task_line(f"{packet.task_id} {manifest['status']}", manifest if values["json"] else None)
        # A task that is held in the queue or has no runner needs a person, like an interrupted one.
        exit_statuses[packet.path] = EXIT_STATUS.get(
            Status(manifest["status"]), EXIT_STATUS[Status.INTERRUPTED]
        )
        if values["any"]:
            return exit_statuses[packet.path]
    return next((exit_statuses[packet.path] for packet in packets if exit_statuses[packet.path]), 0)


def _finished(packets: list[Packet], timeout_s: float | None) -> Iterator[tuple[Packet, dict[str, Any]]]:
    """Yield each task when it is finished. Polls the manifests: cheap, and needs no other process."""
    ends_mono = None if timeout_s is None else clock.mono() + timeout_s
    pause_s = 0.005
    left = list(packets)
    has_printed_down = False
    check_mono = clock.mono()
    starters = {packet.path: KeeperStarter() for packet in packets}
    watches = {packet.path: LostRunnerWatch() for packet in packets}
    while True:
        checks_queue = clock.mono() >= check_mono
        if checks_queue:
            check_mono = clock.mono() + _STUCK_CHECK_S
        for packet in list(left):
            there = load.wherever(packet)  # a task may be archived as soon as it has ended
            manifest = load.read_manifest(there)
            status = manifest["status"]
            is_finished = (
                load.is_settled(there, manifest)
                or (checks_queue and status == Status.QUEUED and _is_stuck(packet))
                or _is_lost(watches[packet.path], packet, status)
            )
            if is_finished:
                left.remove(packet)
                yield packet, manifest
                continue
            if home_down.holds_back(packet, manifest) and not has_printed_down:
                out.talk(home_down.QUEUE_WAITS)
                has_printed_down = True
            starters[packet.path].poll(packet, status)
        if not left:
            return
        if ends_mono is not None and clock.mono() >= ends_mono:
            raise _timed_out(left)
        clock.sleep(pause_s)
        pause_s = min(pause_s * 1.3, 0.2)


def _timed_out(left: list[Packet]) -> Unanswered:
    packet = left[0]
    status = load.read_manifest(packet)["status"]
    more = f" ({len(left) - 1} more not finished)" if left[1:] else ""
    keeps_running = f"it keeps running; 'holdfast show {packet.task_id}' shows it"
    return Unanswered(
        f"{packet.task_id} is still {status}{more}",
        hint=home_down.RUNNER_LOST if runner_gone.is_gone_for_good(packet, status) else keeps_running,
    )


def _is_lost(watch: LostRunnerWatch, packet: Packet, status: str) -> bool:
    """Whether the task has lost its runner for good; prints so."""
    if not watch.poll(packet, status):
        return False
    out.talk(home_down.runner_lost(packet, status))
    return True


def _is_stuck(packet: Packet) -> bool:
    """Whether the queue will never start it; prints why."""
    from holdfast.views.cli.queue import wait_reason

    item, paused = wait_reason.find_item(packet.home, packet.task_id)
    if item is None or item.state not in wait_reason.NEEDS_PERSON:
        return False
    reason, retry = wait_reason.reason(item, paused), f"'holdfast queue retry {packet.task_id}' runs it"
    out.talk(fit_text.printable(f"{packet.task_id} is {item.state}: {reason}; {retry}"))
    return True
