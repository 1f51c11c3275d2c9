"""holdfast reject: end a task whose next stage waits for a person."""

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
    summary="Refuse the stage that waits for approval, and end the task.",
    description="What the stages before it did stays. 'holdfast retry TASK --from STAGE' begins again from a stage.",
    examples=("holdfast reject 20260131-fix -m 'the plan leaves out the migration'",),
    arguments=(TASK.evolve(completes="parked-task"),),
    options=(
        Option(flags=("-m", "--message"), dest="message", metavar="TEXT", help="Why; it becomes the reason."),
        JSON.evolve(help=request.JSON_HELP),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Ask for it."""
    packet = load.find(Home(paths.home()), values["task"])
    request.send(packet, "reject", {"message": values["message"]} if values["message"] else {})
    request.confirm(
        packet,
        f"{packet.task_id} has ended; 'holdfast retry {packet.task_id} --from STAGE' begins again",
        as_json=values["json"],
    )
    return 0
