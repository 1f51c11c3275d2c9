"""holdfast reject: reject stages that wait for approval, and end their tasks."""

from __future__ import annotations

from holdfast.views import requests
from holdfast.views.cli import request, targets
from holdfast.views.cli.commands.approve import waits_for_approval
from holdfast.views.cli.parse.command_spec import JSON, Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="reject",
    summary="Reject the waiting stage of tasks and end them.",
    description="The work of earlier stages is kept. 'holdfast retry TASK --from STAGE' restarts the task "
    "at a stage.",
    examples=("holdfast reject 20260131-fix -m 'the plan leaves out the migration'",),
    arguments=(targets.TASKS.evolve(completes="asking-task"),),
    options=(
        Option(flags=("-m", "--message"), dest="message", metavar="TEXT", help="Reason; it is recorded."),
        targets.everything("tasks that wait for approval"),
        targets.STATE,
        targets.LABEL,
        JSON.evolve(help=targets.JSON_LINES),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Send the requests."""
    chosen = targets.choose(values, "reject", fits=waits_for_approval)
    args = {"message": values["message"]} if values["message"] else {}
    sent = requests.send_all(chosen.packets, "reject", lambda _: args)
    for packet in sent.accepted:
        task_id = packet.task_id
        sentence = f"rejected {task_id}; 'holdfast retry {task_id} --from STAGE' restarts it"
        request.confirm(packet, sentence, as_json=values["json"])
    return chosen.status or request.complain(sent)
