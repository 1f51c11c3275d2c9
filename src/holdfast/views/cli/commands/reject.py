"""holdfast reject: reject the stage that waits for approval, and end the task."""

from __future__ import annotations

from holdfast import paths
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views.cli import request
from holdfast.views.cli.parse.command_spec import JSON, TASK, Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="reject",
    summary="Reject the waiting stage and end the task.",
    description="The work of earlier stages is kept. 'holdfast retry TASK --from STAGE' restarts the task "
    "at a stage.",
    examples=("holdfast reject 20260131-fix -m 'the plan leaves out the migration'",),
    arguments=(TASK.evolve(completes="asking-task"),),
    options=(
        Option(flags=("-m", "--message"), dest="message", metavar="TEXT", help="Reason; it is recorded."),
        JSON.evolve(help=request.JSON_HELP),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Send the request."""
    packet = load.find(Home(paths.home()), values["task"])
    request.send(packet, "reject", {"message": values["message"]} if values["message"] else {})
    request.confirm(
        packet,
        f"rejected {packet.task_id}; 'holdfast retry {packet.task_id} --from STAGE' restarts it",
        as_json=values["json"],
    )
    return 0
