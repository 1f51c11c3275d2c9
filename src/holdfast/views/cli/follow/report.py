"""The report after a task was followed: how it ended, and what to do next."""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.model.next_action import Suggestion
from holdfast.model.status import ENDS, Status, exit_status, has_concerns
from holdfast.store.layout import Packet
from holdfast.views.cli.show import out
from holdfast.views.text import amounts, describe, home_down, leftovers, log_tail, next_steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TAIL_LINES = 40


def report(packet: Packet, manifest: dict[str, Any], *, has_shown_log: bool = False) -> int:
    """Print the report; returns the exit status of the command. Without `has_shown_log`, a failure's report
    includes the last lines of the log."""
    status = Status(manifest["status"])
    is_lost = status not in ENDS and status is not Status.INTERRUPTED
    if is_lost:
        out.talk(home_down.runner_lost(packet, status))
    elif status is Status.INTERRUPTED:
        out.talk(describe.interruption(manifest))
    else:
        if status is not Status.COMPLETED and not has_shown_log:
            _quote_log(packet)
        _print_end(packet, manifest)
    if status is not Status.COMPLETED or has_concerns(manifest):
        out.steps([(step.command, step.does) for step in _steps(packet, manifest, is_lost=is_lost)])
    else:
        out.steps(_delivery(packet, manifest))
    out.talk(f"files: {packet.path}")
    return exit_status(manifest)


def _print_end(packet: Packet, manifest: dict[str, Any]) -> None:
    reason = f": {manifest['status_reason']}" if manifest["status_reason"] else ""
    parts = [
        f"{packet.task_id} {manifest['status']}",
        *describe.exit_status(manifest),
        clock.duration_text(describe.elapsed_s(manifest, clock.now())),
        amounts.plural(manifest["attempt"], "attempt"),
    ]
    out.talk(", ".join(parts) + reason)
    for concern in manifest.get("concerns") or ():
        out.talk(f"{concern['stage']}: {concern['text']}")
    if describe.has_passed_before(manifest):
        out.talk(f"warning: {describe.PASSED_BEFORE}, so it proves nothing")
    for line in leftovers.as_lines(packet):
        out.talk(f"still running: {line}")


def _steps(packet: Packet, manifest: dict[str, Any], *, is_lost: bool) -> tuple[Suggestion, ...]:
    action = next_steps.read(packet, manifest, is_runner_lost=is_lost)
    if is_lost or not os.path.exists(packet.last_failure):
        return action.choices
    from shlex import quote  # for a failure only

    return (*action.choices, Suggestion(command=f"less {quote(packet.summary)}", does="read its summary"))


def _delivery(packet: Packet, manifest: dict[str, Any]) -> list[tuple[str, str]]:
    """What to do with the work in its worktree; nothing if it changed no file."""
    if not (workspace := next_steps.unapplied(packet)):
        return []
    action = next_steps.read(packet, manifest, workspace=workspace)
    steps = [(step.command, step.does) for step in action.steps]
    return [*steps, (f"holdfast pr {packet.task_id}", "or open a pull request")]


def _quote_log(packet: Packet) -> None:
    lines = log_tail.last_lines(packet.output_log, _TAIL_LINES)
    if lines:
        out.talk("the last lines of its output:")
    for line in lines:
        out.quote(line)
