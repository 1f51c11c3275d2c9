"""holdfast retry: start ended tasks again."""

from __future__ import annotations

import os

from holdfast.agents import registry
from holdfast.errors import NotPossible
from holdfast.model.status import ENDS, Status
from holdfast.packet import environment, limits, load
from holdfast.store.digest import sha256
from holdfast.views import requests
from holdfast.views.cli import request, targets
from holdfast.views.cli.parse.command_spec import JSON, Command, Option
from holdfast.views.cli.parse.task_options import PERMISSIONS
from holdfast.views.cli.show import out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Packet

COMMAND = Command(
    name="retry",
    summary="Restart ended tasks.",
    description="Continues in the same session if the agent supports it, with the current environment. "
    "Completed stages are skipped unless --from is given.",
    examples=(
        "holdfast retry 20260131-fix --deadline 10h",
        "holdfast retry 20260131-fix --from command_run -m 'the disk is free again'",
        "holdfast retry 20260131-fix --set budgets.max_wallclock_sec=900 --set scope.allow+=docs/",
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
            help="Change a limit or the scope, as in manifest.yaml; += and -= change a list (repeatable).",
        ),
        targets.everything("failed and abandoned tasks"),
        targets.STATE,
        targets.LABEL,
        JSON.evolve(help=targets.JSON_LINES),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Send the requests with the current environment: the old one was deleted when the task ended."""
    if values["deadline"] not in (None, "none"):
        limits.resolve(
            {}, {"deadline_s": values["deadline"]}, stale_s=None
        )  # reject a bad value before anything is sent
    chosen = targets.choose(
        values,
        "retry",
        fits=lambda row: row["status"] in ENDS,
        by_all=lambda row: row["status"] in (Status.FAILED, Status.ABANDONED),
    )
    sent = requests.send_all(chosen.packets, "retry", lambda packet: _args(packet, values))
    for packet in sent.accepted:
        _list_again(packet)
    request.confirm_going(sent.accepted, "runs again", as_json=values["json"])
    return chosen.status or request.complain(sent)


def _args(packet: Packet, values: dict[str, Any]) -> dict[str, Any]:
    spec = load.fold(packet).spec
    args: dict[str, Any] = {
        name: values[name]
        for name in ("message", "from", "deadline", "permissions")
        if values[name] is not None
    }
    if values["reset"]:
        args["reset"] = True
    if values["set"]:
        from holdfast.pipeline.define import amend

        amend.read(spec, values["set"])  # reject a bad value before anything is sent
        args["set"] = values["set"]
    able = registry.adapter(spec.agent).capabilities
    args["env"] = environment.capture(dict(os.environ), (*able.env, *spec.env))
    if spec.env_file is not None:
        args["env"]["env"].update(_from_file(spec.env_file, spec.trust.get("env_file")))
    return args


def _list_again(packet: Packet) -> None:
    """List it among the tasks that have not ended, and queue a task of the queue again. If this command is
    killed before, the keeper finds it among the ended ones."""
    from holdfast.store import index

    index.update(packet.home, load.read_manifest(packet))
    if load.fold(packet).spec.queue is not None and not os.path.exists(packet.home.down):
        from holdfast.views.create import enqueue

        enqueue.wake_keeper(packet.home, talk=out.talk)


def _from_file(path: str, trusted: object) -> dict[str, str]:
    """The variables of an environment file. That of a project must be the one that was trusted: an agent may
    have changed it."""
    if trusted is None:
        return environment.read_file(path)
    from holdfast.config import project

    data = project.named_file(path)
    if data is None or sha256(data) != trusted:
        raise NotPossible(
            f"{path} is not the environment file that you trusted for this task",
            hint="restore it, or trust the project and create the task again",
        )
    return environment.read_file(path, data)
