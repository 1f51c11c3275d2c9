"""holdfast stop: end a task."""

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
    name="stop",
    summary="Stop a task: its agent and all that it started. It ends as killed.",
    description="It returns when the task's runner has taken the request; the task has ended when 'holdfast wait' returns.",
    examples=("holdfast stop 20260131-fix", "holdfast stop 20260131-fix -m 'wrong branch'"),
    arguments=(TASK.evolve(completes="live-task"),),
    options=(
        Option(flags=("-m", "--message"), dest="message", metavar="TEXT", help="Why."),
        JSON.evolve(help=request.JSON_HELP),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Ask for it."""
    packet = load.find(Home(paths.home()), values["task"])
    request.send(packet, "stop", {"reason": values["message"]} if values["message"] else {})
    request.confirm(
        packet,
        f"{packet.task_id} is being stopped; 'holdfast wait {packet.task_id}' returns when it has ended",
        as_json=values["json"],
    )
    return 0
