"""holdfast stop: stop a task."""

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
    summary="Stop a task.",
    description="Stops its agent and everything it started; the task ends as 'killed'. Returns when the "
    "runner has accepted the request; 'holdfast wait' returns when the task has ended.",
    examples=("holdfast stop 20260131-fix", "holdfast stop 20260131-fix -m 'wrong branch'"),
    arguments=(TASK.evolve(completes="live-task"),),
    options=(
        Option(flags=("-m", "--message"), dest="message", metavar="TEXT", help="Reason; it is recorded."),
        JSON.evolve(help=request.JSON_HELP),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Send the request."""
    packet = load.find(Home(paths.home()), values["task"])
    request.send(packet, "stop", {"reason": values["message"]} if values["message"] else {})
    request.confirm(
        packet,
        f"stopping {packet.task_id}; 'holdfast wait {packet.task_id}' waits for its end",
        as_json=values["json"],
    )
    return 0
