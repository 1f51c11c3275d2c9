"""holdfast interrupt: stop the agents of tasks until they are resumed."""

from __future__ import annotations

from holdfast.errors import HoldfastError
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
    name="interrupt",
    summary="Interrupt tasks until they are resumed.",
    description="Stops the agent, keeps its work, and waits until it has stopped. 'holdfast resume' "
    "continues, in the same session if the agent supports it.",
    examples=(
        "holdfast interrupt 20260131-fix -m 'wait for the new schema'",
        "holdfast interrupt --all --no-wait",
    ),
    arguments=(targets.TASKS.evolve(completes="working-task"),),
    options=(
        Option(
            flags=("-m", "--message"),
            dest="message",
            metavar="TEXT",
            help="Why; the agent is told when it continues.",
        ),
        targets.NO_WAIT,
        targets.everything("tasks that have started and not ended"),
        targets.STATE,
        targets.LABEL,
        JSON.evolve(help=targets.JSON_LINES),
    ),
)

_NOT_AT_WORK = (*ENDS, Status.QUEUED, Status.INTERRUPTED)


def run(values: dict[str, Any]) -> int:
    """Send the requests, and wait until the agents have stopped."""
    chosen = targets.choose(values, "interrupt", fits=lambda row: row["status"] not in _NOT_AT_WORK)
    args = {"reason": values["message"]} if values["message"] else {}
    going: list[Packet] = []
    for packet in chosen.packets:
        if not values["message"] and _is_interrupted(packet):
            request.confirm(packet, f"{packet.task_id} is already interrupted", as_json=values["json"])
        else:
            going.append(packet)
    sent = requests.send_all(going, "interrupt", lambda _: args)
    status = chosen.status or request.complain(sent)
    if values["no_wait"]:
        for packet in sent.accepted:
            sentence = f"interrupting {packet.task_id}; {_resumes(packet)}"
            request.confirm(packet, sentence, as_json=values["json"])
        return status
    if not sent.accepted:
        return status
    from holdfast.views.cli.follow import stopping

    def report(packet: Packet, manifest: dict[str, Any]) -> None:
        is_interrupted = manifest["status"] == Status.INTERRUPTED
        state = f"interrupted {packet.task_id}; {_resumes(packet)}"
        sentence = state if is_interrupted else f"{packet.task_id} has ended: {manifest['status']}"
        request.confirm(packet, sentence, as_json=values["json"])

    return stopping.wait(sent.accepted, load.is_settled, report) or status


def _is_interrupted(packet: Packet) -> bool:
    try:
        return load.read_manifest(packet)["status"] == Status.INTERRUPTED
    except HoldfastError:
        return False  # the request reports what is wrong with it


def _resumes(packet: Packet) -> str:
    return f"'holdfast resume {packet.task_id}' continues it"
