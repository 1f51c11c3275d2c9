"""holdfast retry: start ended tasks again."""

from __future__ import annotations

from holdfast.model.status import ENDS, Status
from holdfast.packet import limits
from holdfast.views import requests
from holdfast.views.cli import request, targets
from holdfast.views.cli.parse.command_spec import JSON, Command, Option
from holdfast.views.cli.parse.task_options import ENV_FILE, PERMISSIONS
from holdfast.views.cli.show import out
from holdfast.views.create import again

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


COMMAND = Command(
    name="retry",
    summary="Restart ended tasks.",
    description="Continues in the same session if the agent supports it, with the current environment. "
    "Completed stages are skipped unless --from is given.",
    examples=(
        "holdfast retry 20260131-fix --deadline 10h",
        "holdfast retry 20260131-fix --from command_run -m 'the disk is free again'",
        "holdfast retry 20260131-fix --set timeout=15m --set scope.allow+=docs/",
    ),
    arguments=(targets.TASKS.evolve(completes="ended-task"),),
    options=(
        Option(flags=("-m", "--message"), dest="message", metavar="TEXT", help="Message for the agent."),
        Option(flags=("--from",), dest="from", metavar="STAGE", help="Restart at this stage."),
        Option(
            flags=("--deadline",),
            dest="deadline",
            metavar="TIME",
            help="New deadline; 'none' for no deadline.",
        ),
        PERMISSIONS.evolve(help="New permissions of the agent, from here on."),
        Option(
            flags=("--reset",),
            dest="reset",
            kind="flag",
            help="Count paid calls and failures of a packet from zero again.",
        ),
        Option(
            flags=("--set",),
            dest="set",
            kind="many",
            metavar="FIELD=VALUE",
            help="Change a limit, the scope or acceptance.setup, as in manifest.yaml, or timeout and "
            "deadline; += and -= change a list (repeatable).",
        ),
        ENV_FILE.evolve(help="Read the task's environment file from here, as it is now."),
        targets.GOING_NO_WAIT,
        targets.everything("failed and abandoned tasks"),
        targets.STATE,
        targets.LABEL,
        JSON.evolve(help=targets.JSON_LINES),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Send the requests with the current environment: the old one was deleted when the task ended."""
    if values["deadline"] not in (None, "none"):
        # Reject a bad value before anything is sent.
        limits.resolve({}, {"deadline_s": values["deadline"]}, stale_s=None)
    chosen = targets.choose(
        values,
        "retry",
        fits=lambda row: row["status"] in ENDS,
        by_all=lambda row: row["status"] in (Status.FAILED, Status.ABANDONED),
    )
    sent = requests.send_all(chosen.packets, "retry", lambda packet: again.args_of(packet, values))
    for packet in sent.accepted:
        again.list_again(packet, talk=out.talk)
    request.confirm_going(sent.accepted, "runs again", values)
    return chosen.status or request.complain(sent)
