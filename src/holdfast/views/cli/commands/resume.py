"""holdfast resume: continue an interrupted or waiting task."""

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
    name="resume",
    summary="Resume an interrupted task, or wake a waiting one.",
    description="The task keeps its files and, if the agent supports it, its session.",
    examples=("holdfast resume 20260131-fix -m 'use the test database'",),
    arguments=(TASK.evolve(completes="parked-task"),),
    options=(
        Option(flags=("-m", "--message"), dest="message", metavar="TEXT", help="Answer for the agent."),
        JSON.evolve(help=request.JSON_HELP),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Send the request."""
    packet = load.find(Home(paths.home()), values["task"])
    request.send(packet, "resume", {"message": values["message"]} if values["message"] else {})
    request.confirm_going(packet, "continues", as_json=values["json"])
    return 0
