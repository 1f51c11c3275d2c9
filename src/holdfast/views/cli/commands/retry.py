"""holdfast retry: start an ended task again."""

from __future__ import annotations

import os

from holdfast import paths
from holdfast.agents import registry
from holdfast.packet import environment, limits, load
from holdfast.store.layout import Home
from holdfast.views.cli import request
from holdfast.views.cli.parse.command_spec import JSON, TASK, Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="retry",
    summary="Start an ended task again; where the agent can, in the same session.",
    description="The environment is captured anew, here. Stages that are done stay done; --from runs them again.",
    examples=(
        "holdfast retry 20260131-fix --deadline 10h",
        "holdfast retry 20260131-fix --from command_run -m 'the disk is free again'",
    ),
    arguments=(TASK.evolve(completes="ended-task"),),
    options=(
        Option(flags=("-m", "--message"), dest="message", metavar="TEXT", help="What the agent is told."),
        Option(flags=("--from",), dest="from", metavar="STAGE", help="Run again from this stage on."),
        Option(
            flags=("--deadline",),
            dest="deadline",
            metavar="TIME",
            help="A new deadline (none for no deadline).",
        ),
        JSON.evolve(help=request.JSON_HELP),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Ask for it, with the environment of now: the old one was deleted at the task's end."""
    packet = load.find(Home(paths.home()), values["task"])
    spec = load.fold(packet).spec
    args: dict[str, Any] = {
        name: values[name] for name in ("message", "from", "deadline") if values[name] is not None
    }
    if values["deadline"] not in (None, "none"):
        limits.settle(
            {}, {"deadline_s": values["deadline"]}, stale_s=None
        )  # a bad one is told here, before anything
    able = registry.adapter(spec.agent).capabilities
    args["env"] = environment.capture(dict(os.environ), (*able.env, *spec.env))
    if spec.env_file is not None:
        args["env"]["env"].update(environment.read_file(spec.env_file))
    request.send(packet, "retry", args)
    if spec.queue is not None:
        # It takes its turn again. Killed before this, the keeper finds it when it looks at ended tasks.
        from holdfast.store import index
        from holdfast.views.cli.queue import enqueue

        index.update(packet.home, load.read_manifest(packet))
        if not os.path.exists(packet.home.down):
            enqueue.wake_keeper(packet.home)
    request.confirm_going(packet, "runs again", as_json=values["json"])
    return 0
