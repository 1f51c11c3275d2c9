"""holdfast retry: start an ended task again."""

from __future__ import annotations

import os

from holdfast import paths
from holdfast.agents import registry
from holdfast.packet import environment, load
from holdfast.store.layout import Home
from holdfast.views.ask import ask
from holdfast.views.cli.spec import Argument, Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="retry",
    summary="Start an ended task again; where the agent can, in the same session.",
    examples=("holdfast retry 20260131-fix --deadline 10h",),
    arguments=(Argument(dest="task", metavar="TASK", completes="task"),),
    options=(
        Option(flags=("-m", "--message"), dest="message", metavar="TEXT", help="What the agent is told."),
        Option(flags=("--from",), dest="from", metavar="STAGE", help="Run again from this stage on."),
        Option(
            flags=("--deadline",),
            dest="deadline",
            metavar="TIME",
            help="A new deadline (none for no deadline).",
        ),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Ask for it, with the environment of now: the old one was deleted at the task's end."""
    packet = load.find(Home(paths.home()), values["task"])
    task = load.fold(packet)
    able = registry.adapter(task.spec.agent).capabilities
    args: dict[str, Any] = {
        name: values[name] for name in ("message", "from", "deadline") if values[name] is not None
    }
    args["env"] = environment.capture(dict(os.environ), able.env)
    ask(packet, "retry", args)
    return 0
