"""Progress of a followed task on stderr: a line redrawn in place on a terminal, messages elsewhere.

The agent's output is not printed here; it is in the task's files.
"""

from __future__ import annotations

import os
import sys

from holdfast import clock
from holdfast.errors import UsageError
from holdfast.model.status import ENDS, Status
from holdfast.store import tail
from holdfast.store.layout import Packet
from holdfast.views.cli.follow import stage_news
from holdfast.views.cli.follow.loop import View
from holdfast.views.cli.show import out, terminal
from holdfast.views.text import amounts, describe, fit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Interval between progress messages.
INTERVAL_S = 10.0
INTERVAL_VARIABLE = "AGENT_CLI_PROGRESS_INTERVAL_SEC"
#: States whose reason is printed.
_EXPLAINED = (Status.CRASHED, Status.HUNG, Status.WAITING, Status.TIMEOUT)


def interval_s() -> float | None:
    """The interval between progress messages; None for no messages. Raises UsageError."""
    text = os.environ.get(INTERVAL_VARIABLE)
    if not text:
        return INTERVAL_S
    try:
        return clock.parse_duration(text) or None
    except ValueError as error:
        raise UsageError(
            f"{INTERVAL_VARIABLE}: {error}", hint="a number of seconds; 0 for no progress"
        ) from error


def view(every_s: float | None) -> View:
    """The view that suits stderr."""
    return ProgressLine() if terminal.can_redraw(sys.stderr) else ProgressMessages(every_s)


class RedrawnLine:
    """One line at the bottom of the terminal on stderr."""

    def __init__(self) -> None:
        self._drawn = ""

    def draw(self, line: str) -> None:
        """Replace the line."""
        if line != self._drawn:
            self._drawn = line
            out.draw(f"\r{line}\x1b[K")

    def clear(self) -> None:
        """Remove the line."""
        if self._drawn:
            self._drawn = ""
            out.draw("\r\x1b[K")


def fit(text: str, *, beside: int = 0) -> str:
    """As much of a text as fits on one line of stderr, without the columns that are taken."""
    # One column stays free: a terminal wraps when the last one is filled.
    columns = (terminal.width(sys.stderr) or terminal.DEFAULT_WIDTH) - 1 - beside
    return fit_text.cut(fit_text.as_displayed(text, sys.stderr), columns)


def elapsed(manifest: dict[str, Any]) -> str:
    """`1m02s`, in whole seconds."""
    return clock.whole_seconds(describe.elapsed_s(manifest, clock.now()))


class ProgressLine(View):
    """State, stage, time and the last line of output, in one line that is gone at the end."""

    shows_output = True

    def __init__(self) -> None:
        self._line = RedrawnLine()
        self._drawn_mono = float("-inf")

    def show(self, packet: Packet, manifest: dict[str, Any], *, is_last: bool) -> None:
        """Draw the line, unless it was drawn a moment ago."""
        now_mono = clock.mono()
        if is_last or now_mono - self._drawn_mono < self.pause_s:
            return
        self._drawn_mono = now_mono
        status = describe.state(manifest)
        text = fit(_progress_text(packet, manifest), beside=len(status) + 1)
        self._line.draw(f"{terminal.coloured_state(status, sys.stderr)} {text}")

    def say(self, text: str) -> None:
        """Print a message in place of the line."""
        self._line.clear()
        out.talk(text)

    def close(self) -> None:
        """Remove the line."""
        self._line.clear()


def _progress_text(packet: Packet, manifest: dict[str, Any]) -> str:
    if manifest["status"] == Status.RUNNING:
        detail = describe.with_step(manifest, tail.last_line(packet.output_log))
    else:
        detail = describe.waiting_for(manifest) or describe.reason(manifest, clock.now())
    attempt = f" attempt {manifest['attempt']}" if manifest["attempt"] > 1 else ""
    return f"{stage_news.current(manifest)}{attempt} {elapsed(manifest)}  {detail}".rstrip()


class ProgressMessages(View):
    """A message when the state changes or a stage starts or ends, and one about progress every `every_s`."""

    def __init__(self, every_s: float | None) -> None:
        self._every_s = every_s
        self._shown, self._waiting_for = ("", 0), ""
        self._news = stage_news.StageNews()
        self._due_mono = clock.mono() + (every_s or 0.0)

    def show(self, packet: Packet, manifest: dict[str, Any], *, is_last: bool) -> None:
        """Print what is new. At the end that is the last stages; the report has the state."""
        for line in self._news.update(manifest):
            out.talk(f"{packet.task_id}: {line}")
        if is_last:
            return
        status = manifest["status"]
        # With the attempt: one may come and go between two rounds, and leave the task in the same state.
        shown = (status, manifest["attempt"] if status in _EXPLAINED else 0)
        if shown != self._shown and status not in ENDS:
            self._shown = shown
            # With several stages, the messages about them say that it starts and runs.
            if not stage_news.has_several(manifest) or status in (*_EXPLAINED, Status.QUEUED):
                self._print_state(packet, manifest)
        if (waiting_for := describe.waiting_for(manifest)) != self._waiting_for:
            self._waiting_for = waiting_for
            if waiting_for:
                out.talk(f"{packet.task_id}: {waiting_for}")
        if self._every_s is not None and clock.mono() >= self._due_mono:
            self._due_mono = clock.mono() + self._every_s
            stage = f"{stage_news.current(manifest)} " if stage_news.has_several(manifest) else ""
            out.talk(f"{packet.task_id}: {stage}{status} for {_progress(packet, manifest)}")

    def _print_state(self, packet: Packet, manifest: dict[str, Any]) -> None:
        status = manifest["status"]
        attempt = f", attempt {manifest['attempt']}" if manifest["attempt"] > 1 else ""
        why = describe.reason(manifest, clock.now()) if status in _EXPLAINED else ""
        if status == Status.QUEUED:
            from holdfast.views.text import queue_reason  # opens the queue

            why = queue_reason.of_task(packet.home, packet.task_id)
        out.talk(f"{packet.task_id}: {status} ({manifest['stage']}{attempt})" + (f": {why}" if why else ""))


def _progress(packet: Packet, manifest: dict[str, Any]) -> str:
    """`1m02s, 3.4 kB of output, 2 messages`."""
    try:
        output_bytes = os.stat(packet.output_log).st_size
    except OSError:
        output_bytes = 0
    heartbeat = manifest["heartbeat"]
    parts = [
        clock.duration_text(describe.in_state_s(manifest, clock.now())),
        f"{amounts.size(output_bytes)} of output",
        amounts.plural(heartbeat["message_count"], "message") if heartbeat["message_count"] else "",
        amounts.plural(heartbeat["tool_calls"], "tool call") if heartbeat["tool_calls"] else "",
    ]
    return ", ".join(part for part in parts if part)
