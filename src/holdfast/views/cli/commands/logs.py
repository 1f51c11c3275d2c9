"""holdfast logs: print a task's output."""

from __future__ import annotations

import os

from holdfast import paths
from holdfast.errors import NotFound, UsageError
from holdfast.model.status import ENDS, Status
from holdfast.packet import load
from holdfast.store.layout import AttemptDir, Home, Packet
from holdfast.views import option_values
from holdfast.views.cli.follow import loop
from holdfast.views.cli.follow.log_view import LogsView
from holdfast.views.cli.parse.command_spec import TASK, Command, Option
from holdfast.views.cli.show import out
from holdfast.views.output_refresh import refresh_once
from holdfast.views.text import amounts, describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="logs",
    summary="Print a task's output.",
    description="Prints the readable log of all attempts: complete lines, secrets masked, no escape "
    "sequences, progress bars as their final state, floods cut to their end. --raw and --stderr print one "
    "attempt's bytes unchanged; on a terminal, control characters other than colours are made visible.",
    examples=(
        "holdfast logs 20260131-fix",
        "holdfast logs -f 20260131-fix",
        "holdfast logs 20260131-fix -n 40",
        "holdfast logs 20260131-fix --raw --attempt 2",
    ),
    arguments=(TASK,),
    options=(
        Option(flags=("-f", "--follow"), dest="follow", kind="flag", help="Follow until the task has ended."),
        Option(flags=("-n", "--lines"), dest="lines", metavar="N", help="Print only the last N lines."),
        Option(flags=("--raw",), dest="raw", kind="flag", help="Print raw stdout of the latest attempt."),
        Option(
            flags=("--stderr",), dest="stderr", kind="flag", help="Print raw stderr of the latest attempt."
        ),
        Option(
            flags=("--attempt",),
            dest="attempt",
            metavar="N",
            help="Print raw stdout (or --stderr) of attempt N, or of a directory such as 003-fix.gate.",
        ),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Print the log, and follow it with -f."""
    packet = load.find(Home(paths.home()), values["task"], archived=True)
    load.require_whole(packet)
    if values["raw"] and values["stderr"]:
        raise UsageError("--raw and --stderr exclude each other", hint="give one of them")
    count = option_values.whole_number(values["lines"], "--lines")
    is_raw = values["raw"] or values["stderr"] or values["attempt"] is not None
    name = "stderr" if values["stderr"] else "stdout"
    only = _attempt(packet, values["attempt"]) if values["attempt"] is not None else None
    view = LogsView(
        packet,
        raw=name if is_raw else "",
        attempt=only,
        narrates=values["follow"],
        from_start=count is None,
    )
    try:
        if not is_raw and not values["follow"]:
            refresh_once(packet)
        view.print_end(count)
        if values["follow"]:
            loop.follow_one(packet, view, until=_until(only), stays=True)
        elif not is_raw:
            _tell_state(packet)
    finally:
        view.close()
    return 0


def _tell_state(packet: Packet) -> None:
    """Say what the task waits for, or why it did not complete: its log has neither."""
    manifest = load.read_manifest(packet)
    if manifest["status"] == Status.INTERRUPTED:
        out.talk(describe.interruption(manifest))
    elif manifest["status"] in ENDS and manifest["status"] != Status.COMPLETED:
        reason = manifest["status_reason"]
        out.talk(f"{packet.task_id} {manifest['status']}" + (f": {reason}" if reason else ""))


def _until(only: AttemptDir | None) -> Any:
    """Whether to stop following: the task has ended, or the one attempt given with --attempt."""

    def is_over(packet: Packet, manifest: dict[str, Any]) -> bool:
        has_ended = manifest["status"] in ENDS and load.is_settled(packet, manifest)
        return has_ended or (only is not None and os.path.exists(only.exit))

    return is_over


def _attempt(packet: Packet, text: str) -> AttemptDir:
    """The attempt with this number, or the one whose directory has this name: holdfast's steps have no
    number. Raises NotFound."""
    found = load.numbered_attempts(packet)
    if text in dict(found):
        return packet.attempt(text)
    number = option_values.whole_number(text, "--attempt")
    for name, its_number in found:
        if its_number is not None and its_number == number:
            return packet.attempt(name)
    count = sum(its_number is not None for _, its_number in found)
    raise NotFound(
        f"{packet.task_id} has no attempt {number}",
        hint=f"it has {amounts.plural(count, 'attempt')}" if count else "it has none yet",
    )
