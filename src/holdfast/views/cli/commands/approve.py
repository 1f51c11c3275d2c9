"""holdfast approve: approve stages that wait for it."""

from __future__ import annotations

from holdfast.views import requests
from holdfast.views.cli import request, targets
from holdfast.views.cli.parse.command_spec import JSON, Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="approve",
    summary="Approve the waiting stage of tasks.",
    description="A packet lists stages that need approval in 'approval'. The journal records who approved "
    "what.",
    examples=(
        "holdfast approve 20260131-fix",
        "holdfast approve 20260131-fix -m 'yes, but leave the tests alone'",
    ),
    arguments=(targets.TASKS.evolve(completes="asking-task"),),
    options=(
        Option(flags=("-m", "--message"), dest="message", metavar="TEXT", help="Message for the agent."),
        targets.GOING_NO_WAIT,
        targets.everything("tasks that wait for approval"),
        targets.STATE,
        targets.LABEL,
        JSON.evolve(help=targets.JSON_LINES),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Send the requests."""
    chosen = targets.choose(values, "approve", fits=waits_for_approval)
    args = {"message": values["message"]} if values["message"] else {}
    sent = requests.send_all(chosen.packets, "approve", lambda _: args)
    request.confirm_going(sent.accepted, "continues", values)
    return chosen.status or request.complain(sent)


def waits_for_approval(row: dict[str, Any]) -> bool:
    """Whether a stage of the task waits for approval."""
    interrupt: dict[str, Any] = row.get("interrupt") or {}
    return bool(interrupt.get("approval"))
