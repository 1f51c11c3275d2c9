"""holdfast interrupt: stop the agent and wait for a person."""

from __future__ import annotations

from holdfast import paths
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views.ask import ask
from holdfast.views.cli.spec import Argument, Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="interrupt",
    summary="Stop a task's agent cleanly; the task waits for a person.",
    examples=("holdfast interrupt 20260131-fix -m 'which database?'",),
    arguments=(Argument(dest="task", metavar="TASK", completes="task"),),
    options=(
        Option(flags=("-m", "--message"), dest="message", metavar="TEXT", help="What a person is asked."),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Ask for it."""
    packet = load.find(Home(paths.home()), values["task"])
    ask(packet, "interrupt", {"reason": values["message"]} if values["message"] else {})
    return 0
