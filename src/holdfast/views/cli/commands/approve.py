"""holdfast approve: approve the stage that waits for it."""

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
    name="approve",
    summary="Approve the waiting stage.",
    description="A packet lists stages that need approval in 'approval'. The journal records who approved "
    "what.",
    examples=(
        "holdfast approve 20260131-fix",
        "holdfast approve 20260131-fix -m 'yes, but leave the tests alone'",
    ),
    arguments=(TASK.evolve(completes="asking-task"),),
    options=(
        Option(flags=("-m", "--message"), dest="message", metavar="TEXT", help="Message for the agent."),
        JSON.evolve(help=request.JSON_HELP),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Send the request."""
    packet = load.find(Home(paths.home()), values["task"])
    request.send(packet, "approve", {"message": values["message"]} if values["message"] else {})
    request.confirm_going(packet, "continues", as_json=values["json"])
    return 0
