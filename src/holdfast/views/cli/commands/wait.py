"""holdfast wait: wait until tasks have ended or need a person."""

from __future__ import annotations

from holdfast import paths
from holdfast.errors import NotFound, Unanswered, UsageError
from holdfast.model.status import Status, exit_status, has_concerns
from holdfast.packet import load, runner_gone
from holdfast.store.layout import Home
from holdfast.views import option_values
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.show import out
from holdfast.views.settle import SettleCheck, settle
from holdfast.views.text import fit_text, home_down

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Packet

COMMAND = Command(
    name="wait",
    summary="Wait until tasks have ended or need a person.",
    description="Prints each task with its state. The exit status is that of the first task in the given "
    "order that did not complete, or 0 ('holdfast help exit-codes'). A task that lost its runner in a home "
    "that is down counts as 4, and so does one whose reviewers or verifiers object, that exceeded its "
    "budget, or that was denied tools.",
    examples=(
        "holdfast wait 20260131-fix --timeout 10m",
        "holdfast wait --any one two three",
        "holdfast wait --all --label batch=nightly --json",
        "holdfast wait $(holdfast ls -q --state running)",
    ),
    arguments=(Argument(dest="task", metavar="[TASK…]", required=False, many=True, completes="task"),),
    options=(
        Option(
            flags=("--timeout",), dest="timeout", metavar="TIME", help="Give up after this time (exit 6)."
        ),
        Option(flags=("--any",), dest="any", kind="flag", help="Return as soon as one task is finished."),
        Option(flags=("--all",), dest="all", kind="flag", help="Return when all are finished (default)."),
        Option(
            flags=("--label",),
            dest="label",
            kind="many",
            metavar="KEY=VALUE",
            help="Wait for the tasks that have this label now; repeatable.",
        ),
        JSON.evolve(help="Print each task's manifest, one per line."),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Wait for all tasks; the exit status tells how they ended."""
    home = Home(paths.home())
    option_values.only_one(values, "any", "all")
    packets = _packets(home, values)
    timeout_s = option_values.duration(values["timeout"], "--timeout", "10m")
    exit_statuses: dict[str, int] = {}
    for settled in settle(home, packets, SettleCheck(home, _say), timeout_s=timeout_s, say=out.talk):
        packet, manifest = settled.packet, settled.manifest
        if settled.is_lost:
            out.talk(home_down.runner_lost(packet, manifest["status"]))
        # A closed stdout is no error: the exit status has the result.
        out.task_line(_line(packet, manifest), manifest if values["json"] else None)
        exit_statuses[packet.path] = exit_status(manifest)
        if values["any"]:
            return exit_statuses[packet.path]
    left = [packet for packet in packets if packet.path not in exit_statuses]
    if left:
        raise _timed_out(left)
    return next((exit_statuses[packet.path] for packet in packets if exit_statuses[packet.path]), 0)


def _say(text: str) -> None:
    out.talk(fit_text.printable(text))


def _packets(home: Home, values: dict[str, Any]) -> list[Packet]:
    packets = [load.find(home, text, archived=True) for text in dict.fromkeys(values["task"])]
    wanted = option_values.labels(values["label"])
    if wanted:
        from holdfast.model import labels
        from holdfast.views.facts import task_list

        rows = task_list.tasks(home, everything=True, state=None)
        labelled = [home.packet(row["task_id"]) for row in rows if labels.match(row, wanted)]
        if not labelled:
            raise NotFound(f"no task in {home.path} has the label {', '.join(values['label'])}")
        packets += labelled
    elif not packets:
        raise UsageError("missing TASK", hint="'holdfast wait TASK…', or --label KEY=VALUE")
    return list({packet.path: packet for packet in packets}.values())


def _line(packet: Packet, manifest: dict[str, Any]) -> str:
    line = f"{manifest['task_id']} {_state(packet, manifest)}"
    if not has_concerns(manifest):
        return line
    from holdfast.views.text import describe  # few tasks have concerns

    concerns = describe.concerns(manifest)
    return f"{line}: {concerns}" if concerns else line


def _state(packet: Packet, manifest: dict[str, Any]) -> str:
    """As in `ls`: a task that the queue will not start is held."""
    if manifest["status"] != Status.QUEUED:
        return manifest["status"]
    from holdfast.views.text import queue_reason

    item, _ = queue_reason.find_item(packet.home, packet.task_id)
    return item.state if item is not None and item.state in queue_reason.NEEDS_PERSON else Status.QUEUED


def _timed_out(left: list[Packet]) -> Unanswered:
    packet = left[0]
    status = load.read_manifest(packet)["status"]
    more = f" ({len(left) - 1} more not finished)" if left[1:] else ""
    goes_on = "it stays queued" if status == Status.QUEUED else "it keeps running"
    keeps_running = f"{goes_on}; 'holdfast show {packet.task_id}' shows it"
    return Unanswered(
        f"{packet.task_id} is still {status}{more}",
        hint=home_down.RUNNER_LOST if runner_gone.is_gone_for_good(packet, status) else keeps_running,
    )
