"""holdfast interrupt: stop a task's agent until it is resumed."""

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
    summary="Interrupt a task until it is resumed.",
    description="Stops the agent and keeps its work. 'holdfast resume' continues, in the same session if "
    "the agent supports it.",
    examples=("holdfast interrupt 20260131-fix -m 'which database?'",),
    arguments=(TASK.evolve(completes="working-task"),),
    options=(
        Option(
            flags=("-m", "--message"), dest="message", metavar="TEXT", help="Question to answer on resume."
        ),
        JSON.evolve(help=request.JSON_HELP),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Send the request."""
    packet = load.find(Home(paths.home()), values["task"])
    request.send(packet, "interrupt", {"reason": values["message"]} if values["message"] else {})
    request.confirm(
        packet,
        f"interrupting {packet.task_id}; 'holdfast resume {packet.task_id}' continues it",
        as_json=values["json"],
    )
    return 0
