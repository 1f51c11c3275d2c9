"""holdfast stop: stop tasks."""

from __future__ import annotations

from holdfast.model.status import ENDS, Status
from holdfast.packet import load
from holdfast.views import requests
from holdfast.views.cli import request, targets
from holdfast.views.cli.parse.command_spec import JSON, Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Packet

COMMAND = Command(
    name="stop",
    summary="Stop tasks and wait until they have ended.",
    description="Stops the agent and everything it started; the task ends as 'killed'. An agent gets time to "
    "exit (--stop-pause, 30s by default). A second 'stop' kills it, and so does --now. A task that has ended "
    "is left as it is.",
    examples=(
        "holdfast stop 20260131-fix -m 'wrong branch'",
        "holdfast stop one two --now",
        "holdfast stop --label batch=nightly",
    ),
    arguments=(targets.TASKS.evolve(completes="live-task"),),
    options=(
        Option(flags=("-m", "--message"), dest="message", metavar="TEXT", help="Reason; it is recorded."),
        Option(flags=("--now",), dest="now", kind="flag", help="Kill the agent, without time to exit."),
        targets.NO_WAIT,
        targets.everything("tasks that have not ended"),
        targets.STATE,
        targets.LABEL,
        JSON.evolve(help=targets.JSON_LINES),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Send the requests, and wait for the ends."""
    chosen = targets.choose(values, "stop", fits=lambda row: row["status"] not in ENDS, archived=True)
    args: dict[str, Any] = {"reason": values["message"]} if values["message"] else {}
    if values["now"]:
        args["now"] = True
    sent, ended = requests.stop_all(chosen.packets, args)
    for packet in ended:
        _confirm_ended(packet, as_json=values["json"])
    status = chosen.status or request.complain(sent)
    if values["no_wait"]:
        for packet in sent.accepted:
            task_id = packet.task_id
            sentence = f"stopping {task_id}; 'holdfast wait {task_id}' waits for its end"
            request.confirm(packet, sentence, as_json=values["json"])
        return status
    if not sent.accepted:
        return status
    from holdfast.views.cli.follow import stopping

    def report(packet: Packet, manifest: dict[str, Any]) -> None:
        is_killed = manifest["status"] == Status.KILLED
        sentence = f"stopped {packet.task_id}" if is_killed else f"{packet.task_id} {manifest['status']}"
        request.confirm(packet, sentence, as_json=values["json"])

    return stopping.wait(sent.accepted, stopping.has_ended, report, kills=values["now"]) or status


def _confirm_ended(packet: Packet, *, as_json: bool) -> None:
    status = load.read_true(load.wherever(packet))["status"]
    request.confirm(packet, f"{packet.task_id} has already ended: {status}", as_json=as_json)
