"""holdfast wait: until a task has ended, or needs a person."""

from __future__ import annotations

from holdfast import clock, paths
from holdfast.errors import Unanswered, UsageError
from holdfast.model.status import ENDS, EXIT_STATUS, Status
from holdfast.packet import load
from holdfast.store.layout import Home, Packet
from holdfast.views.cli.spec import Argument, Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="wait",
    summary="Wait until a task has ended, or needs a person.",
    examples=("holdfast wait 20260131-fix --timeout 10m",),
    arguments=(Argument(dest="task", metavar="TASK", completes="task"),),
    options=(
        Option(
            flags=("--timeout",), dest="timeout", metavar="TIME", help="Give up after this long (exit 6)."
        ),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Wait; the exit status says how it ended."""
    packet = load.find(Home(paths.home()), values["task"])
    try:
        timeout_s = clock.parse_duration(values["timeout"]) if values["timeout"] else None
    except ValueError as error:
        raise UsageError(f"--timeout: {error}") from error
    return follow(packet, timeout_s=timeout_s)


def follow(packet: Packet, *, timeout_s: float | None) -> int:
    """Poll the manifest; cheap, and it works when no process of ours lives."""
    ends_mono = None if timeout_s is None else clock.mono() + timeout_s
    pause_s = 0.005
    while True:
        status = Status(load.read_manifest(packet)["status"])
        if (status in ENDS and _is_marked(packet)) or status is Status.INTERRUPTED:
            return EXIT_STATUS[status]
        if ends_mono is not None and clock.mono() >= ends_mono:
            raise Unanswered(
                f"{packet.task_id} is still {status}", hint="it goes on; wait again, or look with 'show'"
            )
        clock.sleep(pause_s)
        pause_s = min(pause_s * 1.3, 0.2)


def _is_marked(packet: Packet) -> bool:
    import os

    return os.path.exists(packet.task_done)
