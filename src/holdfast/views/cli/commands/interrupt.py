"""holdfast interrupt: stop the agent and wait for a person."""

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
    name="interrupt",
    summary="Stop a task's agent cleanly; the task waits for a person.",
    description="What it has done so far is kept; 'holdfast resume' goes on in the same session where the agent can.",
    examples=("holdfast interrupt 20260131-fix -m 'which database?'",),
    arguments=(TASK.evolve(completes="live-task"),),
    options=(
        Option(flags=("-m", "--message"), dest="message", metavar="TEXT", help="What a person is asked."),
        JSON.evolve(help=request.JSON_HELP),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Ask for it."""
    packet = load.find(Home(paths.home()), values["task"])
    request.send(packet, "interrupt", {"reason": values["message"]} if values["message"] else {})
    request.confirm(
        packet,
        f"{packet.task_id} is being interrupted; 'holdfast resume {packet.task_id}' goes on",
        as_json=values["json"],
    )
    return 0
