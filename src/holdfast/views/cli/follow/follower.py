"""Following a task until it has ended or needs a person: one live line on a terminal, plain lines elsewhere.

What the agent prints never runs over the terminal; it is in the task's files. Everything here is talk, on stderr.
"""

from __future__ import annotations

import os
import sys

from holdfast import clock
from holdfast.errors import UsageError
from holdfast.model.status import ENDS, EXIT_STATUS, Status
from holdfast.packet import load
from holdfast.store.layout import Packet
from holdfast.views.cli.follow import stages
from holdfast.views.cli.show import amounts, describe, fit_text, home_down, leftovers, out, tail, terminal
from holdfast.views.output_refresh import OutputRefresher
from holdfast.views.recovery import KeeperStarter, LostRunnerWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Between two lines of progress where there is no terminal.
INTERVAL_S = 10.0
INTERVAL_VARIABLE = "AGENT_CLI_PROGRESS_INTERVAL_SEC"
#: A live line is drawn at most this often.
_DRAW_S = 0.2
_TAIL_LINES = 40
#: States whose reason is news.
_EXPLAINED = (Status.CRASHED, Status.HUNG, Status.WAITING, Status.TIMEOUT)


def interval_s() -> float | None:
    """How often progress is told; None for never. Raises UsageError."""
    text = os.environ.get(INTERVAL_VARIABLE)
    if not text:
        return INTERVAL_S
    try:
        return clock.parse_duration(text) or None
    except ValueError as error:
        raise UsageError(
            f"{INTERVAL_VARIABLE}: {error}", hint="a number of seconds; 0 for no progress"
        ) from error


def follow(packet: Packet, every_s: float | None) -> dict[str, Any]:
    """Until the task is settled, or nobody drives it and nobody will; returns its manifest. Cheap, and it works when no process
    of ours lives."""
    is_live = terminal.is_terminal(sys.stderr) and not terminal.is_dumb()
    view = LiveLine() if is_live else PlainLines(every_s)
    pause_s = 0.005
    starter, refresher, watch = KeeperStarter(), OutputRefresher(), LostRunnerWatch()
    is_told = False
    try:
        while True:
            manifest = load.read_manifest(packet)
            if load.is_settled(packet, manifest) or watch.poll(packet, manifest["status"]):
                view.settle(packet, manifest)
                return manifest
            if not is_told and home_down.holds_back(packet, manifest):
                is_told = True
                view.close()
                out.talk(home_down.QUEUE_WAITS)
            starter.poll(packet, manifest["status"])
            if is_live:  # elsewhere nothing is told of what it prints but how much
                refresher.poll(packet, manifest["status"])
            view.show(packet, manifest)
            clock.sleep(pause_s)
            pause_s = min(pause_s * 1.3, _DRAW_S)
    finally:
        view.close()


class LiveLine:
    """One line, redrawn in place and gone at the end."""

    def __init__(self) -> None:
        self._drawn = ""
        self._drawn_mono = float("-inf")

    def show(self, packet: Packet, manifest: dict[str, Any]) -> None:
        """Draw it, unless it was drawn a moment ago or would be the same."""
        now_mono = clock.mono()
        if now_mono - self._drawn_mono < _DRAW_S:
            return
        self._drawn_mono = now_mono
        status, rest = manifest["status"], _rest(packet, manifest)
        # One column stays free: a terminal wraps when the last one is filled.
        rest = fit_text.cut(
            fit_text.as_displayed(rest, sys.stderr),
            (terminal.width(sys.stderr) or terminal.DEFAULT_WIDTH) - len(status) - 2,
        )
        line = f"{terminal.coloured_state(status, sys.stderr)} {rest}"
        if line != self._drawn:
            self._drawn = line
            out.draw(f"\r{line}\x1b[K")

    def settle(self, packet: Packet, manifest: dict[str, Any]) -> None:
        """Nothing: the report that follows says it all."""

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._drawn:
            self._drawn = ""
            out.draw("\r\x1b[K")


def _rest(packet: Packet, manifest: dict[str, Any]) -> str:
    elapsed = clock.words(int(describe.elapsed_s(manifest, clock.now())))
    elapsed = elapsed.replace(".0s", "s")
    if manifest["status"] == Status.RUNNING:
        said = describe.with_step(manifest, tail.last_line(packet.output_log))
    else:
        said = describe.waiting_for(manifest) or describe.reason(manifest, clock.now())
    attempt = f" attempt {manifest['attempt']}" if manifest["attempt"] > 1 else ""
    return f"{stages.now(manifest)}{attempt} {elapsed}  {said}".rstrip()


