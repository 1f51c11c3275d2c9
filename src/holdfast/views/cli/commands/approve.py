"""holdfast approve: let a stage start that waits for a person."""

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
    summary="Let the stage start that waits for approval.",
    description="A packet names such stages in 'approval'. What was agreed to, and by whom, is in the journal.",
    examples=(
        "holdfast approve 20260131-fix",
        "holdfast approve 20260131-fix -m 'yes, but leave the tests alone'",
    ),
    arguments=(TASK.evolve(completes="parked-task"),),
    options=(
        Option(flags=("-m", "--message"), dest="message", metavar="TEXT", help="A word for the agent."),
        JSON.evolve(help=request.JSON_HELP),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Ask for it."""
    packet = load.find(Home(paths.home()), values["task"])
    request.send(packet, "approve", {"message": values["message"]} if values["message"] else {})
    request.confirm_going(packet, "goes on", as_json=values["json"])
    return 0
