"""holdfast logs: print a task's output."""

from __future__ import annotations

import codecs
import os
import sys

from holdfast import clock, paths
from holdfast.errors import NotFound, UsageError
from holdfast.model.status import ENDS, Status
from holdfast.packet import load
from holdfast.store.layout import AttemptDir, Home, Packet
from holdfast.views.cli.parse import option_values
from holdfast.views.cli.parse.command_spec import TASK, Command, Option
from holdfast.views.cli.show import amounts, describe, home_down, out, tail, terminal
from holdfast.views.output_refresh import OutputRefresher, refresh_once
from holdfast.views.recovery import KeeperStarter, LostRunnerWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.views.cli.show.sanitize import Sanitizer

_PAUSE_S = 0.1

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
            help="Print raw stdout (or --stderr) of attempt N.",
        ),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Print the log, and follow it with -f."""
    packet = load.find(Home(paths.home()), values["task"], archived=True)
    if values["raw"] and values["stderr"]:
        raise UsageError("--raw and --stderr exclude each other", hint="give one of them")
    count = option_values.whole_number(values["lines"], "--lines")
    number = option_values.whole_number(values["attempt"], "--attempt")
    is_raw = values["raw"] or values["stderr"] or number is not None
    name = "stderr" if values["stderr"] else "stdout"
    only = _attempt(packet, number) if number is not None else None
    streams: dict[str, Stream] = {}

    def current() -> Stream | None:
        attempt = (only or _attempt(packet, None)) if is_raw else None
        if is_raw and attempt is None:
            return None
        path = getattr(attempt, name) if attempt is not None else packet.output_log
        if path not in streams:
            streams[path] = Stream(path, is_text=not is_raw)
        return streams[path]

    try:
        if not is_raw and not values["follow"]:
            refresh_once(packet)
        stream = current()
        if stream is not None:
            stream.print_end(count)
        if values["follow"]:
            _follow(packet, current, only=only)
    finally:
        for stream in streams.values():
            stream.close()
    return 0


class Stream:
    """A growing file, printed as it grows."""

    def __init__(self, path: str, *, is_text: bool) -> None:
        self.path = path
        self._offset = 0
        # Bytes pass through unchanged, except to a terminal, or as text to a locale other than UTF-8.
        self._sanitizer = _sanitizer() if terminal.is_terminal() else None
        is_utf8 = codecs.lookup(sys.stdout.encoding or "ascii").name == "utf-8"
        passes = (is_utf8 or not is_text) and self._sanitizer is None
        self._decoder = None if passes else codecs.getincrementaldecoder("utf-8")("replace")

    def print_end(self, count: int | None) -> None:
        """Print the last lines, or everything."""
        if count is not None:
            data, self._offset = tail.read_last_lines(self.path, count)
            self._write(data)
        self.print_news()

    def print_news(self) -> None:
        """Print what was added."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self._offset)
                while data := file.read(1 << 16):
                    self._offset += len(data)
                    self._write(data)
        except FileNotFoundError:
            return
        sys.stdout.flush()

    def _write(self, data: bytes) -> None:
        if self._decoder is None:
            sys.stdout.buffer.write(data)
            return
        text = self._decoder.decode(data)
        sys.stdout.write(text if self._sanitizer is None else self._sanitizer.show(text))

    def close(self) -> None:
        """Finish: nothing more is printed."""
        if self._sanitizer is not None:
            sys.stdout.write(self._sanitizer.end())
            sys.stdout.flush()


def _sanitizer() -> Sanitizer:
    from holdfast.views.cli.show.sanitize import Sanitizer  # only needed for a terminal

    return Sanitizer(has_colour=terminal.has_colour())


def _follow(packet: Packet, current: Any, *, only: AttemptDir | None) -> None:
    """Print until the task has ended, or the one attempt given with --attempt."""
    printed_status = ""
    last: Stream | None = None
    starter, refresher, watch = KeeperStarter(), OutputRefresher(), LostRunnerWatch()
    while True:
        # Check for the end first: what was written before it is then printed below.
        manifest = load.read_manifest(packet)
        status = manifest["status"]
        is_over = status in ENDS and os.path.exists(packet.task_done)
        if only is not None:
            is_over = is_over or os.path.exists(only.exit)
        stream: Stream | None = current()
        if last is not None and stream is not last:
            last.print_news()  # the previous attempt may have written more
            last.close()
            if stream is not None and terminal.is_terminal():
                attempt = os.path.basename(os.path.dirname(stream.path)).partition("-")[0].lstrip("0")
                print(f"--- attempt {attempt} ---")
        last = stream
        if stream is not None:
            stream.print_news()
        if is_over:
            return
        if status != printed_status and status == Status.INTERRUPTED:
            out.talk(f"{describe.interruption(manifest)} (Ctrl-C stops following)")
        if status != printed_status and home_down.holds_back(packet, manifest):
            out.talk(f"{home_down.QUEUE_WAITS} (Ctrl-C stops following)")
        if watch.poll(packet, status):
            out.talk(f"{home_down.runner_lost(packet, status)} (Ctrl-C stops following)")
        printed_status = status
        starter.poll(packet, status)
        if stream is not None and stream.path == packet.output_log:
            refresher.poll(packet, status)
        clock.sleep(_PAUSE_S)


def _attempt(packet: Packet, number: int | None) -> AttemptDir | None:
    """The attempt with this number, or the latest; None if there is none yet."""
    names = load.attempt_names(packet)
    if number is None:
        return packet.attempt(names[-1]) if names else None
    for name in names:
        if name.partition("-")[0].lstrip("0") == str(number):
            return packet.attempt(name)
    raise NotFound(
        f"{packet.task_id} has no attempt {number}",
        hint=f"it has {amounts.plural(len(names), 'attempt')}" if names else "it has none yet",
    )