class PlainLines:
    """A line when the state changes, or a stage starts or ends, and one of progress now and then."""

    def __init__(self, every_s: float | None) -> None:
        self._every_s = every_s
        self._shown, self._waits = ("", 0), ""
        self._stages = stages.Stages()
        self._due_mono = clock.mono() + (every_s or 0.0)

    def show(self, packet: Packet, manifest: dict[str, Any]) -> None:
        """Say what is new."""
        status = manifest["status"]
        self._tell_stages(packet, manifest)
        # It may be in the same state again: an attempt can come and go between two looks.
        shown = (status, manifest["attempt"] if status in _EXPLAINED else 0)
        if shown != self._shown and status not in ENDS:
            self._shown = shown
            # Where there are several stages, their lines say that it starts and runs.
            if not stages.are_many(manifest) or status in _EXPLAINED or status == Status.QUEUED:
                self._tell_state(packet, manifest)
        if (waits := describe.waiting_for(manifest)) != self._waits:
            self._waits = waits
            if waits:
                out.talk(f"{packet.task_id}: {waits}")
        if self._every_s is not None and clock.mono() >= self._due_mono:
            self._due_mono = clock.mono() + self._every_s
            if stages.are_many(manifest):
                what = f"{stages.now(manifest)} {status}"
            else:
                what = status
            out.talk(f"{packet.task_id}: {what} for {_progress(packet, manifest)}")

    def settle(self, packet: Packet, manifest: dict[str, Any]) -> None:
        """Say what the last stages came to."""
        self._tell_stages(packet, manifest)

    def close(self) -> None:
        """Nothing to clear."""

    def _tell_state(self, packet: Packet, manifest: dict[str, Any]) -> None:
        status = manifest["status"]
        attempt = f", attempt {manifest['attempt']}" if manifest["attempt"] > 1 else ""
        why = describe.reason(manifest, clock.now()) if status in _EXPLAINED else ""
        out.talk(f"{packet.task_id}: {status} ({manifest['stage']}{attempt})" + (f": {why}" if why else ""))

    def _tell_stages(self, packet: Packet, manifest: dict[str, Any]) -> None:
        for line in self._stages.news(manifest, clock.mono()):
            out.talk(f"{packet.task_id}: {line}")


def _progress(packet: Packet, manifest: dict[str, Any]) -> str:
    try:
        output_bytes = os.stat(packet.output_log).st_size
    except OSError:
        output_bytes = 0
    heartbeat = manifest["heartbeat"]
    parts = [
        clock.words(describe.in_state_s(manifest, clock.now())),
        f"{amounts.size(output_bytes)} of output",
        amounts.plural(heartbeat["message_count"], "message") if heartbeat["message_count"] else "",
        amounts.plural(heartbeat["tool_calls"], "tool call") if heartbeat["tool_calls"] else "",
    ]
    return ", ".join(part for part in parts if part)


def report(packet: Packet, manifest: dict[str, Any], *, has_log: bool = False) -> int:
    """How it ended, in a few lines; returns the exit status that says the same. `has_log` for whoever has seen its output."""
    status = Status(manifest["status"])
    took = clock.words(describe.elapsed_s(manifest, clock.now()))
    if status is Status.INTERRUPTED:
        out.talk(describe.interruption(manifest))
    elif status not in ENDS:
        # It stands still until a person says so, as one that is interrupted.
        out.talk(home_down.runner_lost(packet, status))
        out.step("holdfast up", "bring a keeper, which starts another runner")
        out.step(f"holdfast attach {packet.task_id}", "watch it go on")
        out.talk(f"files: {packet.path}")
        return EXIT_STATUS[Status.INTERRUPTED]
    else:
        if status is not Status.COMPLETED and not has_log:
            _show_tail(packet)
        reason = f": {manifest['status_reason']}" if manifest["status_reason"] else ""
        attempts = amounts.plural(manifest["attempt"], "attempt")
        out.talk(f"{packet.task_id} {status}, {describe.exit_status(manifest)}, {took}, {attempts}{reason}")
        for line in leftovers.as_lines(packet):
            out.talk(f"still running: {line}")
    for command, meaning in _next_steps(packet, manifest) if status is not Status.COMPLETED else ():
        out.step(command, meaning)
    out.talk(f"files: {packet.path}")
    return EXIT_STATUS[status]


def _next_steps(packet: Packet, manifest: dict[str, Any]) -> list[tuple[str, str]]:
    """What the failure itself asks for, where one was looked into; a file with all that is known of it goes with that."""
    steps = describe.after_failure(packet, manifest)
    if not steps:
        return describe.next_steps(manifest)
    from shlex import quote  # for a failure only

    return [*steps, (f"less {quote(packet.summary)}", "all that is known")]


def _show_tail(packet: Packet) -> None:
    lines = tail.last_lines(packet.output_log, _TAIL_LINES)
    if lines:
        out.talk("the last lines of its output:")
    for line in lines:
        out.quote(line)
